// SPDX-License-Identifier: BSD-3-Clause
// Who makes MPI progress in this process: start and end of the mode that IMBREX_PROGRESS chooses,
// and what there is to say about it. Used by init_and_finalize.cpp.
#pragma once

#include <string>
#include <string_view>

#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/engine/threads/mode.hpp"

namespace imbrex::mpi::progress {

// To be called before the runtime starts, for what start() may have to say.
void note_standing(const threads::Standing& standing) noexcept;

// The mode that IMBREX_PROGRESS asks for. Throws Error if it is malformed.
[[nodiscard]] threads::Mode asked_mode();

// As PMPI_Init_thread. Under dedicated-thread the thread itself calls it; if MPI gives it less than
// MPI_THREAD_MULTIPLE, but not MPI_THREAD_SINGLE, all calls are shipped to it from now on
// (ship.hpp), and the program is given MPI_THREAD_MULTIPLE.
[[nodiscard]] int initialise_mpi(int* argc, char*** argv, int* provided);
// As PMPI_Finalize, by the same thread.
[[nodiscard]] int finalise_mpi();
// As MPI_Is_thread_main and MPI_Query_thread, for the program's threads.
[[nodiscard]] int is_thread_main(int* flag);
[[nodiscard]] int query_thread(int* provided);

// Prepares `poller` for the mode, adds it to the runtime, and starts what the mode needs. Rank 0
// says so on standard error if that is not the mode that was asked for.
// REQUIRES: MPI and the runtime are initialised. Throws Error as asked_mode() does.
void start(detail::Poller& poller);

// Ends all of it, on any way out of the program.
void stop(detail::Poller& poller);

// Called before each poll of the engine.
void begin_poll() noexcept;

// Prints one line for each mode that ranks run in, after the summary. Collective over
// MPI_COMM_WORLD; `prints` on rank 0 only.
void report(bool prints);

}  // namespace imbrex::mpi::progress
