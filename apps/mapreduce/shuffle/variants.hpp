// SPDX-License-Identifier: BSD-3-Clause
// The ways to bring tuples from maps to reductions. All run the same maps and reductions on the
// same number of threads, and leave the same result. Collective.
#pragma once

#include <mpi.h>

#include <string_view>
#include <vector>

#include "program.hpp"

namespace mapreduce {

struct Shape {
  MPI_Comm comm = MPI_COMM_WORLD;
  int chunks = 16;  // of each rank
  int batches = 4;  // of run_test()
};

// All chunks, in parallel. Suspends.
[[nodiscard]] std::vector<Output> map_all(Program& program, const Shape& shape);

// The times that a variant can measure of itself; not every variant measures all.
struct Times {
  double exchange_s = 0;  // in the exchange, nothing else being done
};

// Maps in a parallel loop; one MPI_Alltoallv in a task; reductions in a parallel loop. (The
// baseline of Castillo et al.)
void run_blocking(Program& program, const Shape& shape, Times& times);
// Batches of chunks: MPI_Ialltoallv of one batch, while the next is mapped and the arrived tuples
// are reduced; after each map and each reduction MPI_Test. This is the overlap that a program can
// have without a runtime.
void run_test(Program& program, const Shape& shape, Times& times);
// Works like run_blocking(), but by an object of imbrex/collective.hpp: a reduction begins when the
// block of its rank has arrived.
void run_blocks(Program& program, const Shape& shape, Times& times);
// Works like run_blocking(), but the task of the exchange has declared the block of each rank, and
// calls release_by_blocks(). With IMBREX_PARTIAL=on a reduction begins when the block of its rank
// has arrived, otherwise as in run_blocking().
void run_partial_receive(Program& program, const Shape& shape, Times& times);
// The output of a map leaves at once, as a message to each rank, and is reduced when it arrives,
// while other maps run.
void run_messages(Program& program, const Shape& shape, Times& times);
// Works like run_messages(), with an object of imbrex/collective.hpp for each chunk.
void run_partial(Program& program, const Shape& shape, Times& times);
// Plain MPI past imbrex, and threads: each maps its chunks as one, then one MPI_Alltoallv.
void run_library(Program& program, const Shape& shape, Times& times);

struct Variant {
  std::string_view name;
  void (*run)(Program& program, const Shape& shape, Times& times);
};
inline constexpr Variant all_variants[] = {{"blocking", &run_blocking},
                                           {"test", &run_test},
                                           {"blocks", &run_blocks},
                                           {"partial-receive", &run_partial_receive},
                                           {"messages", &run_messages},
                                           {"partial", &run_partial},
                                           {"library", &run_library}};

}  // namespace mapreduce
