// SPDX-License-Identifier: BSD-3-Clause
// What active.cpp and futures.cpp share: two ranks that measure by turns what MPI itself takes and
// what imbrex does, and print both.
#pragma once

#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "../measure.h"

namespace pair {

inline constexpr int rounds = 15;

// Nanoseconds, the least of all rounds.
struct Best {
  double raw = 1e300;
  double ours = 1e300;
};

// The names of a benchmark and of imbrex's own row in it.
struct Named {
  const char* benchmark;
  const char* ours = "imbrex";
};
inline void print(const Named& name, const char* const unit, const double raw, const double ours) {
  for (const auto& [system, value] : {std::pair{"raw", raw}, std::pair{name.ours, ours}}) {
    std::printf("{\"benchmark\": \"%s\", \"system\": \"%s\", \"%s\": %.4g}\n", name.benchmark,
                system, unit, value);
  }
}
inline void print_ns(const Named& name, const Best& best) {
  print(name, "ns", best.raw, best.ours);
}
// `best` is of one `what`, as in "bytes_per_s".
inline void print_rate(const Named& name, const char* const unit, const Best& best) {
  print(name, unit, 1e9 / best.raw, 1e9 / best.ours);
}

// main(): calls measure(rank) between MPI_Init and MPI_Finalize. `workers` may be null.
template <class Measure>
void run(int argc, char** argv, const char* const workers, const Measure& measure) {
  if (workers != nullptr) setenv("IMBREX_WORKERS", workers, 1);
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  require_equal("ranks (mpirun -n 2)", ranks, 2);
  measure(rank);
  MPI_Finalize();
}

}  // namespace pair
