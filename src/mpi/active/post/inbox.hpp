// SPDX-License-Identifier: BSD-3-Clause
// The receiving side of active messages: packets of other ranks by posted receives, packets of this
// rank from its outbox.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "mpi/active/post/credits.hpp"
#include "mpi/active/post/message_handlers.hpp"
#include "mpi/active/post/outbox.hpp"
#include "mpi/active/post/packet.hpp"
#include "mpi/active/post/wire.hpp"

namespace imbrex::mpi::active {

// Thread safety: only the holder uses it. Invariant: receives are restarted in the order in which
// they were posted, and MPI fills the oldest first. A test of only the oldest one therefore keeps
// the order of packets and misses none.
class Inbox {
 public:
  Inbox(const Wire& wire, Credits& credits, MessageHandlers& handlers, Outbox& outbox) noexcept
      : wire_(wire), credits_(credits), handlers_(handlers), outbox_(outbox) {}
  void open();
  // REQUIRES: no rank sends any more.
  void close() noexcept;
  // Handles arrived packets, up to a bound, so that a poll stays short. Returns the number of
  // messages.
  [[nodiscard]] int receive() noexcept;
  [[nodiscard]] int take_own() noexcept;
  [[nodiscard]] std::int64_t packets_handled() const noexcept { return packets_handled_; }

 private:
  struct Slot {
    MPI_Request request = MPI_REQUEST_NULL;
    alignas(64) std::byte bytes[packet_bytes];
  };
  [[nodiscard]] int handle(int from, std::span<const std::byte> packet) noexcept;
  [[nodiscard]] bool dispatch(int from, std::span<const std::byte> packet) noexcept;

  const Wire& wire_;
  Credits& credits_;
  MessageHandlers& handlers_;
  Outbox& outbox_;
  std::unique_ptr<Slot[]> slots_;
  std::size_t oldest_ = 0;  // slot
  std::int64_t packets_handled_ = 0;
};

}  // namespace imbrex::mpi::active
