// SPDX-License-Identifier: BSD-3-Clause
// task_bench_plain: the variants without imbrex, as they run where imbrex is not installed.
#include <mpi.h>

#ifdef TASK_BENCH_OPENMP
#include <omp.h>
#endif

#include "../harness/program.hpp"
#include "program.hpp"

namespace task_bench {
namespace {

void start(int& argc, char**& argv) {
  int got = MPI_THREAD_SINGLE;
#ifdef TASK_BENCH_OPENMP
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &got);
#else
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &got);
#endif
}

int run_all(int argc, char** argv) {
  std::vector<Variant> variants{{"mpi", run_mpi, [] { return 1; }}};
#ifdef TASK_BENCH_OPENMP
  variants.push_back({"openmp", run_openmp, [] { return omp_get_max_threads(); }});
#endif
  return run(argc, argv, variants);
}

}  // namespace
}  // namespace task_bench

int main(int argc, char** argv) {
  return apps::run_program("task_bench", argc, argv, &task_bench::start, &task_bench::run_all);
}
