// SPDX-License-Identifier: BSD-3-Clause
// Whether the ranks begin the collectives of each communicator in one order (IMBREX_CHECK): each
// rank reports its collectives to the first rank of the communicator, which compares. No task waits
// for that. docs/design/ordered.md has the protocol.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "imbrex/detail/observation.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/check/ranks/begun_collective.hpp"
#include "mpi/engine/engine.hpp"

namespace imbrex::mpi::check {

// Collective over MPI_COMM_WORLD.
void start_comparing();
// In MPI_Finalize, after the last task. Collective over MPI_COMM_WORLD. Returns when all reports
// have been compared.
void end_comparing();

// Sends and receives the present letters. Never waits, never suspends.
void poll_letters() noexcept;
inline void poll_ranks() noexcept {
  if (switches.compares_ranks) [[unlikely]] poll_letters();
}

// The program frees `comm`. MPICH destroys its attributes only later.
void end_communicator(MPI_Comm comm);

class Known;

// A collective of a call, for the comparison. Made before the call does anything on the
// communicator; open from begin() until this object ends, or the object that it was moved to.
//
// Thread safety: one thread at a time.
class Compared {
 public:
  Compared() = default;
  explicit Compared(MPI_Comm comm) {
    if (switches.compares_ranks) [[unlikely]] find(comm);
  }
  ~Compared() {
    if (comm_ != nullptr) [[unlikely]] end();
  }
  Compared(Compared&& other) noexcept
      : comm_(std::move(other.comm_)), number_(std::exchange(other.number_, 0)) {}
  Compared& operator=(Compared&& other) noexcept {
    std::swap(comm_, other.comm_);
    std::swap(number_, other.number_);
    return *this;
  }
  Compared(const Compared&) = delete;
  Compared& operator=(const Compared&) = delete;

  // False if it is not compared: begin() must not be called.
  [[nodiscard]] bool is_wanted() const noexcept { return comm_ != nullptr; }
  // MPI has begun it, in `task`.
  void begin(const Call& call, const detail::TaskLabel& task, Alike alike, Ordering ordering);

 private:
  void find(MPI_Comm comm);
  void end() noexcept;

  std::shared_ptr<Known> comm_;
  std::uint64_t number_ = 0;  // 0: not begun
};

// A call that makes a communicator of one group from another; all its ranks make such calls in one
// order. They therefore know the new communicator from its parent, and need no message.
//
// Thread safety: one thread at a time.
class Making {
 public:
  // Before the call does anything on `parent`; null: it makes no communicator.
  explicit Making(MPI_Comm parent) {
    if (switches.compares_ranks) [[unlikely]] find(parent);
  }
  // The call begins, in the order of the collectives of the parent.
  void begin() noexcept {
    if (parent_ != nullptr) [[unlikely]] draw();
  }
  // The call has made this communicator, or (null) none. Returns `code`, MPI's result.
  int end(const int code, const MPI_Comm* created) {
    if (place_ != 0 && code == MPI_SUCCESS) [[unlikely]] record(*created);
    return code;
  }

 private:
  void find(MPI_Comm parent);
  void draw() noexcept;
  void record(MPI_Comm created);

  std::shared_ptr<Known> parent_;
  std::uint64_t place_ = 0;  // 0: not begun
};

// The text for Alike, the same on all ranks.
[[nodiscard]] std::string name_of(MPI_Op op);

}  // namespace imbrex::mpi::check
