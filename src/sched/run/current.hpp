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
// Calls leave(worker) when the calling thread ends; the last one of a thread counts. False, and
// nothing is called, if that end has begun.
[[nodiscard]] bool at_thread_exit(Worker* worker, void (*leave)(Worker*)) noexcept;

}  // namespace imbrex::sched
