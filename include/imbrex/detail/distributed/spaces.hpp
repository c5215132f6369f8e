// SPDX-License-Identifier: BSD-3-Clause
// The functions of src/distributed that future_space.hpp calls: spaces of futures whose type is a
// table of functions. Names no MPI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "imbrex/detail/waist.hpp"

#pragma GCC visibility push(default)

namespace imbrex::detail {

class Space;

// A future of a space. `built`: the slot has a value.
struct SpaceFuture : RemoteState {
  Space* space = nullptr;
  std::uint64_t guid = 0;
  bool built = false;  // written by the thread that took the future, before it fires
};
struct ValueOps {
  static constexpr std::size_t varying = SIZE_MAX;
  std::uint64_t type;     // the same number for the same type on every rank
  const char* type_name;  // ends in "[with T = name]" or "[T = name]"
  std::size_t bytes;      // of every value, or `varying`
  SpaceFuture* (*make)();
  void (*destroy)(SpaceFuture& future) noexcept;  // destroys the future with its value
  // Returns the memory where the bytes of a value shall arrive: the value itself, if it is
  // contiguous, else `scratch`. May throw.
  std::span<std::byte> (*room)(SpaceFuture& future, std::size_t bytes,
                               std::vector<std::byte>& scratch);
  // The bytes have arrived in that memory. May throw.
  void (*landed)(SpaceFuture& future, std::span<const std::byte> bytes);
  // Returns the bytes of the value: of itself, or of `scratch`.
  std::span<const std::byte> (*view)(const SpaceFuture& future, std::vector<std::byte>& scratch);
};

// Builds the value that is put; may throw.
struct Build {
  void (*call)(SpaceFuture& future, void* argument);
  void* argument;
};

struct SpaceSpec {
  std::uint64_t id = 0;         // the same on all ranks of the space; no other space has it
  std::vector<int> members;     // ranks of MPI_COMM_WORLD, in the order of the communicator
  const ValueOps* ops = nullptr;
  std::function<int(std::uint64_t)> home;  // returns a rank of the communicator
  std::function<std::size_t(std::uint64_t)> size, readers;  // empty: unknown
  std::string name;
  // False: until expect() is called, idle workers do not poll for messages of this space. A thread
  // that polls for other messages answers them.
  bool expects = true;
};

// Thread safety: any thread; close() once.
class Space {
 public:
  // Returns the future of `guid`, of which the caller owns a reference. Suspends for room to send.
  [[nodiscard]] virtual SpaceFuture& future(std::uint64_t guid) = 0;
  virtual void put(std::uint64_t guid, const Build& build, const std::source_location& where) = 0;
  virtual void expect() = 0;            // see SpaceSpec
  virtual void close() = 0;             // Suspends.
  // The program uses the space no more, but perhaps its futures. Closes the space if close() was
  // not called, without the wait for other ranks if an exception ends it. May suspend.
  virtual void let_go() noexcept = 0;

 protected:
  ~Space() = default;
};

[[nodiscard]] Space& open_space(SpaceSpec spec);

}  // namespace imbrex::detail

#pragma GCC visibility pop
