// SPDX-License-Identifier: BSD-3-Clause
// dies killed|exits|aborts: rank 1 ends while the others wait for its distributed futures; dies
// returns: it returns 6 from main behind MPI_Finalize. CMakeLists.txt says what must be printed.
#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <string>

#include "imbrex/future_space.hpp"
#include "imbrex/imbrex.hpp"

int main(int argc, char** argv) {
  const std::string how = argc == 2 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (how == "returns") {
    MPI_Finalize();
    return rank == 1 ? 6 : 0;
  }
  const imbrex::FutureSpace<int> space(
      MPI_COMM_WORLD, {.home = [](std::uint64_t) { return 1; }, .name = "of rank 1"});
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank != 1) return space[7].get();
  sleep(1);  // until `imbrex run` has heard which processes there are, and watches them
  if (how == "killed") std::raise(SIGKILL);
  if (how == "aborts") MPI_Abort(MPI_COMM_WORLD, 5);
  _exit(3);
}
