// SPDX-License-Identifier: BSD-3-Clause
// What it is worth to know which rank has most to do: rank 0 makes blocks and sends each to its
// owner, the first blocks to the first rank; the last rank takes `slow` times as long for its
// blocks. Every iteration has the same tasks. Work sleeps, so that ranks may share
// processors; one worker a rank.
//
//   IMBREX_POLICY=ga IMBREX_WORKERS=1 mpirun -n 4 uneven [blocks a rank] [us a block] [slow]
//                                                        [iterations]
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Blocks {
  int ranks, rank, each, us, slow;
  std::vector<int> values;
  long worked = 0;

  [[nodiscard]] int owner(const int block) const { return block / each; }
  [[nodiscard]] int& at(const int block) { return values[static_cast<std::size_t>(block)]; }
  void rest(const int times_us) {
    std::this_thread::sleep_for(std::chrono::microseconds(times_us));
  }

  void work(const int block) {
    imbrex::task("work").inout(at(block)).launch([this] {
      rest(rank + 1 == ranks ? us * slow : us);
      ++worked;  // one worker a rank
    });
  }
  void make(const int block) {
    int& value = at(block);
    imbrex::task("make").out(value).launch([this] { rest(us / 2); });
    if (owner(block) == 0) return work(block);
    imbrex::task("send").in(value).priority(1).launch([&value, block, to = owner(block)] {
      MPI_Send(&value, 1, MPI_INT, to, block, MPI_COMM_WORLD);
    });
  }
  void take(const int block) {
    int& value = at(block);
    imbrex::task("receive").out(value).launch([&value, block] {
      MPI_Recv(&value, 1, MPI_INT, 0, block, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    work(block);
  }
  double iterate() {
    MPI_Barrier(MPI_COMM_WORLD);
    const auto begin = Clock::now();
    imbrex::finish([&] {
      for (int block = 0; block < ranks * each; ++block) {
        if (rank == 0) {
          make(block);
        } else if (owner(block) == rank) {
          take(block);
        }
      }
    });
    MPI_Barrier(MPI_COMM_WORLD);
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const auto argument = [&](const int index, const int otherwise) {
    return argc > index ? std::atoi(argv[index]) : otherwise;
  };
  Blocks blocks{.ranks = 0, .rank = 0, .each = argument(1, 40), .us = argument(2, 4000),
                .slow = argument(3, 3), .values = {}};
  const int iterations = argument(4, 5);
  MPI_Comm_rank(MPI_COMM_WORLD, &blocks.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &blocks.ranks);
  blocks.values.resize(static_cast<std::size_t>(blocks.ranks * blocks.each));
  const char* const policy = std::getenv("IMBREX_POLICY");
  for (int iteration = 0; iteration < iterations; ++iteration) {
    const double seconds = blocks.iterate();
    if (blocks.rank != 0) continue;
    std::printf("{\"benchmark\": \"uneven\", \"policy\": \"%s\", \"ranks\": %d, "
                "\"iteration\": %d, \"seconds\": %.3f}\n",
                policy == nullptr ? "default" : policy, blocks.ranks, iteration, seconds);
  }
  const bool all = blocks.worked == static_cast<long>(iterations) * blocks.each;
  MPI_Finalize();
  return all ? 0 : 1;
}
