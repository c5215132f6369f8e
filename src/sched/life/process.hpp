// SPDX-License-Identifier: BSD-3-Clause
// Matters of the process as a whole: one copy of the library, overflowing stacks, an MPI without
// libimbrex_mpi, the clock.
#pragma once

namespace imbrex::sched {

struct RuntimeState;

// Throws Error, with both paths, if another copy of this library is loaded.
void refuse_second_copy();

// Reports a task that overflows its stack by name; other faults go to whoever handled them before.
void catch_overflow();
// Gives the calling thread a stack for that report.
void alternate_stack();

// Warns, once in a process and by one process of a job, if libimbrex_mpi is not there though an MPI
// is initialised or the program itself is linked with one.
void warn_of_plain_mpi(const RuntimeState& runtime) noexcept;
// The same for an MPI that was initialised later. By a worker that is about to sleep: a look now
// and then.
void look_for_plain_mpi(const RuntimeState& runtime) noexcept;

// Whether what writes a trace that a signal cuts is called at this one.
[[nodiscard]] bool keeps_trace_at(int signal) noexcept;

}  // namespace imbrex::sched
