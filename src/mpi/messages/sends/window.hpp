// SPDX-License-Identifier: BSD-3-Clause
// The sends of this process that are long or wait: gives each to MPI when it has its turn. A feed
// of the engine while a message waits, so that a polling thread starts messages that may go. Used
// by outgoing.cpp.
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

// Thread safety: any thread uses every member.
// Invariants:
//   (1) a message is given to MPI under the lock, and `waiting` counts a waiting message since its
//       call: a thread that sees none waiting comes after its own earlier sends.
//   (2) no function of the user is called under the lock: errors are reported after it.
class Window final : public Feed {
 public:
  // Before the first send.
  void limit(const Limits& limits);

  // The message goes, or waits. False if MPI has refused it: it has then not begun.
  [[nodiscard]] bool begin(Send& send);
  // True if messages wait that a message of this communicator, peer and tag must not overtake.
  [[nodiscard]] bool holds_back(messages::Communicator& communicator, int peer, int tag);
  // The engine has found it complete.
  void ended(Send& send) noexcept;
  void cancel(Send& send) noexcept;
  // cancel() for the waiting message for whose listener `is_it` is true; false: there is none.
  [[nodiscard]] bool cancel_of(const std::function<bool(const messages::Listener&)>& is_it);
  // Messages that wait for that communicator and peer go now; null, and -1, stand for all.
  void let_go(const messages::Communicator* communicator, int peer) noexcept;

  bool draw(Round& round) override;
  void for_each(const std::function<void(const Operation&)>& visit) override;

 private:
  void release(Send*& refused) noexcept IMBREX_REQUIRES(lock_);
  void post(Turn& turn, Send*& refused) noexcept IMBREX_REQUIRES(lock_);
  static void end_refused(Send* refused) noexcept;

  threads::CallLock lock_;  // held over calls of MPI that do not block
  Turns turns_ IMBREX_GUARDED_BY(lock_);
  bool listed_ IMBREX_GUARDED_BY(lock_) = false;  // the engine knows this feed
};

[[nodiscard]] Window& window() noexcept;

// The number of waiting messages. Written under the lock of the window, which says what it pairs
// with; 0 while there is no window.
inline std::atomic<int> waiting{0};

}  // namespace imbrex::mpi::sends
