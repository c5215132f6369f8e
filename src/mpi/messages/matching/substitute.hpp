// SPDX-License-Identifier: BSD-3-Clause
// An operation behind a handle that MPI does not know: a receive that imbrex matches (receive.hpp),
// a send that waits for its turn (sends/send.hpp), a collective that goes block by block
// (block_request.hpp). This file has the part that all calls with requests use, from the call that
// begins the operation to the one that takes its result.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

#include "imbrex/detail/observation.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/messages/matching/known.hpp"

namespace imbrex::mpi::messages {

// Receives the call for a completion. Lives until `fire` has been called.
struct Listener {
  void (*fire)(Listener& self) noexcept;  // called without a lock; may end `self` and the operation
  detail::Footprint woken;                // the task that `fire` wakes, if any
};

// Thread safety: any thread calls done() and attend(); the rest as Operation.
// Invariants:
//   (1) it is in a queue of this library, in flight at the engine, or complete.
//   (2) `listener_` leaves `nobody` once, for a listener or for `announcing`, and ends as `done`:
//       the operation then belongs to the code that made it, or to the listener.
class Substitute : public Operation {
 public:
  enum class Kind : std::uint8_t {
    data,     // for a receive: the message goes to the buffer
    message,  // the matched message is the result (MPI_Mprobe)
    probe,    // the message stays (MPI_Probe)
    send,
    collective  // by blocks
  };

  virtual ~Substitute();
  Substitute(const Substitute&) = delete;
  Substitute& operator=(const Substitute&) = delete;

  // MPI_Cancel. A late cancel has no effect.
  virtual void cancel() noexcept = 0;

  [[nodiscard]] bool done() const noexcept {
    return listener_.load(std::memory_order_acquire) == done_mark();  // pairs with completed()
  }
  // The number of operations that have ended without a listener. A caller that has checked some
  // operations and found none done need not check again while the number is unchanged.
  [[nodiscard]] static std::uint64_t ended_unattended() noexcept;
  // False if it is done: `listener` is then not called. Ends the program if there is a listener
  // already.
  [[nodiscard]] bool attend(Listener& listener) noexcept;

  // The listener; null: none. REQUIRES: it cannot complete meanwhile.
  [[nodiscard]] const Listener* listener() const noexcept {
    return listener_.load(std::memory_order_acquire);  // pairs with attend()
  }

  // The program's handle stands for it from now on.
  void give_handle(Token& token) noexcept;
  // The handle is about to stand for nothing, or for another operation. REQUIRES: attend() follows.
  void take_handle() noexcept { handle_.store(MPI_REQUEST_NULL, std::memory_order_relaxed); }
  // The program's handle, for code that reports its message. Relaxed: it may be a moment old.
  [[nodiscard]] MPI_Request handle() const noexcept {
    return handle_.load(std::memory_order_relaxed);
  }

  // Ends it as cancelled. REQUIRES: it is not in the queue.
  void end_cancelled() noexcept;
  // Ends it with an error. REQUIRES: it is not in the queue.
  void end_failed(int its_code) noexcept;
  // Ends it with another operation's result. REQUIRES: counted by Engine::expect(), and in no
  // queue.
  void end_like(const Operation& other, int its_code) noexcept;
  // Ends it: `code` and `status` are set. REQUIRES: as end_like().
  void end() noexcept;
  // For the code that takes the result of a failed operation: the handle of a communicator that has
  // been freed since is invalid, and is dropped with its error handler. REQUIRES: it is done.
  void forget_freed() noexcept;

  const Kind kind;  // this and the next two lie in padding of Operation

 protected:
  // `owns_type`: the type is a copy that is freed with this.
  Substitute(Communicator& communicator, Kind kind, bool owns_type) noexcept;
  static void completed(Operation& self) noexcept;

  bool owns_type_;

 private:
  static Listener* done_mark() noexcept;
  static Listener* announcing_mark() noexcept;

  const std::uint32_t life_;                   // life of the communicator, when this began

 protected:
  std::atomic<Listener*> listener_{nullptr};  // any thread; see (2), acq_rel: the result is visible
  std::atomic<MPI_Request> handle_{MPI_REQUEST_NULL};  // written by the calls that use it

 public:
  Communicator& communicator;
  // The token or persistent request whose handle the program has for this, if any. A token that is
  // given back serves another operation: once there is a listener, no code may follow this.
  Known owner;
  [[nodiscard]] Token* token() const noexcept { return owner.token(); }
  [[nodiscard]] Persistent* persistent() const noexcept { return owner.persistent(); }
};

// Waits for an operation without a listener. Suspends.
void wait_for(Substitute& operation);
// The empty status, as MPI gives it for null requests.
[[nodiscard]] MPI_Status empty_status() noexcept;

// For a receive that MPI has reported with this code and of which the program has no handle. If a
// process has failed that might have sent to it, MPI keeps a receive from any source: this function
// takes the receive back, since the program may reuse its buffer. Returns the code of a blocking
// call.
[[nodiscard]] int end_kept(MPI_Request& request, int code) noexcept;

}  // namespace imbrex::mpi::messages
