// SPDX-License-Identifier: BSD-3-Clause
// The completion engine: finds complete MPI operations while the tasks that wait for them are
// suspended. Used by wait.cpp and when_request.cpp; knows no task: each operation has a function
// for its completion.
#pragma once

#include <mpi.h>
#include <pthread.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/abi/completion_calls.hpp"
#include "mpi/engine/forever.hpp"

namespace imbrex::mpi {

// The effect of a call on messages. calls.def gives it for its calls.
enum class Kind : std::uint8_t {
  other,      // names no message: waits, files, functions outside of MPI
  send,       // to `peer`
  receive,    // `peer` and `tag` select the message; probes, too
  collective  // of all ranks of `comm`
};

// The call of an operation, for reports, traces and errors.
struct Call {
  static constexpr int none = INT_MIN;
  const char* name;                       // a literal
  MPI_Comm comm = MPI_COMM_NULL;          // null if the call names none
  int peer = none;                        // may be MPI_ANY_SOURCE
  int tag = none;                         // may be MPI_ANY_TAG
  MPI_Count count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;  // null: size unknown
  Kind kind = Kind::other;
  bool at_once = false;                   // the call returns before the operation is complete
  bool throws = false;                    // a call of C++: its MpiError is the report
  bool waits_here = false;                // a send that was not given to MPI yet
  bool is_tested_singly = false;          // MPI_Testsome would give a wrong error for the request

  // True if this library must call the handler of `comm` when the request of this call has failed,
  // because MPI does not. A wait for a request that the program has made names no `comm`.
  [[nodiscard]] bool owes_handler() const noexcept {
    if (has<Quirk::requests_blame_world>()) return comm != MPI_COMM_NULL;
    return has<Quirk::collectives_blame_world>() && kind == Kind::collective &&
           comm != MPI_COMM_NULL;
  }

  // A call that names no communicator owes the handler that MPI would have called.
  void name_handler(const Outcome& outcome) noexcept {
    if (outcome.owed && comm == MPI_COMM_NULL && !throws) comm = outcome.whose;
  }
};

// While it lives, this thread runs no task: MPI may call functions of the user while it makes
// progress, and they cannot suspend.
class Callback {
 public:
  Callback() noexcept {
    forget_kept();
    detail::enter_callback();
  }
  explicit Callback(const Call& call) noexcept {
    forget_kept();
    detail::enter_callback(call.name);
  }
  ~Callback() { detail::leave_callback(); }
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;
};

// One MPI operation in flight. It lies in memory of its owner (mostly on the waiting task's stack)
// until `complete` has been called, and is not moved.
struct Operation {
  // REQUIRES: set by the owner before Engine::add().
  Call call;
  void (*complete)(Operation& self) noexcept;  // called once, without a lock; may end `self`
  MPI_Request request = MPI_REQUEST_NULL;      // tested together with others, unless `ask` is set
  // Asks MPI; returns true once the operation is complete, and `code` and `handler_ran` are set.
  bool (*ask)(Operation& self) = nullptr;

  detail::TaskLabel task;  // the calling task; set by Engine::add()

  Operation* next = nullptr;  // for the engine

  // Set by the engine, valid from `complete` on. This order loses nothing to alignment: the code
  // lies in padding after the handler, and a derived class goes on after the flag.
  MPI_Status status = {};
  // An error handler that MPI has called meanwhile, for the task whose operation failed.
  [[no_unique_address]] KeptHandler handler = {};
  int code = MPI_SUCCESS;
  bool handler_ran = false;  // MPI has called an error handler, or `handler` has the call

  // Takes MPI's result: sets `code`, and the handler that is owed.
  void take(const Outcome& outcome) noexcept {
    code = outcome.code;
    handler_ran = code != MPI_SUCCESS && !outcome.owed;
    handler = outcome.kept;
    call.name_handler(outcome);
  }
};

// The operations that one round of the engine has found complete so far. Feeds get it.
class Round {
 public:
  // `operation` is complete: code and status are set.
  void complete(Operation& operation) noexcept {
    note(operation);
    operation.next = nullptr;
    *end_ = &operation;
    end_ = &operation.next;
  }
  // `operation.request` is tested from now on.
  virtual void under_way(Operation& operation) = 0;

 private:
  // In the file of the flight recorder.
  static void note(const Operation& operation) noexcept;

 protected:
  Round() = default;
  ~Round() = default;
  Operation* first_ = nullptr;
  Operation** end_ = &first_;
};

// Operations that are not tested one by one: a communicator whose receives are matched here. The
// feed counts them by Engine::expect() when they begin.
class Feed {
 public:
  virtual ~Feed() = default;
  // Asks MPI, under the engine's lock. False once nothing is open: the feed is then dropped until
  // it is added again.
  [[nodiscard]] virtual bool draw(Round& round) = 0;
  // Visits all its waiting operations, under the engine's lock.
  virtual void for_each(const std::function<void(const Operation&)>& visit) = 0;

 private:
  friend class Engine;
  Feed* next_ = nullptr;
};

// Thread safety: any thread uses every member.
// Invariants:
//   (1) an operation is in exactly one of intake, singles, groups, a feed, or a round.
//   (2) only the thread that holds `lock_` uses the guarded members.
//   (3) `outstanding_` counts an operation until its `complete` has returned, so that the woken
//       task is visible before the count is zero.
class Engine {
 public:
  void add(Operation& operation) noexcept;

  // REQUIRES: not added, or draw() has returned false since.
  void add(Feed& feed) noexcept;
  // Called for an operation of a feed: expect() when it begins without a waiter, attend() when a
  // task waits for it, leave_feed() when it has completed; then also withdraw(), if no round
  // completed it.
  void expect() noexcept;
  void attend() noexcept { hints_.fetch_sub(one_unattended, std::memory_order_relaxed); }
  void leave_feed() noexcept { hints_.fetch_sub(one_fed, std::memory_order_relaxed); }
  void withdraw() noexcept { outstanding_.fetch_sub(1, std::memory_order_release); }
  // An operation of a feed has become an ordinary one, outside of a round.
  void hand_over(Operation& operation) noexcept { push(operation); }

  // True if receives are open that only a poll brings forward: a thread that waits in MPI must also
  // poll.
  [[nodiscard]] bool must_feed() const noexcept {
    return hints_.load(std::memory_order_relaxed) % one_unattended != 0;
  }
  // True if a task waits for an operation that only a poll completes.
  [[nodiscard]] bool attended() const noexcept {
    const std::uint64_t unattended = hints_.load(std::memory_order_relaxed) / one_unattended;
    return outstanding_.load(std::memory_order_relaxed) > static_cast<std::int64_t>(unattended);
  }
  // Asks MPI once for all operations in flight, unless another thread does so now. Returns the
  // number of operations that it completed. Never suspends.
  int poll() noexcept;
  [[nodiscard]] const std::atomic<int>& outstanding() const noexcept { return outstanding_; }

  // Operations in flight, about.
  [[nodiscard]] int in_flight() const noexcept {
    return outstanding_.load(std::memory_order_relaxed) -
           polls_wanted_.load(std::memory_order_relaxed);
  }

  // Requests polls without an operation here: for active messages. The request counts as one
  // outstanding operation until it is called off. Never suspends.
  void want_polls() noexcept;
  void call_off_polls(int count) noexcept;
  // Something (or, with -1, one thing less) is open that waits for the program, and that no poll
  // brings forward: it counts only for reports of stalls.
  void hold(const int change) noexcept { held_.fetch_add(change, std::memory_order_relaxed); }
  [[nodiscard]] const std::atomic<int>& held() const noexcept { return held_; }

  // True if a report waits for pollers to leave.
  [[nodiscard]] bool is_held_still() const noexcept {
    return wanted_.load(std::memory_order_relaxed) != 0;
  }

  // For the callback modes: true if one of a few single requests, others at each call, is complete
  // by `is_complete`; completes nothing, and gives up if another thread has the lock.
  [[nodiscard]] bool glance(bool (*is_complete)(MPI_Request)) noexcept;

  // True if this thread is in poll(): MPI calls the caller.
  [[nodiscard]] bool polling_here() const noexcept;

  // Calls visit(operation) for each operation in flight, then look(settled), all with the lock
  // held: MPI completes none meanwhile, and no active message is handled. `settled`: every
  // completed operation is known to its owner.
  void hold_still(const std::function<void(const Operation&)>& visit,
                  const std::function<void(bool settled)>& look) {
    while (!try_to_hold_still(visit, look)) {
    }
  }
  // hold_still(), but calls neither and returns false if a thread has been in MPI for two seconds:
  // in a function of the program that MPI has called, for example.
  [[nodiscard]] bool try_to_hold_still(const std::function<void(const Operation&)>& visit,
                                       const std::function<void(bool settled)>& look);

 private:
  class Done;

  void push(Operation& operation) noexcept;
  [[nodiscard]] bool has_open(int open) const noexcept;
  void take_intake() IMBREX_REQUIRES(lock_);
  void take_feeds() IMBREX_REQUIRES(lock_);
  void draw(Done& done) IMBREX_REQUIRES(lock_);
  void ask_singles(Done& done) IMBREX_REQUIRES(lock_);
  void ask_each(int first, int count, Done& done) IMBREX_REQUIRES(lock_);
  void ask_for_complete(int first, int count, Done& done) IMBREX_REQUIRES(lock_);
  void settle_errors(int first, int count, int found, const Outcome& outcome, Done& done)
      IMBREX_REQUIRES(lock_);
  void finish(int place, const MPI_Status& status, int code, Done& done) IMBREX_REQUIRES(lock_);
  void forget_finished(int first, int count) IMBREX_REQUIRES(lock_);
  void ask_groups(Done& done) IMBREX_REQUIRES(lock_);

  std::atomic<int> outstanding_{0};            // any thread; see (3)
  std::atomic<int> polls_wanted_{0};           // any thread; contained in outstanding_
  std::atomic<int> held_{0};                   // any thread; a hint for later checks, so relaxed
  // Two counts of outstanding operations, in one word since both grow together: operations of feeds
  // (the low half), and those without a waiter (the high half). Hints, so relaxed.
  static constexpr std::uint64_t one_fed = 1;
  static constexpr std::uint64_t one_unattended = std::uint64_t{1} << 32;
  std::atomic<std::uint64_t> hints_{0};
  std::atomic<Operation*> intake_{nullptr};    // pushed by any thread, emptied under the lock
  std::atomic<Feed*> feed_intake_{nullptr};    // pushed by any thread, emptied under the lock
  std::atomic<int> wanted_{0};                 // number of threads in hold_still() that wait for it
  std::atomic<pthread_t> poller_{};            // the holder; only compared with oneself

  base::SpinLock lock_;                        // only tried
  // No bound: one entry for each suspended task or pending future.
  std::vector<MPI_Request> requests_ IMBREX_GUARDED_BY(lock_);  // singles, compact
  // Same positions; null: finished in this round.
  std::vector<Operation*> singles_ IMBREX_GUARDED_BY(lock_);
  std::vector<Operation*> groups_ IMBREX_GUARDED_BY(lock_);
  std::vector<Feed*> feeds_ IMBREX_GUARDED_BY(lock_);
  std::vector<int> indices_ IMBREX_GUARDED_BY(lock_);
  std::vector<MPI_Status> statuses_ IMBREX_GUARDED_BY(lock_);
  int next_single_ IMBREX_GUARDED_BY(lock_) = 0;  // where the next round begins
  int turn_ IMBREX_GUARDED_BY(lock_) = 0;         // counts in ask_for_complete()
  std::size_t next_group_ IMBREX_GUARDED_BY(lock_) = 0;
  std::size_t next_feed_ IMBREX_GUARDED_BY(lock_) = 0;
  std::size_t next_glance_ IMBREX_GUARDED_BY(lock_) = 0;
};

// The engine of this process: workers may poll while static objects are destroyed.
inline constinit Forever<Engine> the_engine;
[[nodiscard]] inline Engine& engine() noexcept { return the_engine.it; }

}  // namespace imbrex::mpi
