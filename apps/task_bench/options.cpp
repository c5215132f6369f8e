// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <fmt/format.h>

#include "../harness/command_line.hpp"

namespace task_bench {
namespace {

using apps::CommandLine;

void add_graph(CommandLine& line, Options& options, std::vector<std::string>& patterns) {
  std::vector<std::string> names{"all"};
  for (const Pattern& pattern : all_patterns()) names.emplace_back(pattern.name);
  line.words("--pattern", patterns, names, "Patterns, separated by commas, or all");
  line.number("--width", options.shape.width, {1, 4096},
              "Columns of the graph, at least one for each rank");
  line.number("--steps", options.shape.steps, {1, 10'000'000},
              "Steps of the graph, at most (see --limit-ms)");
  line.number("--radix", options.shape.radix, {1, 4096},
              "Inputs of a task of nearest, spread and random_nearest, at most");
  line.number("--seed", options.shape.seed, {}, "Of random_nearest and of the imbalanced kernel");
  line.number("--bytes", options.bytes, {sizeof(Mark), std::size_t{1} << 30},
              "Of an output of a task: a multiple of 16");
}

void add_work(CommandLine& line, Options& options, int& scratch_kib) {
  line.choice("--kernel", options.work.kernel,
              {{"compute", Kernel::compute},
               {"memory", Kernel::memory},
               {"imbalanced", Kernel::imbalanced}},
              "compute: 64 multiplications and additions in a round; memory: a round copies "
              "1 KiB within --scratch-kib; imbalanced: compute, with random numbers of rounds");
  line.numbers("--rounds", options.rounds, {0, 1 << 30},
               "Rounds of a task, separated by commas: one run each; 16384, and by half down to "
               "1, if not given");
  line.number("--scratch-kib", scratch_kib, {2, 1 << 20},
              "Working set of a column's memory kernel");
  line.number("--imbalance", options.work.imbalance, {0, 2},
              "Imbalanced: rounds are 1 - F/2 to 1 + F/2 times --rounds");
}

void add_rest(CommandLine& line, Options& options, std::vector<int>& fault) {
  line.text("--variant", options.variant,
            "mpi, openmp (with MPI), tasks (imbrex's, with blocking messages), iterate (these "
            "tasks, created once), or data (imbrex's data with owners)");
  line.number("--limit-ms", options.limit_ms, {0.001, 1e9},
              "A run gets fewer steps if its kernels alone would take longer");
  line.number("--repeat", options.repeat, {1, 1'000'000}, "Sweeps over --rounds");
  line.pair("--break", fault,
            "STEP,COLUMN: that task's output is wrong, which its readers must find");
  line.flag("--json", options.json, "Print each run as a line of JSON, instead of the table");
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  std::vector<std::string> patterns{"stencil_1d"};
  int scratch_kib = 64;
  std::vector<int> fault;
  CommandLine line("task_bench",
                   "Runs graphs of tasks with the patterns of Task Bench (Slaughter et al., SC20) "
                   "and\nprints how efficient each granularity of tasks is.");
  add_graph(line, options, patterns);
  add_work(line, options, scratch_kib);
  add_rest(line, options, fault);
  line.parse(argc, argv);
  for (const std::string& name : patterns) {
    if (name != "all") {
      options.patterns.push_back(find_pattern(name));
      continue;
    }
    for (const Pattern& pattern : all_patterns()) options.patterns.push_back(&pattern);
  }
  if (options.bytes % sizeof(Mark) != 0) {
    throw InputError(fmt::format("--bytes {}: must be a multiple of {}", options.bytes,
                                 sizeof(Mark)));
  }
  if (options.rounds.empty()) {
    for (int rounds = 16384; rounds >= 1; rounds /= 2) options.rounds.push_back(rounds);
  }
  options.work.scratch_bytes = static_cast<std::size_t>(scratch_kib) * 1024;
  if (!fault.empty()) options.fault = {fault[0], fault[1]};
  return options;
}

}  // namespace task_bench
