// SPDX-License-Identifier: BSD-3-Clause
// What came of a run: gathered from all ranks, printed by rank 0.
#pragma once

#include <mpi.h>

#include <vector>

#include "options.hpp"

namespace uts {

struct Result {
  Tally sum;           // counts of the tree; times and steals of all searchers together
  int ranks = 1;
  int searchers = 1;   // of all ranks
  double seconds = 0;  // of the slowest rank
  double rate = 0;     // nodes a second that were searched, of all ranks
};

// Collective. `searched_whole`: each rank has searched the whole tree, else a part of it. Throws
// std::runtime_error if ranks that should agree do not.
[[nodiscard]] Result gather(MPI_Comm comm, const std::vector<Tally>& mine, double seconds,
                            bool searched_whole);

// Prints, before the first run, which tree is searched and how.
void print_problem(const Options& options, int ranks, int searchers);
// Nodes, depth, leaves, rate; with what the options ask for.
void print_result(const Options& options, const Result& result);
// Prints the tallies of this rank's searchers, rank after rank. Collective.
void print_searchers(MPI_Comm comm, const std::vector<Tally>& mine);

// Returns whether the counts are the known ones of this tree; true also if none are known.
[[nodiscard]] bool is_right(const Options& options, const Counts& counts);

}  // namespace uts
