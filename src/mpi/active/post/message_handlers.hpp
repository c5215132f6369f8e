// SPDX-License-Identifier: BSD-3-Clause
// The handlers of active messages, and the messages that are here before their handler.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "mpi/active/post/open_work.hpp"

namespace imbrex::mpi::active {

using Handler = void (*)(void* context, int from, std::span<const std::byte> message) noexcept;

// Thread safety: any thread calls set(); the holder calls the rest, so handlers never overlap.
// Invariant: while messages of a number are kept, later ones are kept behind them.
class MessageHandlers {
 public:
  static constexpr std::size_t ids = 64;

  explicit MessageHandlers(OpenWork& work) noexcept : work_(work) {}

  // False if the number has a handler already.
  [[nodiscard]] bool set(std::uint32_t id, Handler handler, void* context);
  // Calls the handler of the message, or keeps the message for it.
  void dispatch(std::uint32_t id, int from, std::span<const std::byte> message) noexcept;
  // Hands over the messages that were kept for handlers set since. Returns their number.
  [[nodiscard]] int take_kept() noexcept;
  // In MPI_Finalize: reports messages without a handler. `rank` is this one.
  void report_kept(int rank) const;

 private:
  struct Registered {
    std::atomic<Handler> handler{nullptr};  // release pairs with the holder's load
    void* context = nullptr;                // set before
  };
  struct Kept {
    int from;
    std::vector<std::byte> bytes;
  };

  OpenWork& work_;
  std::mutex setting_;
  std::array<Registered, ids> registered_;
  std::atomic<bool> look_at_kept_{false};   // any thread; a handler was set
  std::array<std::deque<Kept>, ids> kept_;  // no bound: their handlers are not set yet
};

}  // namespace imbrex::mpi::active
