// SPDX-License-Identifier: BSD-3-Clause
// A program with MPI and tasks that is linked without libimbrex_mpi, or with it where the linker
// drops unused libraries. CMakeLists.txt has the link lines and the expected output. The argument,
// "mpi" or "tasks", says which comes first. The program may be two parts: a library that calls MPI
// (PART), and a main that names nothing of MPI (MAIN), as the main of a Fortran program does.
#ifndef MAIN
#include <mpi.h>

#include <cstdio>
#include <string_view>

#include "imbrex/imbrex.hpp"

#ifdef PART
[[gnu::visibility("default")]]
#endif
int run_with_mpi(int argc, char** argv) {
  const bool tasks_first = argc > 1 && std::string_view(argv[1]) == "tasks";
  if (tasks_first) imbrex::task("early").spawn([] {}).get();
  MPI_Init(&argc, &argv);
  imbrex::task("late").spawn([] {}).get();
  MPI_Finalize();
  std::printf("forgotten: ran to its end\n");
  return 0;
}
#else
int run_with_mpi(int argc, char** argv);
#endif

#ifndef PART
int main(int argc, char** argv) { return run_with_mpi(argc, argv); }
#endif
