// SPDX-License-Identifier: BSD-3-Clause
// The plug-in of plugin.cpp, in a program of this MPI that sends messages with the same tags.
#include <mpi.h>

#include <cstdio>
#include <exception>

#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"

extern "C" void run_plugin();
extern "C" int run_plugin_outside();

int main() {
  if (run_plugin_outside() != 0) return 1;
  MPI_Init(nullptr, nullptr);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  // The program's own, which the plug-in must not get.
  constexpr int tags = 8;
  MPI_Request requests[tags];
  int got = 0;
  for (int i = 0; i < tags; ++i) {
    MPI_Isend(&rank, 1, MPI_INT, (rank + 1) % size, i, MPI_COMM_WORLD, &requests[i]);
  }
  try {
    run_plugin();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  for (int i = 0; i < tags; ++i) {
    MPI_Recv(&got, 1, MPI_INT, MPI_ANY_SOURCE, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Waitall(tags, requests, MPI_STATUSES_IGNORE);
  MPI_Finalize();
  if (run_plugin_outside() != 0) return 1;
  if (rank == 0) std::printf("the plug-in has run\n");
  return 0;
}
