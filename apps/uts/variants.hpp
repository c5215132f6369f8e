// SPDX-License-Identifier: BSD-3-Clause
// The ways to search a tree. Each is collective, begins on all ranks at once, and returns what
// each searcher of this rank counted.
//
//   sequential  every rank searches the whole tree by itself
//   mpi         a rank is one thread; the benchmark's reference strategy
//   openmp      threads of a rank share their work, and ask other ranks for more
//   imbrex      imbrex::WorkPool
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "search.hpp"

namespace uts {

// The parameters of a run.
struct Run {
  MPI_Comm comm;
  const Tree& tree;
  Settings settings;
  apps::Progress& progress;  // nodes of this rank, now and then
};

[[nodiscard]] std::vector<Tally> run_sequential(const Run& run);
[[nodiscard]] std::vector<Tally> run_mpi(const Run& run);
[[nodiscard]] std::vector<Tally> run_openmp(const Run& run);
[[nodiscard]] std::vector<Tally> run_imbrex(const Run& run);

// Threads of a rank, or workers.
[[nodiscard]] int openmp_threads();

}  // namespace uts
