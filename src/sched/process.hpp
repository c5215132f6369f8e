// SPDX-License-Identifier: BSD-3-Clause
// What concerns the process as a whole: one copy of the library, overflowing stacks, the clock.
#pragma once

namespace imbrex::sched {

// Throws Error, with both paths, if another copy of this library is loaded.
void refuse_second_copy();

// Reports a task that overflows its stack by name; other faults go to whoever handled them before.
void catch_overflow();
// Gives the calling thread a stack for that report.
void alternate_stack();

[[nodiscard]] double ticks_per_microsecond() noexcept;

}  // namespace imbrex::sched
