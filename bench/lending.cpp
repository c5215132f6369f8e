// SPDX-License-Identifier: BSD-3-Clause
// What lent processors bring: independent tasks, of which rank 0 has `ratio` times as many as
// each other rank. A task takes a fixed amount of its thread's processor time. All ranks meet in
// MPI_Barrier after each round. Prints the median of the rounds, and the time of perfect balance.
//
//   IMBREX_LEND=1 IMBREX_WORKERS=1 mpirun -n 2 lending [tasks of all ranks] [us a task] [ratio]
//                                                      [rounds]
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double thread_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) * 1e-3;
}

void compute(const double us) {
  const double end = thread_us() + us;
  while (thread_us() < end) {
  }
}

double round_ms(const int tasks, const double us) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = Clock::now();
  imbrex::finish([&] {
    for (int each = 0; each < tasks; ++each) {
      imbrex::task("compute").launch([us] { compute(us); });
    }
  });
  MPI_Barrier(MPI_COMM_WORLD);
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double argument(const int argc, char** const argv, const int index, const double otherwise) {
  return argc > index ? std::atof(argv[index]) : otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const double all = argument(argc, argv, 1, 400);
  const double us = argument(argc, argv, 2, 1000);
  const double ratio = argument(argc, argv, 3, 3);
  const int rounds = static_cast<int>(argument(argc, argv, 4, 11));
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const double unit = all / (ratio + ranks - 1);
  const int mine = static_cast<int>(rank == 0 ? ratio * unit : unit);
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) times.push_back(round_ms(mine, us));
  std::ranges::sort(times);
  const double ideal_ms = all * us / ranks / 1000;
  const char* const lend = std::getenv("IMBREX_LEND");
  if (rank == 0) {
    std::printf("{\"bench\": \"lending\", \"lend\": \"%s\", \"ranks\": %d, \"workers\": %d, "
                "\"us\": %g, \"ratio\": %g, \"balanced_ms\": %.3f, \"median_ms\": %.3f, "
                "\"least_ms\": %.3f, \"most_ms\": %.3f, \"of_balanced\": %.3f}\n",
                lend == nullptr ? "0" : lend, ranks, imbrex::worker_count(), us, ratio, ideal_ms,
                times[times.size() / 2], times.front(), times.back(),
                times[times.size() / 2] / ideal_ms);
  }
  MPI_Finalize();
}
