// SPDX-License-Identifier: BSD-3-Clause
// The tasks that destroy what nobody refers to any more (dead.hpp).
#pragma once

#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

// The body of such a task: destroys a Dead::Rest, and waits for what the destructors have spawned.
void run_destructors(void* rest);

// Suspends until none of those tasks is left. Main's code.
void await_destructors() noexcept;

}  // namespace imbrex::sched
