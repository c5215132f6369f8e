// SPDX-License-Identifier: BSD-3-Clause
// task_bench: the variants in imbrex. For the other variants it becomes task_bench_plain, in which
// nothing of imbrex is linked.
#include <fmt/format.h>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include "program.hpp"

namespace {

bool is_plain(const std::string_view variant) { return variant == "mpi" || variant == "openmp"; }

// Returns if the command line names no variant of task_bench_plain.
void become_plain(int argc, char** argv) {
  bool wanted = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--variant" && i + 1 < argc) wanted = is_plain(argv[i + 1]);
    if (word.starts_with("--variant=")) wanted = is_plain(word.substr(10));
  }
  if (!wanted) return;
  const std::string plain =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "task_bench_plain";
  execv(plain.c_str(), argv);
  fmt::print(stderr, "task_bench: cannot run {}, which has this variant: {}\n", plain,
             std::strerror(errno));
  std::exit(1);
}

int workers() { return std::max(1, imbrex::worker_count()); }

}  // namespace

int main(int argc, char** argv) {
  become_plain(argc, argv);
  imbrex::open_messages();
  MPI_Init(&argc, &argv);
  const int code = task_bench::run_program(
      argc, argv,
      {{"tasks", task_bench::run_tasks, workers}, {"data", task_bench::run_data, workers}});
  MPI_Finalize();
  return code;
}
