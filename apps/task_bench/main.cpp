// SPDX-License-Identifier: BSD-3-Clause
// task_bench: the variants in imbrex. For the other variants it becomes task_bench_plain, in which
// nothing of imbrex is linked.
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>
#include <mpi.h>

#include <algorithm>

#include "../harness/command_line.hpp"
#include "../harness/program.hpp"
#include "options.hpp"
#include "program.hpp"

namespace task_bench {
namespace {

int workers() { return std::max(1, imbrex::worker_count()); }

void start(int& argc, char**& argv) {
  const auto options = apps::look_at(argc, argv, &parse_options);
  if (options && (options->variant == "mpi" || options->variant == "openmp")) {
    apps::become("task_bench_plain", argv);
  }
  MPI_Init(&argc, &argv);
}

int run_all(int argc, char** argv) {
  return run(argc, argv, {{"tasks", run_tasks, workers},
                          {"iterate", run_iterate, workers},
                          {"data", run_data, workers}});
}

}  // namespace
}  // namespace task_bench

int main(int argc, char** argv) {
  return apps::run_program("task_bench", argc, argv, &task_bench::start, &task_bench::run_all);
}
