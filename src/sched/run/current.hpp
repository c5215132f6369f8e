// SPDX-License-Identifier: BSD-3-Clause
// The worker of the calling thread. Knows nothing of the type.
#pragma once

namespace imbrex::sched {

struct Worker;

// The only reader of the thread-local worker; never inlined, since a fiber may resume in another
// thread and the compiler could keep the address. Null in a thread that imbrex does not know.
[[nodiscard]] Worker* current_worker() noexcept;
void set_current_worker(Worker* worker) noexcept;
// Sets the worker and returns the former one; for a short while in which the thread does not
// change.
Worker* exchange_current_worker(Worker* worker) noexcept;
// The worker of the calling thread's visits (life/visit.hpp); null if it has made none.
[[nodiscard]] Worker* visitor() noexcept;
void set_visitor(Worker* worker) noexcept;

// False if the process has no key left for data of threads. Call it before at_thread_exit().
[[nodiscard]] bool prepare_thread_exits() noexcept;
// Calls leave(worker) when the calling thread ends, after the destructors of its thread-locals, and
// after those of the program's pthread keys that do not set their key again; the last registration
// of a thread counts. Without memory, or in the thread's last round of such destructors, nothing is
// called: `worker` then stays until its runtime ends.
void at_thread_exit(Worker* worker, void (*leave)(Worker*)) noexcept;
// The calling thread belongs to a runtime and has left its loop: only destructors of its
// thread-locals still run.
void note_loop_left() noexcept;
[[nodiscard]] bool has_left_loop() noexcept;
// In a child of fork: the calling thread has no worker, whatever it had in the parent.
void forget_thread() noexcept;
// The calling thread is main's: calls leave() when exit() begins, or main's pthread_exit().
void at_main_exit(void (*leave)()) noexcept;
// The callbacks (detail::enter_callback()) of a thread that has no worker yet.
struct CallbacksOutside {
  int count = 0;
  const char* call = nullptr;  // as Worker::callback_call
};
// The callbacks of the calling thread; its first worker takes them over. Nothing suspends in a
// callback, so the address stays valid.
[[nodiscard]] CallbacksOutside& callbacks_outside() noexcept;

}  // namespace imbrex::sched
