// SPDX-License-Identifier: BSD-3-Clause
// A search that cannot be divided beforehand: all ways to put 11 queens on a board so that none
// attacks another. Each item is a board with some rows filled; the ranks share the search.
#include <mpi.h>

#include <cstdio>
#include <vector>

#include "imbrex/work_pool.hpp"

struct Board {
  unsigned columns, left, right;  // that are attacked in the next row: a bit for each
};

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  constexpr unsigned all = (1u << 11) - 1;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  long long solutions = 0;
  {
    imbrex::WorkPool<Board> pool(MPI_COMM_WORLD, {.name = "queens"});
    struct alignas(64) Count {
      long long solutions = 0;
    };
    // One for each worker, so that no two write the same.
    std::vector<Count> counts(static_cast<std::size_t>(pool.workers()));

    if (rank == 0) pool.push({0, 0, 0});
    const imbrex::WorkPoolCounters counters =
        pool.process([&](const Board& board, imbrex::Emit<Board>& emit) {
          const auto worker = static_cast<std::size_t>(emit.worker());
          if (board.columns == all) ++counts[worker].solutions;
          for (unsigned free = all & ~(board.columns | board.left | board.right); free != 0;
               free &= free - 1) {
            const unsigned queen = free & (~free + 1);
            emit({board.columns | queen, (board.left | queen) << 1, (board.right | queen) >> 1});
          }
        });
    for (const Count& count : counts) solutions += count.solutions;
    std::printf("rank %d: %llu boards, %llu of them from other ranks\n", rank,
                static_cast<unsigned long long>(counters.items),
                static_cast<unsigned long long>(counters.items_received));
  }
  MPI_Allreduce(MPI_IN_PLACE, &solutions, 1, MPI_LONG_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("11 queens: %lld solutions\n", solutions);
  MPI_Finalize();
  return solutions == 2680 ? 0 : 1;
}
