// SPDX-License-Identifier: BSD-3-Clause
// task_bench_plain: the variants without imbrex, as they run where imbrex is not installed.
#include <mpi.h>

#ifdef TASK_BENCH_OPENMP
#include <omp.h>
#endif

#include <vector>

#include "program.hpp"

int main(int argc, char** argv) {
  int got = MPI_THREAD_SINGLE;
  std::vector<task_bench::Variant> variants{{"mpi", task_bench::run_mpi, [] { return 1; }}};
#ifdef TASK_BENCH_OPENMP
  variants.push_back({"openmp", task_bench::run_openmp, [] { return omp_get_max_threads(); }});
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &got);
#else
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &got);
#endif
  const int code = task_bench::run_program(argc, argv, variants);
  MPI_Finalize();
  return code;
}
