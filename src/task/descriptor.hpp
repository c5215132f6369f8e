// SPDX-License-Identifier: BSD-3-Clause
// Task: a descriptor, and the pure half of its life: counts, claims, and which tasks become ready.
// Knows neither threads nor queues; sched/ acts on the results of these functions.
//
// Memory: [Task][closure, to 64][Accesses]. The closure holds the result once the body has run.
// Invariants:
//   (1) a task may run, or resume, when `pending` is zero. Its spawner holds one count until it has
//       registered the task with all tasks that it follows. A waiting task has one count, held by
//       the event that it waits for, which learns of it only when the worker has left the task's
//       stack (sched/run/loop/).
//   (2) a queue entry owns one reference. The worker that takes an entry out claims the task by a
//       change of `state`; if that fails the entry was stale and its reference is dropped. The
//       reference of a claimed entry goes along with the run, until the end of the task's life (3).
//   (3) a task is complete when its body has ended and `holds` is zero; its life ends when its
//       descendants are complete, too. The descriptor is reused at reference count zero.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <source_location>

#include "base/check.hpp"
#include "imbrex/detail/waist.hpp"
#include "task/event_word.hpp"
#include "trace/races.hpp"

namespace imbrex::task {

struct AccessBlock;  // access_block.hpp
class DependTable;   // access/depend.hpp
struct Scope;        // scope_counts.hpp
struct Family;       // scope_counts.hpp

enum class State : std::uint8_t {
  free,       // no task: the slot lies in a free list
  created,    // pending counts keep it from running
  ready,      // queued, never run
  running,    // claimed: on a stack, perhaps below a task that it waits for
  suspended,  // left its worker; pending counts keep it
  resumable,  // queued again
  ended,      // the body has ended; completion is held, or descendants live
  complete    // (3)
};

// The ways by which code other than its creator reaches a task that has not begun.
enum class Reach : std::uint8_t {
  entry,   // one queue entry
  future,  // perhaps a second entry, for a waiting task; each future has a reference
  flow     // perhaps a second entry, by code that followed an edge to it, without a reference
};

struct alignas(base::cache_line_bytes) Task : detail::Completion {
  std::atomic<int> pending;      // (1); any thread
  std::atomic<State> state;      // change_state() only
  bool tied;                     // resumes on the thread that started it
  std::atomic<bool> root;        // no body: the code of a thread; read in slots that are reused
  bool failed_late;              // only if held(): has the body's result beside the error of a hold
  const detail::BodyOps* ops;    // null for a root
  Scope* scope;                  // the scope that counts it
  Task* parent;                  // lives as long as its children do
  Task* next_ready;              // link in a ReadyList; owned by the list

  std::uint64_t id;              // order of creation
  const char* name;
  std::source_location where;
  AccessBlock* accesses;         // null if it declared none
  void* fiber;                   // sched/: where it is suspended; null before its first run
  Family* family;                // made by its first child, or by its spawner if it is registered
                                 // on a phaser; otherwise only the running task uses it
  std::atomic<int> priority;     // may rise while the task is queued
  std::atomic<int> holds;        // number of events that completion waits for, and 1 for the body
  std::uint16_t profile;         // Profiles::of(); only under a policy that learns
  std::uint16_t group;           // the workers that run it; inherited from its parent
  std::uint8_t slot_class;       // class of the slab; 0: a large slot
  // Number of OpenMP locks that it holds: note_lock() of groups.hpp. 255 stays 255. Running task
  // only.
  std::uint8_t locks;
  Reach reach;                   // set before the task is submitted
  // The functions that the task has called; running task only: set_blocking() and
  // release_by_blocks() of plug_ins.hpp, hold_completion().
  enum Wish : std::uint8_t {
    blocking = 1,
    by_blocks = 2,
    holds_itself = 4,
    repeats = 8,  // it is a node (cycle/node.hpp)
    skipped = 16  // this instance of a node does not run
  };
  std::uint8_t wishes;

  [[nodiscard]] bool is_root() const noexcept { return root.load(std::memory_order_relaxed); }
  [[nodiscard]] bool held() const noexcept { return (wishes & holds_itself) != 0; }
  [[nodiscard]] void* closure() noexcept {
    return reinterpret_cast<std::byte*>(this) + sizeof(Task);
  }
  [[nodiscard]] static Task& of_closure(void* closure) noexcept {
    return *reinterpret_cast<Task*>(static_cast<std::byte*>(closure) - sizeof(Task));
  }

  // Gives back one pending count; true if the caller must now make the task ready.
  [[nodiscard]] bool release() noexcept {
    // Only the last holder can see 1 here, and no other thread may then change it. acquire and
    // acq_rel: the worker that runs the task sees the writes of each releaser.
    if (pending.load(std::memory_order_acquire) == 1) {
      pending.store(0, std::memory_order_relaxed);
      return true;
    }
    return pending.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
};

// The fields in which a new task differs from others.
struct Birth {
  std::uint64_t id;
  const char* name;
  const std::source_location& where;
  const detail::BodyOps* ops;
  Task* parent;
  Scope* scope;
  int priority;
  std::uint16_t group;
  std::uint8_t slot_class;
  bool tied;
};
// Fills a descriptor, with one reference, in raw memory; except `pending` and `reach`, which the
// submitting code sets.
inline void initialise(Task& task, const Birth& birth) noexcept {
  task.references.store(1, std::memory_order_relaxed);
  task.kind = detail::CompletionKind::task;
  task.shared.store(false, std::memory_order_relaxed);
  task.event.head.store(0, std::memory_order_relaxed);
  task.failure = nullptr;
  task.state.store(State::created, std::memory_order_relaxed);
  task.tied = birth.tied;
  task.root.store(false, std::memory_order_relaxed);
  task.ops = birth.ops;
  task.scope = birth.scope;
  task.parent = birth.parent;
  task.id = birth.id;
  task.name = birth.name;
  task.where = birth.where;
  task.accesses = nullptr;
  task.fiber = nullptr;
  task.family = nullptr;
  task.priority.store(birth.priority, std::memory_order_relaxed);
  task.slot_class = birth.slot_class;
  task.group = birth.group;
  task.locks = 0;
  task.wishes = 0;
}

// The only function that changes a state, where the state is not contended.
inline void change_state(Task& task, [[maybe_unused]] const State from, const State to) noexcept {
  IMBREX_ASSERT(task.state.load(std::memory_order_relaxed) == from,
                "task \"{}\" in state {}, not {}", task.name,
                static_cast<int>(task.state.load()), static_cast<int>(from));
  task.state.store(to, std::memory_order_release);  // pairs with claim(), and with reports
}

// An entry of a queue: a task, and whether it was queued to begin or to resume. Without the flag,
// an entry left over from the beginning could resume the task, perhaps on a thread that must not.
struct Entry {
  Task* task = nullptr;
  bool resumed = false;
  explicit operator bool() const noexcept { return task != nullptr; }
};

// Claims a queued task for running; false if another entry was faster. The caller owns the entry's
// reference.
[[nodiscard]] inline bool claim(const Entry& entry) noexcept {
  Task& task = *entry.task;
  if (entry.resumed) {  // one entry for each time that it becomes resumable
    task.state.store(State::running, std::memory_order_relaxed);
    return true;
  }
  // With one reference, this entry is the only way to the task, unless priority flows to it. The
  // references are read before the state, because the run of another entry may end in between.
  const bool alone = task.reach == Reach::entry ||
                     (task.reach == Reach::future &&
                      task.references.load(std::memory_order_acquire) == 1);
  State state = task.state.load(std::memory_order_acquire);
  if (state != State::ready) return false;
  if (alone) {
    task.state.store(State::running, std::memory_order_relaxed);
    return true;
  }
  return task.state.compare_exchange_strong(state, State::running, std::memory_order_acq_rel,
                                            std::memory_order_relaxed);
}

[[nodiscard]] inline bool is_task(const detail::Completion& completion) noexcept {
  return completion.kind == detail::CompletionKind::task;
}

// Takes a reference; the caller already holds one.
inline void add_reference(detail::Completion& completion) noexcept {
  completion.references.fetch_add(1, std::memory_order_relaxed);
}
// Drops `count` references. True if the last one is gone.
[[nodiscard]] inline bool drop(detail::Completion& completion, const std::uint32_t count) noexcept {
  trace::races::before(&completion.references);
  // acquire: the only holder, as in release()
  if (completion.references.load(std::memory_order_acquire) == count) {
    completion.references.store(0, std::memory_order_relaxed);
    return true;
  }
  return completion.references.fetch_sub(count, std::memory_order_acq_rel) == count;
}
[[nodiscard]] inline bool drop(detail::Completion& completion) noexcept {
  return drop(completion, 1);
}

// Drops a reference to a task; the last one makes it dead.
inline void lose(Task& task, Outcome& outcome) noexcept;

// `task` has no pending count: it becomes ready, or waits for a mutex of its mutexinoutset. A new
// task keeps its state until it is queued. Once the state is `ready`, other threads may give the
// task a second entry, and it may run and enter another list while this list is still being
// emptied.
inline void make_ready(Task& task, ReadyList& ready) noexcept;
// access/mutexes.cpp
[[gnu::noinline]] void make_ready_with_mutexes(Task& task, ReadyList& ready) noexcept;
[[nodiscard]] bool needs_mutexes(const Task& task) noexcept;

// ---- bodies of event_word.hpp ----------------------------------------------------------------

inline void ReadyList::push(Task& task) noexcept {
  task.next_ready = head;
  head = &task;
}
inline Task* ReadyList::pop() noexcept {
  Task* const task = head;
  if (task != nullptr) head = task->next_ready;
  return task;
}

inline void make_ready(Task& task, ReadyList& ready) noexcept {
  if (task.state.load(std::memory_order_relaxed) == State::suspended) {
    change_state(task, State::suspended, State::resumable);
  } else if (task.accesses != nullptr && needs_mutexes(task)) [[unlikely]] {
    make_ready_with_mutexes(task, ready);
    return;
  }
  ready.push(task);
}

inline void lose(Task& task, Outcome& outcome) noexcept {
  if (drop(task)) outcome.dead.push(task);
}

inline Waiter* event::let_go(Waiter& waiter, Outcome& outcome) noexcept {
  if (waiter.notify != nullptr) return waiter.notify(waiter, outcome);
  if (waiter.task->release()) make_ready(*waiter.task, outcome.ready);
  return nullptr;
}

static_assert(sizeof(Task) == 2 * base::cache_line_bytes);

}  // namespace imbrex::task
