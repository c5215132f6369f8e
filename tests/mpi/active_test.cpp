// SPDX-License-Identifier: BSD-3-Clause
// The plug-in of active.cpp in a program of this MPI.
#include <mpi.h>

#include <cstdio>
#include <cstring>
#include <exception>

#include "imbrex/imbrex.hpp"

extern "C" void run_active();
extern "C" int run_active_outside();
extern "C" void finish_active();
extern "C" void hang_active();
extern "C" void flood_active();

int main(int argc, char** argv) {
  if (run_active_outside() != 0) return 1;
  MPI_Init(nullptr, nullptr);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  try {
    const char* const what = argc > 1 ? argv[1] : "";
    if (std::strcmp(what, "hang") == 0) hang_active();
    std::strcmp(what, "flood") == 0 ? flood_active() : run_active();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  if (run_active_outside() != 0) return 1;
  finish_active();
  if (rank == 0) std::printf("the plug-in has run\n");
  return 0;
}
