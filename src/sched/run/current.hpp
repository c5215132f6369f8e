// SPDX-License-Identifier: BSD-3-Clause
// Which worker the calling thread is. Knows nothing of what that is.
#pragma once

namespace imbrex::sched {

struct Worker;

// The only reader of the thread-local worker; never inlined, since a fiber may go on in another
// thread and the compiler could keep the address. Null in a thread that imbrex does not know.
[[nodiscard]] Worker* current_worker() noexcept;
void set_current_worker(Worker* worker) noexcept;
// The same, and returns the former one; for a short while, in which the thread's is not changed.
Worker* exchange_current_worker(Worker* worker) noexcept;
// The worker of the calling thread's visits (life/visit.hpp); null if it has made none.
[[nodiscard]] Worker* visitor() noexcept;
void set_visitor(Worker* worker) noexcept;

// False if the process has no key left for data of threads. To be called before the next one.
[[nodiscard]] bool prepare_thread_exits() noexcept;
// Calls leave(worker) when the calling thread ends, after the destructors of its thread-locals, and
// after those of the program's pthread keys that do not set their key again; the last one of a
// thread counts. If there is no memory for it, or if the thread's last round of such destructors is
// running, nothing is called: `worker` then stays until its runtime ends.
void at_thread_exit(Worker* worker, void (*leave)(Worker*)) noexcept;
// The calling thread is one of a runtime's own, and has left its loop: only destructors of its
// thread-locals still run.
void note_loop_left() noexcept;
[[nodiscard]] bool has_left_loop() noexcept;
// The calling thread is main's: calls leave() at the begin of exit(), or of its pthread_exit().
void at_main_exit(void (*leave)()) noexcept;
// The callbacks (detail::enter_callback()) that a thread stands in as long as it has no worker.
struct CallbacksOutside {
  int count = 0;
  const char* call = nullptr;  // as Worker::callback_call
};
// Those of the calling thread; its first worker takes them over. Nothing suspends in a callback, so
// the address stays right.
[[nodiscard]] CallbacksOutside& callbacks_outside() noexcept;

}  // namespace imbrex::sched
