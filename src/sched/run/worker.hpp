// SPDX-License-Identifier: BSD-3-Clause
// Worker: a thread that runs tasks, in a loop (loop.hpp). A thread of the program's own that spawns
// or waits has a Worker too, without a loop: it is never switched.
//
// The loop runs on fibers. A task is a plain call on the loop's stack. When it suspends, that stack
// is left to it, and the worker goes on with another loop: a spare one, or a new one. To resume a
// task the loop switches to the task's stack, and is itself spare from then on.
//
// Thread safety: a Worker is its thread's, except for inbox, bell and the recorder's counters;
// threads that watch read task.
// Code that may have been suspended must ask current_worker() again: it may be in another thread.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <thread>

#include "base/parking.hpp"
#include "base/slab.hpp"
#include "fiber/fiber.hpp"
#include "sched/policy/stealing.hpp"
#include "sched/run/group.hpp"
#include "task/ending/complete.hpp"
#include "task/scope_counts.hpp"
#include "trace/trace.hpp"

namespace imbrex::sched {

struct RuntimeState;

// The task that a worker stands in. Its thread alone writes it, so that it may read it as a plain
// pointer (an atomic read costs instructions: the compiler merges none); threads that watch read it
// a moment old. What they look at by it is mapped for good, and is the task as it was made, at
// least: hence release and acquire, which cost no instruction on x86.
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

// What the system tells of a thread, from its beginning on.
struct ThreadUse {
  bool known = false;
  std::uint64_t delayed_ns = 0;        // in which it could have run, and had no processor
  std::uint64_t reads = 0, writes = 0;  // calls of the system, on files and the like
};

// What the thread's task asks for again and again, in vain: detail::go_on_asking(). Its thread
// writes; the atomic members are for threads that watch, and relaxed: nothing else goes by them.
struct Asking {
  enum class Keeps : std::uint8_t { nobody, in_callback, as_it_blocks, with_lock };

  const Task* of = nullptr;            // who asked last
  unsigned in_a_row = 0;               // in vain
  unsigned found = 0;                  // answers since the task last let another go first
  std::uint64_t used_ns = 0;           // by the thread's clock, at the last look; 0: not looked at
  ThreadUse use;                       // at the last look, if that was a long row; else unknown
  std::atomic<const Task*> task{nullptr};       // as `of`; also null: what stands in no task
  std::atomic<const char*> call{nullptr};       // null: nobody asks
  std::atomic<std::uint64_t> since_ns{0};       // of the row; at its first look
  std::atomic<std::uint64_t> at_ns{0};          // of the last look
  std::atomic<const char*> in_place{nullptr};   // what the task polls for in place, instead
  std::atomic<bool> idles{false};      // little else was done between the last two looks
  std::atomic<Keeps> keeps{Keeps::nobody};      // why it lets no other task run
  trace::Counter answers;              // questions that were answered
  std::atomic<std::uint64_t> turns{0};          // that tasks which ask in vain have gone on

  // A row of questions that has not been looked at for so long has ended, or is slow.
  static constexpr std::uint64_t row_lasts_ns = 2'000'000'000;
  [[nodiscard]] bool asked_within(const std::uint64_t ns) const noexcept {
    return call.load(std::memory_order_relaxed) != nullptr &&
           base::monotonic_ns() - at_ns.load(std::memory_order_relaxed) < ns;
  }
  [[nodiscard]] bool asks(const Task* const one) const noexcept {
    return task.load(std::memory_order_relaxed) == one && asked_within(row_lasts_ns);
  }
  // `one` does nothing but wait: it asks in vain, or polls in place.
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
  Worker* next_left = nullptr;       // of RuntimeState::left
  Membership home;                   // of the default group, or of none
  Membership* places = nullptr;      // the first of its places, which the others follow; they are
                                     // behind `home` from RuntimeState::use_places() on
  Membership* membership = &home;    // the group joined last, whose tasks go first; by serve()
  std::uint16_t group = 0;           // its id
  // The task that began here last, where recorder.watched().
  struct Begun {
    std::uint64_t task = 0;
    std::uint64_t suspensions = 0;
    std::uint64_t at = 0;  // ticks
  };
  Begun begun;
  LocalQueues* queues = nullptr;     // there, of the policy: Policy::local_queues()
  OrderedQueue* only_queue = nullptr;  // there, of all members: Policy::only_queue()
  const std::uint32_t window;        // of the options; UINT32_MAX: none
  const std::int64_t enough_most;    // the same; INT64_MAX: none, or each task is traced
  std::int64_t enough = 0;           // queued here for the group: see detail::running_body()
  const bool ties_all;               // of the options: no task may change its thread
  int callbacks = 0;                 // depth of callbacks made by a poller
  const char* callback_call = nullptr;  // what the innermost was entered for, if known
  std::uint32_t* wakes = nullptr;    // of detail::fire_all(): the places to wake, by clusters
  Task* stand_in = nullptr;          // parent of the tasks that a callback spawns: see visit.hpp
  Task* interrupted = nullptr;       // that a callback stands above, while there is a stand-in
  int stand_in_since = 0;            // `callbacks` when that began
  struct ProgressFunction* calling = nullptr;  // of the program's, that this worker is in

  // Loops that were left at a place where they hold nothing.
  fiber::Fiber* spares = nullptr;
  int spare_count = 0;

  std::uint64_t left_idle = 0;       // ticks; when it last found a task
  bool back_at_once = false;         // it idled again soon after that
  std::uint32_t keeps = 0;           // idle: so many tasks that it makes ready are for itself
  bool attends = false;              // something was outstanding at its last look between tasks
  Asking asking;
  rules::TurnOfOthers turn_of_others;  // of inbox_taken and of who gave way
  std::uint64_t stolen_at = 0;       // ticks; end of the last theft; 0: its worth is known
  std::uint64_t stolen_before = 0;   // tasks run until then
  std::uint64_t theft_price = 0;     // ticks that it cost its owner, about
  std::uint64_t theft_pause = 1;     // ticks before the next, if it was not worth it
  std::uint64_t steal_again_at = 0;  // ticks; no steal before: the last one was not worth it
  std::uint64_t changed_at = 0;      // ticks; when another one had changed the queue, at a look
  std::uint32_t changes_seen = 0;
  task::Tally tally;                 // flushed before the worker turns to anything else
  Task* found = nullptr;             // claimed; for the loop that is switched to next
  std::deque<Behind> behind;         // that gave way: the tied, all of an only worker
  std::atomic<std::size_t> behind_count{0};  // of these; any thread reads
  Task* inbox_taken = nullptr;       // from the inbox, oldest first
  // tied tasks; any thread pushes
  alignas(base::cache_line_bytes) std::atomic<Task*> inbox{nullptr};
  std::atomic<bool> in_poller{false};  // remove_poller() waits for it; owner writes
  std::atomic<bool> parked{false};     // asleep, or a foreign thread that waits; owner writes
  base::Bell bell;                     // a foreign thread's, as are the next five
  std::atomic<bool> inside{false};     // a call, or waited for like one: visit.hpp; owner writes
  std::atomic<bool> over{false};       // its runtime has ended; who ends it writes
  bool known = false;                  // it has spawned or waited
  bool own = false;                    // its thread is imbrex's: OwnThread
  bool guest = false;                  // of detail::enter_as(): no thread's, and it may spawn
  int creating = 0;                    // its tasks between create() and submit()
  alignas(base::cache_line_bytes) trace::Recorder recorder;
  void* exception_globals = nullptr; // of the thread
  fiber::Fiber native;               // the stack that the thread was born with
  Task* root = nullptr;              // the code on the native stack of worker 0 and foreign threads
  std::string message;               // detail::keep_message()
  std::thread thread;                // none for worker 0 and foreign threads
  std::atomic<bool> left{false};     // its thread has stopped, and does not touch it any more
  std::atomic<pid_t> thread_id{0};   // the system's; its thread writes, who watches reads

  [[nodiscard]] bool foreign() const noexcept { return id == no_worker; }
  // `place` is the group joined last from now on.
  void serve(Membership& place) noexcept {
    membership = &place;
    group = place.group->id;
    queues = place.group->policy->local_queues(place.index);
    only_queue = place.group->policy->only_queue();
    enough = std::min<std::int64_t>(enough_most, 64 * std::int64_t{place.group->size});
  }
  // What follows `inner` in the chain goes first. REQUIRES: that and the first one are groups
  // to which the worker belongs for good.
  void serve_first(Membership& inner) noexcept {
    Membership& place = *inner.outer;
    inner.outer = place.outer;
    place.outer = membership;
    serve(place);
  }
  // Whether there are tasks that gave way; or those, or its own tied ones, outside of the policies.
  [[nodiscard]] bool some_gave_way() const noexcept;
  [[nodiscard]] bool has_others() const noexcept;
  // Whether some group that it belongs to has ready tasks, about.
  [[nodiscard]] bool some_ready() const noexcept {
    for (const Membership* place = membership; place != nullptr; place = place->outer) {
      if (place->group->policy->size() != 0) return true;
    }
    return false;
  }
};

}  // namespace imbrex::sched
