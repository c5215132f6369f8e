// SPDX-License-Identifier: BSD-3-Clause
// Progress functions and triggers (Capra et al.): requests that only the program knows, and tasks
// that wait for them by name. The build compiles this file a second time with -DIMBREX_SERIAL,
// without the runtime: then noprogress() waits in MPI, and the tasks are plain calls.
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int left = (rank + ranks - 1) % ranks;
  const int right = (rank + 1) % ranks;

  double mine = rank;
  double ghosts[2] = {0, 0};
  double core = 0;
  for (int step = 0; step < 100; ++step) {
    MPI_Request requests[4];
    imbrex::finish([&] {
      MPI_Irecv(&ghosts[0], 1, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, &requests[0]);
      MPI_Irecv(&ghosts[1], 1, MPI_DOUBLE, right, 1, MPI_COMM_WORLD, &requests[1]);
      MPI_Isend(&mine, 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD, &requests[2]);
      MPI_Isend(&mine, 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD, &requests[3]);
      // Called by workers that idle, and between tasks, until it returns 0.
      imbrex::progress([&requests] {
        int all = 0;
        MPI_Testall(4, requests, &all, MPI_STATUSES_IGNORE);
        if (all == 0) return 1;
        imbrex::trigger("ghost_done");
        return 0;
      });
      imbrex::noprogress([&] { MPI_Waitall(4, requests, MPI_STATUSES_IGNORE); });
      imbrex::task("core").launch([&core] { core += 1; });
      imbrex::task("border").in(imbrex::named("ghost_done")).out(mine).launch([&] {
        mine = (ghosts[0] + ghosts[1]) / 2;
      });
    });
  }
  double sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  const bool right_sum = sum == ranks * (ranks - 1) / 2.0;
  std::printf("rank %d: core %.0f, all borders %.1f\n", rank, core, sum);
  MPI_Finalize();
  return right_sum && core == 100 ? 0 : 1;
}
