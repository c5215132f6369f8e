// SPDX-License-Identifier: BSD-3-Clause
// An operation behind a handle that MPI does not know: a receive that imbrex matches (receive.hpp),
// a send that waits for its turn (sends/send.hpp), a collective that goes block by block
// (block_request.hpp). Here is what all calls that take requests do with it, from the call that
// begins it to the one that takes its result.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

#include "imbrex/detail/observation.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/messages/matching/known.hpp"

namespace imbrex::mpi::messages {

// Whoever is told of a completion. Lives until `fire` has been called.
struct Listener {
  void (*fire)(Listener& self) noexcept;  // without a lock; may end `self` and the operation
  detail::Footprint woken;                // the task that `fire` wakes, if it is one
};

// Thread safety: done() and attend(), any thread; the rest as Operation.
// Invariants: (1) it is in a queue of ours, under way at the engine, or complete; (2) `listener_`
// leaves `nobody` once, for a listener or for `announcing`, and ends as `done`: then the operation
// belongs to whoever made it, or to the listener.
class Substitute : public Operation {
 public:
  enum class Kind : std::uint8_t {
    data,     // of a receive: the message goes to the buffer
    message,  // the matched message is the result (MPI_Mprobe)
    probe,    // the message stays (MPI_Probe)
    send,
    collective  // by blocks
  };

  virtual ~Substitute();
  Substitute(const Substitute&) = delete;
  Substitute& operator=(const Substitute&) = delete;

  // MPI_Cancel. If it is too late, nothing happens.
  virtual void cancel() noexcept = 0;

  [[nodiscard]] bool done() const noexcept {
    return listener_.load(std::memory_order_acquire) == done_mark();  // pairs with completed()
  }
  // How many have ended that nobody attended. A caller that has looked at some of these and found
  // none done need not look again while this number is what it was before the look.
  [[nodiscard]] static std::uint64_t ended_unattended() noexcept;
  // False if it is done: then `listener` is not told. Ends the program if somebody waits already.
  [[nodiscard]] bool attend(Listener& listener) noexcept;

  // Who attends it; null: nobody. REQUIRES: it cannot complete meanwhile.
  [[nodiscard]] const Listener* listener() const noexcept {
    return listener_.load(std::memory_order_acquire);  // pairs with attend()
  }

  // The program's handle stands for it from now on.
  void give_handle(Token& token) noexcept;
  // The handle is about to stand for nothing, or for another: REQUIRES attend() to follow.
  void take_handle() noexcept { handle_.store(MPI_REQUEST_NULL, std::memory_order_relaxed); }
  // The program's handle, for those that tell of its message. Relaxed: it may be a moment old.
  [[nodiscard]] MPI_Request handle() const noexcept {
    return handle_.load(std::memory_order_relaxed);
  }

  // Ends it as cancelled. REQUIRES to be out of the queue.
  void end_cancelled() noexcept;
  // Ends it with an error. REQUIRES to be out of the queue.
  void end_failed(int its_code) noexcept;
  // Ends it with another's result. REQUIRES: counted by Engine::expect(), and in no queue.
  void end_like(const Operation& other, int its_code) noexcept;
  // Ends it: `code` and `status` are set. REQUIRES: as end_like().
  void end() noexcept;
  // For whoever takes the result of one that has failed: a handle of a communicator that has been
  // freed since means nothing, and is forgotten with its error handler. REQUIRES: it is done.
  void forget_freed() noexcept;

  const Kind kind;  // this and the next two stand in what Operation leaves free

 protected:
  // `owns_type`: the type is a copy that goes with this.
  Substitute(Communicator& communicator, Kind kind, bool owns_type) noexcept;
  static void completed(Operation& self) noexcept;

  bool owns_type_;

 private:
  static Listener* done_mark() noexcept;
  static Listener* announcing_mark() noexcept;

  const std::uint32_t life_;                   // of the communicator, when this began

 protected:
  std::atomic<Listener*> listener_{nullptr};  // any thread; see (2), acq_rel: the result is seen
  std::atomic<MPI_Request> handle_{MPI_REQUEST_NULL};  // written by the calls that use it

 public:
  Communicator& communicator;
  // The token or persistent request whose handle the program has for this, if any. A token that is
  // given back serves another: once somebody attends, nobody may follow this.
  Known owner;
  [[nodiscard]] Token* token() const noexcept { return owner.token(); }
  [[nodiscard]] Persistent* persistent() const noexcept { return owner.persistent(); }
};

// Waits for one that nobody attends. Suspends.
void wait_for(Substitute& operation);
// The status of nothing, as MPI gives it for null requests.
[[nodiscard]] MPI_Status empty_status() noexcept;

// For a receive that MPI has reported with this code and the program has no handle of. If a process
// has failed that might have sent to it, MPI keeps a receive from any source: takes it back, since
// its buffer is the program's again. Returns the code of a call that blocks.
[[nodiscard]] int end_kept(MPI_Request& request, int code) noexcept;

}  // namespace imbrex::mpi::messages
