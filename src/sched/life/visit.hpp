// SPDX-License-Identifier: BSD-3-Clause
// Visits: how a thread that is no worker calls the runtime, which may end at any time.
//
// Such a thread has a Worker of its own, without a loop, from its first call on; but it is its
// current_worker() only during a call. The functions of the waist therefore find none, which costs
// workers nothing, and begin again within a Visit.
//
// The protocol: a thread that enters sets `inside` and then checks whether the door is closed. The
// thread that ends the runtime closes the door and then checks which threads are inside (light and
// heavy fence, arch.hpp). Either the visitor sees the closed door, takes its mark back and waits
// outside, or the other thread sees that it is inside, and waits. A thread enters for the first
// time under Life::lock, and is in RuntimeState::foreign before it checks the door. Behind the
// closed door, with no thread inside, the ending thread owns everything of those threads: it takes
// their caches and roots, and marks each Worker as `over`. The Worker itself belongs to its thread,
// which drops it at its next call, or when it ends. A waiting thread is inside, too, but touches
// nothing as long as it is `parked` and its root suspended: the end does not wait for it. If a task
// will wake it, that task ends before the runtime does, so the thread is woken, and leaves. If only
// another such thread can wake it, it stays behind, and keeps the runtime's memory; the thread that
// wakes it then needs no runtime (let_go_after_end()).
#pragma once

#include <mutex>

#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

// The other global: null while no runtime runs.
[[nodiscard]] RuntimeState* runtime() noexcept;
// A thread that holds this lock and has found a runtime keeps that from being destroyed. For
// watching threads.
[[nodiscard]] std::mutex& end_lock() noexcept;

enum class Purpose : std::uint8_t {
  spawns,  // starts the runtime if there is none; throws Error after the end
  waits,   // needs a running runtime
  passes   // needs a running runtime, and does not count as a use of tasks (Worker::known)
};

// While it lives, the calling thread's worker is current_worker(). REQUIRES: it was null.
class Visit {
 public:
  explicit Visit(Purpose purpose);
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  [[nodiscard]] bool admitted() const noexcept { return admitted_; }  // false: no runtime runs

 private:
  bool admitted_ = false;
};

[[nodiscard]] inline bool is_outside() noexcept { return current_worker() == nullptr; }

// Repeats the call, inside; calls otherwise() if no runtime runs. REQUIRES: is_outside().
template <class Call, class Otherwise>
[[gnu::cold, gnu::noinline]] auto visit(const Purpose purpose, Call call, Otherwise otherwise) {
  const Visit here(purpose);
  return here.admitted() ? call() : otherwise();
}
template <class Call>
[[gnu::cold, gnu::noinline]] auto visit_to_spawn(Call call) {
  const Visit here(Purpose::spawns);
  return call();
}

// Between detail::create() and submit() or discard() the thread is not inside, but the end waits
// for it.
void begin_creation() noexcept;
void end_creation() noexcept;

// The calling thread's worker: the current one, or the worker of its visits, whose runtime may end
// at any time. Null if it has none, or none that is known(), or if its runtime has ended.
[[nodiscard]] Worker* known_worker() noexcept;

// The calling thread's worker, known or not, whose runtime may have ended; null: none. The caller
// must not use data of the runtime through it.
[[nodiscard]] inline Worker* thread_worker() noexcept {
  Worker* const worker = current_worker();
  return worker != nullptr ? worker : visitor();
}

// A callback spawns tasks where no task runs: their parent is a stand-in, which is the thread's
// task from the first such spawn until the callback ends. They belong to Groups::in_place, so each
// runs when it is submitted, and the stand-in never has an incomplete child. REQUIRES: a callback
// of `worker`'s thread, and no stand-in yet.
void begin_stand_in(Worker& worker);
// One callback of that thread ends. REQUIRES: there is a stand-in, perhaps of a callback around.
void leave_stand_in(Worker& worker) noexcept;

// destroy() for a thread that is outside.
[[gnu::cold]] void destroy_outside(detail::Completion& completion) noexcept;
// let_go() where no runtime runs: only waiting threads resume.
[[gnu::cold]] void let_go_after_end(task::Waiter& first) noexcept;

// Blocks the calling thread until `event` fires, as if the wait had begun before the end of the
// runtime. False, at once, if no runtime has run in this process, or if main asks, because all
// threads may wait for its exit(). REQUIRES: no runtime runs.
[[gnu::cold]] bool await_after_end(const detail::EventWord& event) noexcept;

}  // namespace imbrex::sched
