// SPDX-License-Identifier: BSD-3-Clause
// Methodology: each version computes random problems with all ranks, in tiles of random sizes; one
// tile that is the whole matrix, computed by the definition, says what the score and its place are.
// Built twice: with the imbrex variant, and as SMITH_WATERMAN_PLAIN with the others.
#include "variants.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "sequence/sequence.hpp"
#ifndef SMITH_WATERMAN_PLAIN
#include <imbrex/mpi.hpp>
#endif

namespace smith_waterman {
namespace {

using Letters = std::vector<Letter>;

struct Case {
  Letters a;
  Letters b;
  Scoring scoring;
  Tiling tiling;
};

// Draws a case, which is equal on all ranks.
Case draw(unsigned seed) {
  std::mt19937 random(seed);
  const auto upto = [&](int most) { return 1 + static_cast<int>(random() % unsigned(most)); };
  const bool thin = seed % 6 == 0;
  Case drawn;
  drawn.a = random_letters(thin ? upto(3) : upto(600), seed);
  drawn.b = random_letters(seed % 12 == 0 ? 1 : upto(600), seed + 1);
  if (seed % 3 == 1) {  // similar: the score is large, and its place far down
    drawn.b = drawn.a;
    for (std::size_t k = 5; k < drawn.b.size(); k += 11) drawn.b[k] ^= 1;
  }
  drawn.scoring.local = random() % 2 == 0;
  MPI_Comm_size(MPI_COMM_WORLD, &drawn.tiling.ranks);
  Tiling& tiling = drawn.tiling;
  tiling.distribution = random() % 2 == 0 ? Distribution::block : Distribution::cyclic;
  tiling.whole = {static_cast<std::int64_t>(drawn.a.size()),
                  static_cast<std::int64_t>(drawn.b.size())};
  tiling.outer = {std::min<std::int64_t>(tiling.whole.rows, 20 + upto(150)),
                  std::min<std::int64_t>(tiling.whole.columns, 20 + upto(150))};
  tiling.inner = {std::min<std::int64_t>(tiling.outer.rows, 3 + upto(60)),
                  std::min<std::int64_t>(tiling.outer.columns, 3 + upto(60))};
  return drawn;
}

Cell solve(const Case& drawn, bool plain, Score (*const run)(const Problem&, MPI_Comm)) {
  Largest largest;
  apps::Progress progress(1, "cells", 0);
  const Problem problem{.a = drawn.a.data(), .b = drawn.b.data(), .scoring = drawn.scoring,
                        .tiling = drawn.tiling, .kernel = {.plain = plain},
                        .largest = drawn.scoring.local ? &largest : nullptr,
                        .progress = &progress};
  Score last = run(problem, MPI_COMM_WORLD);
  if (!drawn.scoring.local) {
    MPI_Allreduce(MPI_IN_PLACE, &last, 1, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
    return {.score = last, .row = 0, .column = 0};
  }
  Cell first = largest.first();
  std::vector<Cell> cells(static_cast<std::size_t>(drawn.tiling.ranks));
  MPI_Allgather(&first, sizeof first, MPI_BYTE, cells.data(), sizeof first, MPI_BYTE,
                MPI_COMM_WORLD);
  for (const Cell& cell : cells) first = cell.precedes(first) ? cell : first;
  return first;
}

// One rank, one tile, by the definition.
Score run_whole(const Problem& problem, MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  if (rank != 0) return 0;
  OuterTile tile(problem, 0, 0);
  tile.begin();
  tile.compute(0, 0);
  return tile.row.back();
}

Cell expected_of(const Case& drawn) {
  Case whole = drawn;
  whole.tiling.outer = whole.tiling.inner = whole.tiling.whole;
  return solve(whole, true, &run_whole);
}

void check_all(Score (*const run)(const Problem&, MPI_Comm)) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Case drawn = draw(seed);
    const Cell expected = expected_of(drawn);
    const Cell got = solve(drawn, seed % 7 == 0, run);
    EXPECT_EQ(expected.score, got.score);
    EXPECT_EQ(expected.row, got.row);
    EXPECT_EQ(expected.column, got.column);
  }
}

#ifdef SMITH_WATERMAN_PLAIN
TEST(Variants, sequential_finds_what_the_definition_does) { check_all(&run_sequential); }
TEST(Variants, fork_join_finds_what_the_definition_does) { check_all(&run_fork_join); }
#else
TEST(Variants, tasks_find_what_the_definition_does) { check_all(&run_tasks); }
#endif

}  // namespace
}  // namespace smith_waterman

// A failure on one rank is a failure of all.
int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  int failed = RUN_ALL_TESTS();
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}
