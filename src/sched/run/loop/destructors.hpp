// SPDX-License-Identifier: BSD-3-Clause
// The tasks that destroy unreferenced objects (dead.hpp).
#pragma once

#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

// The body of such a task: destroys a Dead::Rest, and waits for the tasks that the destructors have
// spawned.
void run_destructors(void* rest);

// Suspends until no such task is left. Only main calls it.
void await_destructors() noexcept;

}  // namespace imbrex::sched
