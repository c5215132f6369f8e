// SPDX-License-Identifier: BSD-3-Clause
// The waist for plug-ins whose own threads run tasks: threads of the program's own as workers,
// groups of workers, and code that becomes a task where it stands. Used by omp/, and by no public
// header.
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

// Before start() only: so many threads may join at the same time. The processors of the runtime are
// those that the calling thread may use now, even if it is bound to one later. Unless
// IMBREX_WORKERS and IMBREX_STACK_SIZE say otherwise, the runtime makes none of its own, and tasks
// have stacks of `stack_bytes` (16 KiB to 1 GiB).
void expect_joiners(int most, std::size_t stack_bytes);

// Starts the runtime if it does not run. The calling thread becomes a worker, if it is none, and
// its code a task on its native stack: where that waits, the thread runs tasks of its groups. Until
// the thread ends. Throws Error if there are too many, and where start() does.
void join_runtime();

// A group: workers that run each other's tasks, and nobody else's. A task belongs to the group of
// its parent, or to the one that enter() names. The program's first task belongs to a group of the
// workers that the runtime has made.
struct Group;
[[nodiscard]] Group& take_group(int size);  // Throws Error. REQUIRES: join_runtime().
// REQUIRES: it has no task, nor members. Nothing where the runtime has ended, and all groups.
void give_group(Group& group) noexcept;

struct Membership;
// Written by the worker; once, while it is null, perhaps by another thread: then a moment old.
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

// One place of a group, in the memory of the calling worker's code.
struct Membership {
  Group* group = nullptr;
  int index = 0;  // below the group's size; nobody else's
  OuterMembership outer;
};
// REQUIRES: join_runtime(). Both by the same thread; groups may be left in any order.
void join_group(Membership& place) noexcept;
void leave_group(Membership& place) noexcept;
// The calling worker's index in `group`, -1 if it does not belong to it.
[[nodiscard]] int place_in(const Group& group) noexcept;

// The functions and the memory that the running task was created with.
struct RunningBody {
  const BodyOps* ops = nullptr;  // null for the code of a thread, and where no task runs
  void* closure = nullptr;       // if there are ops
};
[[nodiscard]] RunningBody running_body() noexcept;
// The same, and whether a further task may as well be a call, which has then been counted as run:
// the calling worker has 64 tasks queued for each member of its group, or a window's worth, that
// others may take, and neither the policy nor a trace has to see each task.
[[nodiscard]] RunningBody running_body(bool& enough_queued) noexcept;

// The code that follows, up to leave(), is the task of `closure` (from create()), on this stack. It
// is tied to this thread, and so is meanwhile whatever else stands on this stack. With `group`, it
// belongs to that. Its BodyOps::run is not called. Calls nest.
struct Entered {
  void* task;  // that runs again after leave()
  void* tied_to;
};
void enter(void* closure, Group* group, Entered& entered) noexcept;
void leave(const Entered& entered) noexcept;

// Events that fire together.
struct LinkedEvent {
  EventWord event;
  LinkedEvent* next = nullptr;  // read before `event` fires: then the object may be gone
};
// As fire() for each, from `first` on; the threads of those who waited are woken at the end, many
// by one call of the system.
void fire_all(LinkedEvent* first) noexcept;

// ---- where no task runs ----------------------------------------------------------------------

// True in a callback (enter_callback()), and where a worker stands between two tasks: nothing can
// be suspended there.
[[nodiscard]] bool in_callback() noexcept;
// The code that a callback has interrupted.
struct Interrupted {
  RunningBody body;                   // of the task that the thread stood in
  const Membership* place = nullptr;  // of the thread in the group that it joined last; null: none
};
[[nodiscard]] Interrupted interrupted() noexcept;
// As await(), where no task runs: the thread blocks. `what`, a literal, names the wait in the
// report of one that takes IMBREX_STALL_S.
void block(EventWord& event, const char* what) noexcept;

// ---- locks -----------------------------------------------------------------------------------

// The running task takes a lock that is OpenMP's (+1), or gives it back (-1). A task that has one
// lets no other run while it asks in a loop (go_on_asking()). Not in a callback.
void note_lock(int change) noexcept;
// Locks count from the first add_poller() on. Relaxed: a hint.
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
