// SPDX-License-Identifier: BSD-3-Clause
// The sends of this process that are long or wait: gives each to MPI when it is its turn. A feed of
// the engine while anything waits, so that whoever polls lets go what may go. Used by outgoing.cpp.
#pragma once

#include <mpi.h>

#include <atomic>
#include <functional>

#include "base/guarded.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/threads/ship.hpp"
#include "mpi/messages/sends/send.hpp"
#include "mpi/messages/sends/turns.hpp"

namespace imbrex::mpi::sends {

// Thread safety: every member, any thread.
// Invariants: (1) a message is given to MPI under the lock, and what waits has been counted in
// `waiting` since its call: whoever sees none waiting comes behind what he has sent before; (2) no
// user's function is called under the lock: errors are told after it.
class Window final : public Feed {
 public:
  // Before the first send.
  void limit(const Limits& limits);

  // It goes, or waits. False if MPI has refused it: then it has not begun.
  [[nodiscard]] bool begin(Send& send);
  // True if messages wait that one of this communicator, peer and tag may not overtake.
  [[nodiscard]] bool holds_back(messages::Communicator& communicator, int peer, int tag);
  // The engine has found it complete.
  void ended(Send& send) noexcept;
  void cancel(Send& send) noexcept;
  // As cancel() for the one that waits and whose listener this says is it; false: none is.
  [[nodiscard]] bool cancel_of(const std::function<bool(const messages::Listener&)>& is_it);
  // What waits for that communicator and peer goes now; null, and -1, stand for all.
  void let_go(const messages::Communicator* communicator, int peer) noexcept;

  bool draw(Round& round) override;
  void for_each(const std::function<void(const Operation&)>& visit) override;

 private:
  void release(Send*& refused) noexcept IMBREX_REQUIRES(lock_);
  void post(Turn& turn, Send*& refused) noexcept IMBREX_REQUIRES(lock_);
  static void end_all(Send* refused) noexcept;

  threads::CallLock lock_;  // held over calls of MPI that do not block
  Turns turns_ IMBREX_GUARDED_BY(lock_);
  bool listed_ IMBREX_GUARDED_BY(lock_) = false;  // the engine knows this feed
};

[[nodiscard]] Window& window() noexcept;

// How many messages wait. Written under the lock of the window, which says who pairs with it; 0
// while there is no window.
inline std::atomic<int> waiting{0};

}  // namespace imbrex::mpi::sends
