// SPDX-License-Identifier: BSD-3-Clause
// Worker: a thread that runs tasks, in a loop (loop.hpp). A thread of the program that spawns or
// waits has a Worker, too, without a loop: it is never switched.
//
// The loop runs on fibers. A task is a plain call on the loop's stack. When it suspends, it keeps
// that stack, and the worker goes on with another loop: a spare one, or a new one. To resume a task
// the loop switches to the task's stack, and is itself spare from then on.
//
// Thread safety: only its thread uses a Worker, except for inbox, bell and the recorder's counters;
// watching threads read task. Code that may have been suspended must call current_worker() again,
// because it may be in another thread.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>

#include "base/sleep/bell.hpp"
#include "base/sleep/parking.hpp"
#include "base/slab.hpp"
#include "fiber/fiber.hpp"
#include "flight/writer.hpp"
#include "sched/lend/lending.hpp"
#include "sched/policy/stealing.hpp"
#include "sched/run/group.hpp"
#include "task/ending/complete.hpp"
#include "task/scope_counts.hpp"
#include "trace/trace.hpp"

namespace imbrex::sched {

struct RuntimeState;

// The innermost task that a worker runs. Only its thread writes it, so that it may read it as a
// plain pointer (an atomic read costs instructions, because the compiler merges none); watching
// threads read it a moment old. The memory that they read through it stays mapped, and is at least
// the task as it was made: hence release and acquire, which need no fence on any processor.
class Innermost {
 public:
  Innermost& operator=(Task* task) noexcept {
    std::atomic_ref(task_).store(task, std::memory_order_release);
    return *this;
  }
  operator Task*() const noexcept { return task_; }
  Task* operator->() const noexcept { return task_; }
  // Reads the task for other threads.
  [[nodiscard]] Task* glance() noexcept {
    return std::atomic_ref(task_).load(std::memory_order_acquire);
  }

 private:
  Task* task_ = nullptr;
};

// The system's statistics of a thread, since its start.
struct ThreadUse {
  bool known = false;
  std::uint64_t delayed_ns = 0;        // time in which it was ready to run, and had no processor
  std::uint64_t reads = 0, writes = 0;  // system calls, on files and similar objects
};

// The repeated questions of the thread's task that get no positive answer: detail::go_on_asking().
// The thread writes; the atomic members are for watching threads, and relaxed, because no other
// data depends on them.
struct Asking {
  enum class Keeps : std::uint8_t { nobody, in_callback, as_it_blocks, with_lock };

  const Task* of = nullptr;            // the task that asked last
  unsigned in_a_row = 0;               // number of questions without a positive answer
  unsigned found = 0;                  // positive answers since the task last let another go first
  std::uint64_t used_ns = 0;           // by the thread's clock, at the last check; 0: not checked
  ThreadUse use;                       // at the last check, if that was a long row; else unknown
  std::atomic<const Task*> task{nullptr};       // as `of`; null also for code outside of tasks
  std::atomic<const char*> call{nullptr};       // null: no question
  std::atomic<std::uint64_t> since_ns{0};       // of the row; at its first check
  std::atomic<std::uint64_t> at_ns{0};          // of the last check
  std::atomic<const char*> in_place{nullptr};   // the call for which the task polls in place
  std::atomic<bool> idles{false};      // little else was done between the last two checks
  std::atomic<Keeps> keeps{Keeps::nobody};      // why the task lets no other task run
  trace::Counter answers;              // number of answered questions
  std::atomic<std::uint64_t> turns{0};          // times that a task resumed which asks without
                                                // success

  // A row of questions that was not checked for this time has ended, or is slow.
  static constexpr std::uint64_t row_lasts_ns = 2'000'000'000;
  [[nodiscard]] bool asked_within(const std::uint64_t ns) const noexcept {
    return call.load(std::memory_order_relaxed) != nullptr &&
           base::monotonic_ns() - at_ns.load(std::memory_order_relaxed) < ns;
  }
  [[nodiscard]] bool asks(const Task* const one) const noexcept {
    return task.load(std::memory_order_relaxed) == one && asked_within(row_lasts_ns);
  }
  // `one` only waits: it asks without success, or polls in place.
  [[nodiscard]] bool only_waits(const Task* const one) const noexcept {
    return in_place.load(std::memory_order_relaxed) != nullptr ||
           (idles.load(std::memory_order_relaxed) && asks(one));
  }

  void begin(const Task* const asks) noexcept {
    of = asks;
    in_a_row = 0;
    found = 0;
  }
};

struct Worker {
  Worker(RuntimeState& its_runtime, int its_id);

  // The task that the thread runs, and the stack that it runs on.
  Innermost task;                    // null: in the loop
  fiber::Fiber* fiber = nullptr;
  base::SlabCache tasks;             // descriptors
  base::SlabCache small;             // families, edges
  std::uint64_t next_id = 0, last_id = 0;  // a block of task ids
  RuntimeState* runtime;
  const int id;                      // no_worker: a foreign thread
  bool joined = false;               // a thread that imbrex has not made
  long displacements = 0;            // how often the system has given its processor to another
                                     // thread, as last read by lost_processor()
  Worker* next_left = nullptr;       // link of RuntimeState::left
  Membership home;                   // of the default group, or of no group
  Membership* places = nullptr;      // the first of its places, followed by the others; they are
                                     // behind `home` from RuntimeState::use_places() on
  Membership* membership = &home;    // the group joined last, whose tasks go first; set by serve()
  std::uint16_t group = 0;           // id of that group
  // The task that began here last, if recorder.watched().
  struct Begun {
    std::uint64_t task = 0;
    std::uint64_t suspensions = 0;
    std::uint64_t at = 0;  // ticks
  };
  Begun begun;
  LocalQueues* queues = nullptr;     // the policy's queues for it there: Policy::local_queues()
  OrderedQueue* only_queue = nullptr;  // the queue of all members there: Policy::only_queue()
  const std::uint32_t window;        // of the options; UINT32_MAX: none
  const std::int64_t enough_most;    // from the options; INT64_MAX: none, or each task is traced
  std::int64_t enough = 0;           // number queued here for the group: see detail::running_body()
  const bool ties_all;               // from the options: no task may change its thread
  int callbacks = 0;                 // depth of callbacks made by a poller
  const char* callback_call = nullptr;  // the call that entered the innermost callback, if known
  std::uint32_t* wakes = nullptr;    // for detail::fire_all(): the places to wake, by clusters
  Task* stand_in = nullptr;          // parent of tasks that a callback spawns: see visit.hpp
  Task* interrupted = nullptr;       // the task below a callback, while there is a stand-in
  int stand_in_since = 0;            // value of `callbacks` at that begin
  struct ProgressFunction* calling = nullptr;  // the progress function of the program that this
                                               // worker runs

  // Loops that were left at a place where they own nothing.
  fiber::Fiber* spares = nullptr;
  int spare_count = 0;

  std::uint64_t left_idle = 0;       // ticks; the last time that it found a task
  bool back_at_once = false;         // it was idle again soon after that
  std::uint32_t keeps = 0;           // idle: the number of tasks made ready that it keeps for
                                     // itself
  bool owes_wake_up = false;         // see pass_wake_up_on()
  bool drowsy = false;               // it has announced a sleep, and still looks for work
  bool attends = false;              // something was outstanding at its last check between tasks
  Asking asking;
  rules::TurnOfOthers turn_of_others;  // the turn of inbox_taken and of tasks that gave way
  std::uint64_t stolen_at = 0;       // ticks; end of the last theft; 0: its worth is known
  std::uint64_t stolen_before = 0;   // tasks run until then
  std::uint64_t theft_price = 0;     // ticks that the theft cost the owner, about
  std::uint64_t theft_pause = 1;     // ticks before the next theft, if this one was not worth it
  std::uint64_t steal_again_at = 0;  // ticks; no theft before: the last one was not worth it
  std::uint64_t changed_at = 0;      // ticks; a check found that another worker had changed the
                                     // queue
  std::uint32_t changes_seen = 0;
  task::Tally tally;                 // flushed before the worker turns to anything else
  Task* found = nullptr;             // claimed; for the loop that is switched to next
  std::deque<Behind> behind;         // tasks that gave way: the tied ones, or all of an only worker
  std::atomic<std::size_t> behind_count{0};  // their number; any thread reads
  Task* inbox_taken = nullptr;       // from the inbox, oldest first
  // tied tasks; any thread pushes
  alignas(base::cache_line_bytes) std::atomic<Task*> inbox{nullptr};
  std::atomic<bool> in_poller{false};  // remove_poller() waits for it; owner writes
  std::atomic<bool> parked{false};     // asleep, or a foreign thread that waits; owner writes
  base::Bell bell;                     // for a foreign thread, as are the next five
  std::atomic<bool> inside{false};     // in a call, or waited for as if in one: visit.hpp; owner
                                       // writes
  std::atomic<bool> over{false};       // its runtime has ended; the ending thread writes
  bool known = false;                  // it has spawned or waited
  bool own = false;                    // its thread belongs to imbrex: OwnThread
  bool guest = false;                  // of detail::enter_as(): belongs to no thread, and may spawn
  int creating = 0;                    // its tasks between create() and submit()
  alignas(base::cache_line_bytes) trace::Recorder recorder;
  flight::Ring flight;               // of the flight recorder
  void* exception_globals = nullptr; // of the thread
  fiber::Fiber native;               // the stack of the thread's start
  Task* root = nullptr;              // the code on the native stack of worker 0 and foreign threads
  std::string message;               // detail::keep_message()
  std::thread thread;                // none for worker 0 and foreign threads
  std::atomic<bool> left{false};     // its thread has stopped, and does not use the worker any more
  std::atomic<pid_t> thread_id{0};   // the system's; its thread writes, watching threads read
  Seat seat;                         // its processor, if ranks lend theirs

  [[nodiscard]] bool foreign() const noexcept { return id == no_worker; }
  // `place` is the group joined last from now on.
  void serve(Membership& place) noexcept {
    membership = &place;
    group = place.group->id;
    // A spare worker takes no short way: its search for a task then finds that its processor must
    // go back, and other workers need not check that.
    queues = seat.spare ? nullptr : place.group->policy->local_queues(place.index);
    only_queue = seat.spare ? nullptr : place.group->policy->only_queue();
    enough = std::min<std::int64_t>(enough_most, 64 * std::int64_t{place.group->size});
  }
  // The group after `inner` in the chain goes first. REQUIRES: the worker belongs to that group and
  // to the first one for good.
  void serve_first(Membership& inner) noexcept {
    Membership& place = *inner.outer;
    inner.outer = place.outer;
    place.outer = membership;
    serve(place);
  }
  // Whether there are tasks that gave way; the second form also counts its own tied ones, outside
  // of the policies.
  [[nodiscard]] bool some_gave_way() const noexcept;
  [[nodiscard]] bool has_others() const noexcept;
  // Whether a group that it belongs to has ready tasks, about.
  [[nodiscard]] bool some_ready() const noexcept {
    for (const Membership* place = membership; place != nullptr; place = place->outer) {
      if (place->group->policy->size() != 0) return true;
    }
    return false;
  }
};

}  // namespace imbrex::sched
