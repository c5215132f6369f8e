// SPDX-License-Identifier: BSD-3-Clause
// With IMBREX_LEND=1: the threads of a team on rank 1 wait, one in MPI and the others for that one.
// Their processors serve the tasks of rank 0. Then both ranks have a team at once.
#include <mpi.h>
#include <omp.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "imbrex/detail/observation.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"

static void require(const bool condition, const char* const text) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", text);
  std::_Exit(1);
}

static void compute() {
  const std::clock_t end = std::clock() + CLOCKS_PER_SEC / 1000;
  while (std::clock() < end) {
  }
}

static void borrow() {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (imbrex::detail::totals().borrowed_s == 0) {
    require(std::chrono::steady_clock::now() < limit, "rank 0 has borrowed no processor in 30 s");
    imbrex::finish([] {
      for (int each = 0; each < 60; ++each) imbrex::task("compute").launch([] { compute(); });
    });
  }
}

static int sum_of_team() {
  int sum = 0;
#pragma omp parallel for reduction(+ : sum) schedule(dynamic)
  for (int index = 0; index < 100; ++index) {
    compute();
    sum += index;
  }
  return sum;
}

int main() {
  MPI_Init(nullptr, nullptr);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    borrow();
    MPI_Send(&rank, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
  } else {
    int received = -1;
#pragma omp parallel
    {
#pragma omp master
      MPI_Recv(&received, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#pragma omp barrier
    }
    require(received == 0, "the message");
  }
  require(sum_of_team() == 4950, "the sum of a team");
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  if (rank == 0) std::printf("done\n");
  return 0;
}
