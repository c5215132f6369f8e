// SPDX-License-Identifier: BSD-3-Clause
// The versions of the program. Each computes the whole matrix with all ranks, offers what a local
// alignment may end in to `problem.largest` of the rank that finds it, and returns the last cell's
// score on the rank of the last tile, 0 elsewhere. Collective.
#pragma once

#include <mpi.h>

#include "tiles/outer_tile.hpp"

namespace smith_waterman {

// On the first rank alone, with one thread and no message.
Score run_sequential(const Problem& problem, MPI_Comm comm);
// MPI and OpenMP: anti-diagonal by anti-diagonal, with messages and a barrier after each.
Score run_fork_join(const Problem& problem, MPI_Comm comm);
// Returns the number of threads of a variant.
[[nodiscard]] int fork_join_threads();
// Tasks that wait for what they need, by distributed futures.
Score run_tasks(const Problem& problem, MPI_Comm comm);

}  // namespace smith_waterman
