// SPDX-License-Identifier: BSD-3-Clause
// Completions that are noticed inside MPI's own progress, by any thread that makes it: the callback
// modes.
//
// A hook in MPI's progress (MPICH's MPIX_Async_start, Open MPI's opal_progress_register) tests some
// requests that the engine has in flight. It runs inside MPI, perhaps under MPI's locks and in the
// middle of any call. It therefore takes no lock that it would have to wait for, completes nothing,
// and only sets a flag: the next poll, by a worker between two tasks or by one that is woken, does
// the rest.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace imbrex::mpi::progress {

// Empty if completions are noticed from now on; else the reason and the remedy. REQUIRES: MPI is
// initialised; any thread, once.
[[nodiscard]] std::string start_noticing();
void stop_noticing() noexcept;

// True from a notice to forget_notices(), which is called before each poll.
extern std::atomic<bool> noticed;
void forget_notices() noexcept;
[[nodiscard]] std::uint64_t notices() noexcept;

}  // namespace imbrex::mpi::progress
