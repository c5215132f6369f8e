// SPDX-License-Identifier: BSD-3-Clause
// Checks of the process as a whole: a second copy of the library, overflowing stacks, an MPI
// without libimbrex_mpi.
#pragma once

namespace imbrex::sched {

struct RuntimeState;

// Throws Error, with both paths, if another copy of this library is loaded.
void refuse_second_copy();

// Reports a task that overflows its stack by name; other faults go to the handler before.
void catch_overflow();
// Gives the calling thread a stack for that report.
void alternate_stack();

// Warns, once in a process and by one process of a job, if libimbrex_mpi is missing although an MPI
// is initialised or the program itself is linked with one.
void warn_of_plain_mpi(const RuntimeState& runtime) noexcept;
// warn_of_plain_mpi() for an MPI that was initialised later. A worker that is about to sleep calls
// it now and then.
void look_for_plain_mpi(const RuntimeState& runtime) noexcept;

// Whether the handler that writes a trace cut by a signal is called at this signal.
[[nodiscard]] bool keeps_trace_at(int signal) noexcept;

}  // namespace imbrex::sched
