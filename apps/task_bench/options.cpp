// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <fmt/format.h>

#include "../command_line.hpp"

namespace task_bench {
namespace {

// The text of the command line, until it is checked.
struct Text {
  std::vector<std::string> patterns{"stencil_1d"};
  std::string kernel = "compute";
  std::size_t scratch_kib = 64;
  std::vector<int> fault;
};

void add_graph(CLI::App& app, Options& options, Text& text) {
  std::vector<std::string> names{"all"};
  for (const Pattern& pattern : all_patterns()) names.emplace_back(pattern.name);
  apps::add_list(app, "--pattern", text.patterns, "Patterns, separated by commas, or all")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
  app.add_option("--width", options.shape.width, "Columns of the graph, at least one for each rank")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--steps", options.shape.steps, "Steps of the graph, at most (see --limit-ms)")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  app.add_option("--radix", options.shape.radix,
                 "Inputs of a task of nearest, spread and random_nearest, at most")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--seed", options.shape.seed, "Of random_nearest and of the imbalanced kernel")
      ->capture_default_str();
  app.add_option("--bytes", options.bytes, "Of an output of a task: a multiple of 16")
      ->check(CLI::Range(std::size_t{sizeof(Mark)}, std::size_t{1} << 30))
      ->capture_default_str();
}

void add_work(CLI::App& app, Options& options, Text& text) {
  app.add_option("--kernel", text.kernel,
                 "compute: 64 multiplications and additions in a round; memory: a round copies "
                 "1 KiB within --scratch-kib; imbalanced: compute, with random numbers of rounds")
      ->check(CLI::IsMember({"compute", "memory", "imbalanced"}))
      ->capture_default_str();
  apps::add_list(app, "--rounds", options.rounds,
                 "Rounds of a task, separated by commas: one run each")
      ->check(CLI::Range(0, 1 << 30))
      ->default_str("16384, and by half down to 1");
  app.add_option("--scratch-kib", text.scratch_kib, "Working set of a column's memory kernel")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app.add_option("--imbalance", options.work.imbalance,
                 "Imbalanced: rounds are 1 - F/2 to 1 + F/2 times --rounds")
      ->check(CLI::Range(0.0, 2.0))
      ->capture_default_str();
}

void add_rest(CLI::App& app, Options& options, Text& text) {
  app.add_option("--variant", options.variant,
                 "mpi, openmp (with MPI), tasks (imbrex's, with blocking messages), or data "
                 "(imbrex's data with owners)")
      ->capture_default_str();
  app.add_option("--limit-ms", options.limit_ms,
                 "A run gets fewer steps if its kernels alone would take longer")
      ->check(CLI::Range(0.001, 1e9))
      ->capture_default_str();
  app.add_option("--repeat", options.repeat, "Sweeps over --rounds")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--break", text.fault,
                 "STEP,COLUMN: that task's output is wrong, which its readers must find")
      ->delimiter(',')
      ->expected(2);
  app.add_flag("--json", options.json, "Print each run as a line of JSON, instead of the table");
}

void check(Options& options, const Text& text) {
  for (const std::string& name : text.patterns) {
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
  if (text.kernel == "memory") options.work.kernel = Kernel::memory;
  if (text.kernel == "imbalanced") options.work.kernel = Kernel::imbalanced;
  options.work.scratch_bytes = text.scratch_kib * 1024;
  if (!text.fault.empty()) options.fault = {text.fault[0], text.fault[1]};
}

}  // namespace

Options parse_options(int argc, char** argv, std::string& help) {
  Options options;
  Text text;
  CLI::App app("Runs graphs of tasks with the patterns of Task Bench (Slaughter et al., SC20) and\n"
               "prints how efficient each granularity of tasks is.", "task_bench");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  add_graph(app, options, text);
  add_work(app, options, text);
  add_rest(app, options, text);
  if (!apps::parse(app, argc, argv, help)) return options;
  check(options, text);
  return options;
}

}  // namespace task_bench
