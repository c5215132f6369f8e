// SPDX-License-Identifier: BSD-3-Clause
// One receive that imbrex matches itself, from the call that makes it to the call that takes its
// result. Used by the calls in calls/p2p/; communicator.hpp finds its message.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

#include "imbrex/detail/observation.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/matching/match_queue.hpp"
#include "mpi/matching/request_table.hpp"

namespace imbrex::mpi::receive {

class Communicator;
struct PersistentReceive;
struct Token;

// The arguments of a receiving call.
struct Arguments {
  void* buffer;
  MPI_Count count;
  MPI_Datatype type;
  Envelope wanted;
  MPI_Comm comm;
};

// A message that MPI has matched for us.
struct Arrived {
  MPI_Message message;
  MPI_Status status;
};

// Whoever is told of a receive's completion. Lives until `fire` has been called.
struct Listener {
  void (*fire)(Listener& self) noexcept;  // without a lock; may end `self` and the receive
  detail::Footprint woken;                // the task that `fire` wakes, if it is one
};

// Thread safety: done() and attend(), any thread; the rest as Operation.
// Invariants: (1) it is in its communicator's queue, under way at the engine, or complete;
// (2) `listener_` leaves `nobody` once, for a listener or for `announcing`, and ends as `done`:
// then the receive belongs to whoever made it, or to the listener.
class alignas(64) Receive : public Operation {
 public:
  enum class Kind : std::uint8_t {
    data,     // the message goes to the buffer
    message,  // the matched message is the result (MPI_Mprobe)
    probe     // the message stays (MPI_Probe)
  };

  // The type is kept alive until the message is there. `at_once`: as in Call.
  Receive(const char* name, const Arguments& arguments, Communicator& communicator, Kind kind,
          bool at_once);
  ~Receive();
  Receive(const Receive&) = delete;
  Receive& operator=(const Receive&) = delete;
  // The memory is a slot of a store that is never given back: it has at most as many slots as were
  // in use at once.
  static void* operator new(std::size_t bytes);
  static void operator delete(void* slot) noexcept;

  [[nodiscard]] bool done() const noexcept {
    return listener_.load(std::memory_order_acquire) == done_mark();  // pairs with completed()
  }
  // How many receives have ended that nobody attended. A caller that has looked at some of these
  // and found none done need not look again while this number is what it was before the look.
  [[nodiscard]] static std::uint64_t ended_unattended() noexcept;
  // False if it is done: then `listener` is not told. Ends the program if somebody waits already.
  [[nodiscard]] bool attend(Listener& listener) noexcept;

  // Who attends it; null: nobody. REQUIRES: it is queued.
  [[nodiscard]] const Listener* listener() const noexcept {
    return listener_.load(std::memory_order_acquire);  // pairs with attend()
  }

  // The program's handle stands for it from now on.
  void give_handle(Token& token) noexcept;
  // The handle is about to stand for nothing, or for another receive: REQUIRES attend() to follow.
  void take_handle() noexcept { handle_.store(MPI_REQUEST_NULL, std::memory_order_relaxed); }
  // The program's handle, for those that tell of its message. Relaxed: it may be a moment old.
  [[nodiscard]] MPI_Request handle() const noexcept {
    return handle_.load(std::memory_order_relaxed);
  }

  // For communicator.hpp. Its message has come: REQUIRES to be out of the queue.
  void matched(const Arrived& arrived, Round& round);
  // The same, by the calling thread, which holds no lock.
  void matched_here(const Arrived& arrived);
  // Ends it as cancelled. REQUIRES to be out of the queue.
  void end_cancelled() noexcept;
  // Ends it with an error. REQUIRES to be out of the queue.
  void end_failed(int its_code) noexcept;
  // Ends it with another's result. REQUIRES: counted by Engine::expect(), and in no queue.
  void end_like(const Operation& other, int its_code) noexcept;
  // For whoever takes the result of one that has failed: a handle of a communicator that has been
  // freed since means nothing, and is forgotten with its error handler. REQUIRES: it is done.
  void forget_freed() noexcept;
  // Brings near what matched() needs. REQUIRES: the link is near.
  void fetch() const noexcept;
  // Called after fetch(): brings near the buffer, and what is needed to wake the waiting task.
  void fetch_rest() const noexcept;

  const Kind kind;  // this and the next two stand in what Operation leaves free

 private:
  bool owns_type_;
  const std::uint32_t life_;  // of the communicator, when this began

 public:
  Link link;  // under the communicator's lock

 private:
  static Listener* done_mark() noexcept;
  static Listener* announcing_mark() noexcept;
  static void completed(Operation& self) noexcept;
  void end(int its_code) noexcept;
  // Starts the transfer; true if it is over.
  [[nodiscard]] bool begin_transfer(const Arrived& arrived);

  std::atomic<Listener*> listener_{nullptr};  // any thread; see (2), acq_rel: the result is seen
  std::atomic<MPI_Request> handle_{MPI_REQUEST_NULL};  // written by the calls that use it

 public:
  void* const buffer;
  Communicator& communicator;
  // The token or persistent request whose handle the program has for this receive, if any. A token
  // that is given back serves another receive: once somebody attends, nobody may follow this.
  Known owner;
  [[nodiscard]] Token* token() const noexcept { return owner.token(); }
  [[nodiscard]] PersistentReceive* persistent() const noexcept { return owner.persistent(); }
  MPI_Message message = MPI_MESSAGE_NULL;  // of Kind::message
};

// The receive that `request` stands for; null: it is MPI's own.
[[nodiscard]] Receive* substitute(MPI_Request request) noexcept;
// Takes the result of a receive that is done. The handle becomes null, or inactive if persistent;
// the receive ends. Returns its code, for which the error handler has been called.
int conclude(Receive& receive, MPI_Request* request, MPI_Status* status);
// The status of nothing, as MPI gives it for null requests.
[[nodiscard]] MPI_Status empty_status() noexcept;
// The program has let go of the request, the receive goes on.
void let_go(Receive& receive) noexcept;

// True if `type` is not one of the named types. Then it is kept alive by a copy, which its owner
// frees.
[[nodiscard]] bool is_derived(MPI_Datatype type);

// For a receive that MPI has reported with this code and the program has no handle of. If a process
// has failed that might have sent to it, MPI keeps a receive from any source: takes it back, since
// its buffer is the program's again. Returns the code of a call that blocks.
[[nodiscard]] int end_kept(MPI_Request& request, int code) noexcept;

// PMPI_Irecv and so on, whatever the width of the count.
int post(const Arguments& arguments, MPI_Request* request);
int receive_message(const Arguments& arguments, MPI_Message* message, MPI_Request* request);

}  // namespace imbrex::mpi::receive
