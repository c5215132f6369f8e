// SPDX-License-Identifier: BSD-3-Clause
// The waist for plug-ins whose own threads run tasks: threads of the program as workers, groups of
// workers, and code that becomes a task where it stands. Used by omp/, and by no public header.
//
// Thread safety: unless a function says otherwise, any thread may call it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "imbrex/detail/waist.hpp"

#pragma GCC visibility push(default)

namespace imbrex::detail {

// ---- workers and groups ----------------------------------------------------------------------

// Call before start() only: so many threads may join at the same time. The processors of the
// runtime are those that the calling thread may use now, even if it is bound to one later. Unless
// IMBREX_WORKERS and IMBREX_STACK_SIZE say otherwise, the runtime makes no workers, and tasks have
// stacks of `stack_bytes` (16 KiB to 1 GiB).
void expect_joiners(int most, std::size_t stack_bytes);

// Starts the runtime if it does not run. Until the calling thread ends, it is a worker, and its
// code a task on its native stack: where that task waits, the thread runs tasks of its groups.
// Throws Error if too many threads have joined, and where start() does. False if the end of the
// program has begun, as in the destructor of a static object: the thread is no worker then.
[[nodiscard]] bool join_runtime();

// A group: workers that run the tasks of the group, and no other tasks. A task belongs to the group
// of its parent, or to the group that enter() names. The program's first task belongs to a group of
// the workers that the runtime has made.
struct Group;
[[nodiscard]] Group& take_group(int size);  // Throws Error. REQUIRES: join_runtime().
// REQUIRES: the group has no task and no members. No effect after the end of the runtime.
void give_group(Group& group) noexcept;

struct Membership;
// The worker writes it. Another thread may write it once while it is null; the value is then a
// moment old.
class OuterMembership {
 public:
  OuterMembership(Membership* membership = nullptr) noexcept : membership_(membership) {}
  OuterMembership(const OuterMembership& other) noexcept : OuterMembership(other.get()) {}
  OuterMembership& operator=(const OuterMembership& other) noexcept {
    membership_.store(other.get(), std::memory_order_relaxed);
    return *this;
  }
  operator Membership*() const noexcept { return get(); }
  Membership* operator->() const noexcept { return get(); }

 private:
  [[nodiscard]] Membership* get() const noexcept {
    return membership_.load(std::memory_order_relaxed);
  }
  std::atomic<Membership*> membership_;
};

// One place of a group, in the stack of the calling worker's code.
struct Membership {
  Group* group = nullptr;
  int index = 0;  // below the group's size; unique in the group
  OuterMembership outer;
};
// REQUIRES: join_runtime(). One thread calls both; groups may be left in any order.
void join_group(Membership& place) noexcept;
void leave_group(Membership& place) noexcept;
// The calling worker's index in `group`; -1 if it is no member.
[[nodiscard]] int place_in(const Group& group) noexcept;

// The functions and the memory that the running task was created with.
struct RunningBody {
  const BodyOps* ops = nullptr;  // null for the code of a thread, and where no task runs
  void* closure = nullptr;       // set if `ops` is
};
[[nodiscard]] RunningBody running_body() noexcept;
// The running body; sets `enough_queued` if a further task may as well be a plain call, which is
// then counted as run. It is set when the calling worker has 64 tasks (or a window) queued for each
// member of its group, which other members may take, and when neither the policy nor a trace has to
// see each task.
[[nodiscard]] RunningBody running_body(bool& enough_queued) noexcept;
// For a group of one member: true, and counts a further task as run, if that may be a plain call
// although nothing is queued, because neither the policy nor a trace has to see each task.
[[nodiscard]] bool count_call() noexcept;

// From here to leave(), the code is the task of `closure` (from create()), on this stack. The task
// is tied to this thread, as is everything else on this stack meanwhile. With `group`, the task
// belongs to that group. Its BodyOps::run is not called. Calls nest.
struct Entered {
  void* task;  // the task that runs again after leave()
  void* tied_to;
};
void enter(void* closure, Group* group, Entered& entered) noexcept;
void leave(const Entered& entered) noexcept;

// Events that fire together.
struct LinkedEvent {
  EventWord event;
  LinkedEvent* next = nullptr;  // read before `event` fires, because the object may be gone
                                // afterwards
};
// Fires each event, from `first` on. Threads that waited are woken at the end, many by one system
// call.
void fire_all(LinkedEvent* first) noexcept;

// What an observer hears of the tasks of a thread. The thread itself makes the calls, between two
// tasks: they must not wait.
struct SwitchOps {
  void (*leaves)(WaitKind why) noexcept;  // the running task is about to leave its stack
  void (*resumes)(const RunningBody& body) noexcept;  // a task that has left it is about to go on
};
// The observer hears of the calling thread's switches from now on. All threads have the same one.
// REQUIRES: join_runtime(); `ops` lives for ever.
void observe_switches(const SwitchOps& ops) noexcept;

// ---- where no task runs ----------------------------------------------------------------------

// True in a callback (enter_callback()), and between two tasks of a worker: no task can suspend
// there.
[[nodiscard]] bool in_callback() noexcept;
// The code that a callback has interrupted.
struct Interrupted {
  RunningBody body;                   // the task that the thread stood in
  const Membership* place = nullptr;  // the thread's place in the group that it joined last; null:
                                      // none
};
[[nodiscard]] Interrupted interrupted() noexcept;
// Waits for `event` where no task runs: the thread blocks. `what`, a literal, names the wait in the
// report of a wait that takes IMBREX_STALL_S.
void block(EventWord& event, const char* what) noexcept;

// ---- locks -----------------------------------------------------------------------------------

// The running task takes a lock of OpenMP (+1), or gives it back (-1). A task that holds a lock
// does not let other tasks run while it polls in a loop (go_on_asking()). Not in a callback.
void note_lock(int change) noexcept;
// Locks count after the first add_poller(). Relaxed: a hint.
extern std::atomic<bool> locks_matter;

// ---- tasks as OpenMP has them ----------------------------------------------------------------

// Suspends until the children of the running task and their descendants are complete. REQUIRES:
// in_task(). Rethrows nothing.
void wait_descendants();

// The running task, with a reference for the caller, if release_after() was called for it; else
// null.
[[nodiscard]] Completion* held_task() noexcept;

}  // namespace imbrex::detail

#pragma GCC visibility pop
