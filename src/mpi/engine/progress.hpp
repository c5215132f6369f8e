// SPDX-License-Identifier: BSD-3-Clause
// The thread that makes MPI progress in this process: start and end of the mode that
// IMBREX_PROGRESS selects, and reports about it. Used by init_and_finalize.cpp.
#pragma once

#include <string>
#include <string_view>

#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/engine/threads/mode.hpp"

namespace imbrex::mpi::progress {

// Call it before the runtime starts, for the messages of start().
void note_standing(const threads::Standing& standing) noexcept;

// The mode that IMBREX_PROGRESS asks for. Throws Error if it is malformed.
[[nodiscard]] threads::Mode asked_mode();

// PMPI_Init_thread. Under dedicated-thread the thread itself calls it; if MPI gives it less than
// MPI_THREAD_MULTIPLE, but not MPI_THREAD_SINGLE, all calls are shipped to it from now on
// (ship.hpp), and the program gets MPI_THREAD_MULTIPLE.
[[nodiscard]] int initialise_mpi(int* argc, char*** argv, int* provided);
// PMPI_Finalize, by the same thread.
[[nodiscard]] int finalise_mpi();
// MPI_Is_thread_main and MPI_Query_thread, for the program's threads.
[[nodiscard]] int is_thread_main(int* flag);
[[nodiscard]] int query_thread(int* provided);

// Prepares `poller` for the mode, adds it to the runtime, and starts the mode. Rank 0 reports on
// standard error if another mode was asked for. REQUIRES: MPI and the runtime are initialised.
// Throws Error as asked_mode() does.
void start(detail::Poller& poller);

// Ends all of it, however the program ends.
void stop(detail::Poller& poller);

// Called before each poll of the engine.
void begin_poll() noexcept;

// Prints one line for each mode that ranks run in, after the summary. Collective over
// MPI_COMM_WORLD; `prints` on rank 0 only.
void report(bool prints);

}  // namespace imbrex::mpi::progress
