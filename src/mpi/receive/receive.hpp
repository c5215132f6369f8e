// SPDX-License-Identifier: BSD-3-Clause
// One receive that imbrex matches itself, from the call that makes it to the call that takes its
// result. Used by the calls of this folder; communicator.hpp finds its message.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

#include "engine.hpp"
#include "receive/match_queue.hpp"
#include "receive/request_table.hpp"

namespace imbrex::mpi::receive {

class Communicator;
struct Persistent;
struct Token;

// What a receiving call was given.
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
struct Waiter {
  void (*fire)(Waiter& self) noexcept;  // without a lock; may end `self` and the receive
  detail::Footprint woken;              // by `fire`, if it wakes one task
};

// Thread safety: done() and attend(), any thread; the rest as Operation.
// Invariants: (1) it is in its communicator's queue, under way at the engine, or complete;
// (2) `waiter_` leaves `nobody` once, for a waiter or for `announcing`, and ends as `done`: then
// the receive belongs to whoever made it, or to the waiter.
class alignas(64) Receive : public Operation {
 public:
  enum class Kind : std::uint8_t {
    data,     // the message goes to the buffer
    message,  // the matched message is the result (MPI_Mprobe)
    probe     // the message stays (MPI_Probe)
  };

  // The type is kept alive until the message is there.
  Receive(const char* name, const Arguments& arguments, Communicator& communicator, Kind kind);
  ~Receive();
  Receive(const Receive&) = delete;
  Receive& operator=(const Receive&) = delete;
  // From a store of slots that is never given back: at most as many as were alive at once.
  static void* operator new(std::size_t bytes);
  static void operator delete(void* slot) noexcept;

  [[nodiscard]] bool done() const noexcept {
    return waiter_.load(std::memory_order_acquire) == done_mark();  // pairs with completed()
  }
  // How many have ended that nobody attended. Who has looked at some of those and found none done
  // need not look again while this stays as it was before.
  [[nodiscard]] static std::uint64_t ended_unattended() noexcept;
  // False if it is done: then `waiter` is not told. Ends the program if somebody waits already.
  [[nodiscard]] bool attend(Waiter& waiter) noexcept;

  // The program's handle stands for it from now on.
  void give_handle(Token& token) noexcept;
  // The handle is about to stand for nothing, or for another receive: REQUIRES attend() to follow.
  void take_handle() noexcept { handle_.store(MPI_REQUEST_NULL, std::memory_order_relaxed); }
  // For those that tell of its message. It may be a moment old: relaxed.
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
  // After that: the buffer, and what waking the task needs that waits for it.
  void fetch_rest() const noexcept;

  Link link;  // under the communicator's lock

 private:
  static Waiter* done_mark() noexcept;
  static Waiter* announcing_mark() noexcept;
  static void completed(Operation& self) noexcept;
  void end(int its_code) noexcept;
  // Starts the transfer; true if it is over.
  [[nodiscard]] bool begin_transfer(const Arrived& arrived);

  std::atomic<Waiter*> waiter_{nullptr};  // any thread; see (2), acq_rel: the result is seen
  std::atomic<MPI_Request> handle_{MPI_REQUEST_NULL};  // written by the calls that use it

 public:
  void* const buffer;
  Communicator& communicator;
  // What the program's handle belongs to, if it has one. A token that is given back is another's:
  // once somebody attends, nobody may follow this.
  Known owner;
  [[nodiscard]] Token* token() const noexcept { return owner.token(); }
  [[nodiscard]] Persistent* persistent() const noexcept { return owner.persistent(); }
  MPI_Message message = MPI_MESSAGE_NULL;  // of Kind::message
  const Kind kind;

 private:
  bool owns_type_;
  const std::uint32_t life_;  // of the communicator, when this began
};

// A generalised request that stands for a receive: the handle that the program gets. MPI is told
// that it is complete only if nobody has begun to wait by then; else it is used again, which saves
// its start and its end.
struct Token {
  MPI_Request request = MPI_REQUEST_NULL;
  Receive* receive = nullptr;
  bool announced = false;  // MPI knows that it is complete
  Token* next = nullptr;
};

// One that stands for `receive`; null if MPI gives no more.
[[nodiscard]] Token* take_token(Receive& receive);
// The program has it no more.
void give_token(Token& token) noexcept;

// A receive that a persistent request stands for.
struct Persistent {
  Arguments arguments;  // its type is a copy if `owns_type`
  bool owns_type = false;
  Communicator& communicator;
  Receive* active = nullptr;  // by the calls that use the request; null: MPI's own, or not started
  bool posted = false;        // the same: MPI's own, and counted
};
// As MPI_Request_free of its request: a receive that is active goes on.
int free_persistent(Persistent& gone, MPI_Request* request) noexcept;

// The receive that `request` stands for; null: it is MPI's own.
[[nodiscard]] Receive* substitute(MPI_Request request) noexcept;
// Takes the result of a receive that is done. The handle becomes null, or inactive if persistent;
// the receive ends. Returns its code, for which the error handler has been called.
int conclude(Receive& receive, MPI_Request* request, MPI_Status* status);
// The program has let go of the request, the receive goes on.
void let_go(Receive& receive) noexcept;

// The named types need not be kept alive. A copy else, that its owner frees.
[[nodiscard]] bool is_derived(MPI_Datatype type);

// For a receive that MPI has reported with this code and the program has no handle of. If a process
// has failed that might have sent to it, MPI keeps a receive from any source: takes it back, since
// its buffer is the program's again. Returns the code of a call that blocks.
[[nodiscard]] int end_kept(MPI_Request& request, int code) noexcept;

// PMPI_Irecv and so on, whatever the width of the count.
int post(const Arguments& arguments, MPI_Request* request);
int receive_message(const Arguments& arguments, MPI_Message* message, MPI_Request* request);

}  // namespace imbrex::mpi::receive
