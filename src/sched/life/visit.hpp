// SPDX-License-Identifier: BSD-3-Clause
// Visits: how a thread that is no worker calls the runtime, which may end at any time.
//
// Such a thread has a Worker of its own, without a loop, from its first call on; but it is its
// current_worker() only while it stands in a call. So the functions of the waist find none, which
// costs workers nothing, and begin again within a Visit.
//
// The protocol: a thread that enters sets `inside` and then looks whether the door is closed; who
// ends the runtime closes the door and then looks who is inside (light and heavy fence, arch.hpp).
// Either the thread sees the closed door, takes its mark back and waits outside, or the other one
// sees that it is inside, and waits. Who enters for the first time does so under Life::lock, and is
// in RuntimeState::foreign before it looks at the door.
// Behind the closed door, with nobody inside, whatever belongs to those threads is the ender's: it
// takes their caches and roots, and marks each Worker as `over`. The Worker itself is its thread's,
// which lets it go at its next call, or when it ends.
// A thread that waits stands inside, too, but touches nothing as long as it is `parked` and its
// root suspended: nobody waits for it. What a task will do ends before the runtime does, so it is
// woken, and leaves. Where only another such thread can wake it, it stays behind, and keeps the
// runtime's memory; whoever wakes it then needs no runtime (let_go_after_end()).
#pragma once

#include <mutex>

#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

// The other global: null while no runtime runs.
[[nodiscard]] RuntimeState* runtime() noexcept;
// Whoever holds this lock and has found a runtime keeps that from being destroyed. For threads that
// watch.
[[nodiscard]] std::mutex& end_lock() noexcept;

enum class Purpose : std::uint8_t {
  spawns,  // starts the runtime if there is none; throws Error after the end
  waits,   // what it does needs a runtime that runs
  passes   // the same, and the thread is not known by it as one that uses tasks (Worker::known)
};

// While it lives, the calling thread's worker is current_worker(). REQUIRES: it was null.
class Visit {
 public:
  explicit Visit(Purpose purpose);
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
  [[nodiscard]] bool admitted() const noexcept { return admitted_; }  // else no runtime runs

 private:
  bool admitted_ = false;
};

[[nodiscard]] inline bool is_outside() noexcept { return current_worker() == nullptr; }

// Makes the same call once more, inside; calls otherwise() if no runtime runs. REQUIRES:
// is_outside().
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

// Between detail::create() and submit() or discard() the thread is not inside, but is waited for.
void begin_creation() noexcept;
void end_creation() noexcept;

// The calling thread's worker: the current one, or that of its visits, whose runtime may end at any
// time; null if it has none, or none that is known(), or if its runtime has ended.
[[nodiscard]] Worker* known_worker() noexcept;

// The calling thread's worker, known or not, whose runtime may have ended; null: it has none. The
// caller must not touch by it what is the runtime's.
[[nodiscard]] inline Worker* thread_worker() noexcept {
  Worker* const worker = current_worker();
  return worker != nullptr ? worker : visitor();
}

// A callback spawns tasks where no task runs: their parent is a stand-in, which is the thread's
// task from the first of them until the callback ends. They belong to Groups::in_place, so each
// runs when it is submitted, and the stand-in has no child that has not ended.
// REQUIRES: a callback of `worker`'s thread, and no stand-in yet.
void begin_stand_in(Worker& worker);
// One callback of that thread ends. REQUIRES: there is a stand-in, perhaps of a callback around.
void leave_stand_in(Worker& worker) noexcept;

// As destroy(), by a thread that is outside.
[[gnu::cold]] void destroy_outside(detail::Completion& completion) noexcept;
// As let_go(), where no runtime runs: threads that wait go on, and nobody else.
[[gnu::cold]] void let_go_after_end(task::Waiter& first) noexcept;

// Blocks the calling thread until `event` fires, as if it had begun to wait before the runtime
// ended. False, at once, if no runtime has run in this process, or if main asks, whose exit() may
// be what everybody waits for. REQUIRES: no runtime runs.
[[gnu::cold]] bool await_after_end(const detail::EventWord& event) noexcept;

}  // namespace imbrex::sched
