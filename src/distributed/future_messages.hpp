// SPDX-License-Identifier: BSD-3-Clause
// The messages of distributed futures, and the records that are kept until an answer. Used by the
// two sources of futures.hpp.
#pragma once

#include <cstring>
#include <exception>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "distributed/futures.hpp"
#include "imbrex/error.hpp"

namespace imbrex::distributed {

struct SpaceOn::Head {
  std::uint64_t space;
  std::uint64_t guid;
  std::uint64_t token;  // an answer repeats it: identifies a Fetch or Put
  std::uint64_t type;   // ask, put, announce
  std::uint64_t bytes;  // of the value: size, put, announce; error: 1 if no landing will end
  Landing landing;
  std::uint32_t text_bytes;  // length of the place, which comes first: put, announce
  FutureMessage message;
  bool of_leaving;      // error: because a rank has left the space
};

// A longer text is cut, so that a value of value_bytes_max and the place of its put fit a message.
inline constexpr std::size_t text_bytes_max = 200;
inline constexpr std::size_t value_bytes_max =
    mpi::active::message_bytes_max - 100 - text_bytes_max;

[[nodiscard]] std::string site_text(const std::source_location& where);

// False if the last reference is gone. REQUIRES: the lock of its part of the table is held.
[[nodiscard]] bool try_retain(detail::SpaceFuture& state) noexcept;

// An error of another rank: its text names ranks and places, so nothing is added.
class RemoteError final : public Error {
 public:
  using Error::Error;
};

// A value that this rank has asked for; a handler owns it once it is sent.
struct SpaceOn::Fetch {
  SpaceOn* space = nullptr;
  detail::SpaceFuture* state = nullptr;  // a reference
  int home = -1;
  bool taken = false;                    // by this
  Landing landing;
  std::span<std::byte> room;
  std::vector<std::byte> scratch;
  std::exception_ptr error;
  bool is_of_leaving = false;            // the error

  void make_room(std::size_t bytes);
};

// A value on its way to its home; a handler owns it once it is sent.
struct SpaceOn::Put {
  Put(SpaceOn& its_space, detail::SpaceFuture& its_state, const int its_home,
      const std::source_location& where)
      : space(its_space), state(its_state), home(its_home),
        done("a put to a distributed future", where) {}
  SpaceOn& space;
  detail::SpaceFuture& state;  // a reference
  const int home;
  Promise<void> done;
  Bytes data;
  std::vector<std::byte> scratch;
  bool sending = false;   // deliver() has not ended
  bool answered = false;
};

// A value that arrives at its home.
struct SpaceOn::Arriving {
  SpaceOn& space;
  detail::SpaceFuture& state;  // a reference, and claimed
  int from;
  std::uint64_t token;
  std::span<std::byte> room = {};
  std::vector<std::byte> scratch = {};
};

}  // namespace imbrex::distributed
