// SPDX-License-Identifier: BSD-3-Clause
#include "program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "../harness/program.hpp"
#include "options.hpp"

namespace task_bench {
namespace {

struct Result {
  int rounds;
  int steps;
  std::int64_t tasks;   // of all ranks
  std::int64_t work;    // rounds of all tasks
  double seconds;       // of the slowest rank
};

class Program {
 public:
  Program(const Options& options, const Variant& variant) : options_(options), variant_(variant) {
    if (options.shape.width < ranks_) {
      throw InputError(fmt::format("--width {}: {} ranks need a column each", options.shape.width,
                                   ranks_));
    }
    workers_ = variant.workers();
    round_s_ = measure_round(options.work);
    MPI_Bcast(&round_s_, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  }

  void run() {
    for (const Pattern* const pattern : options_.patterns) {
      // Threads are awake, memory is touched, and connections are open when time is taken.
      (void)run(*pattern, 1, std::min(options_.shape.steps, 2 * options_.shape.width));
      std::vector<Result> results;
      for (int i = 0; i < options_.repeat; ++i) {
        for (const int rounds : options_.rounds) {
          results.push_back(run(*pattern, rounds, steps_for(rounds)));
          if (rank_ == 0 && options_.json) print_json(*pattern, results.back());
        }
      }
      if (rank_ == 0 && !options_.json) print_table(*pattern, results);
    }
  }

 private:
  // Fewer than --steps if the kernels alone would take longer than --limit-ms.
  int steps_for(const int rounds) const {
    const double step_s = rounds * round_s_ * options_.shape.width / (ranks_ * workers_);
    const double most = 1e-3 * options_.limit_ms / std::max(step_s, 1e-12);
    const int least = std::min(options_.shape.steps, 2 * options_.shape.width);
    return std::max(least, static_cast<int>(std::min<double>(options_.shape.steps, most)));
  }

  Result run(const Pattern& pattern, const int rounds, const int steps) const {
    Shape shape = options_.shape;
    shape.steps = steps;
    Work work = options_.work;
    work.rounds = rounds;
    const Graph graph(pattern, shape, rank_, ranks_);
    const Run setting{graph, variant_.name, work, options_.bytes / sizeof(Mark), options_.fault,
                      MPI_COMM_WORLD};
    Board board(setting);
    Result result{rounds, steps, 0, 0, variant_.run(setting, board)};
    std::int64_t sums[] = {board.tasks(), board.rounds()};
    MPI_Allreduce(MPI_IN_PLACE, &result.seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    result.tasks = sums[0];
    result.work = sums[1];
    std::int64_t expected = 0;
    for (int step = 0; step < steps; ++step) expected += graph.columns(step).count();
    if (result.tasks != expected) {
      throw std::runtime_error(fmt::format("pattern {}, variant {}: {} tasks have run, but the "
                                           "graph has {}", pattern.name, variant_.name,
                                           result.tasks, expected));
    }
    return result;
  }

  // Microseconds that a worker spends for each task.
  double granularity_us(const Result& result) const {
    return 1e6 * result.seconds * ranks_ * workers_ / static_cast<double>(result.tasks);
  }

  void print_table(const Pattern& pattern, const std::vector<Result>& results) const {
    const auto rate = [](const Result& result) {
      return static_cast<double>(result.work) / result.seconds;
    };
    double best = 1e-300;
    for (const Result& result : results) best = std::max(best, rate(result));
    fmt::print("pattern {}, variant {}: {} columns on {} ranks x {} workers\n", pattern.name,
               variant_.name, options_.shape.width, ranks_, workers_);
    fmt::print("{:>10} {:>8} {:>10} {:>12} {:>12} {:>16}\n", "rounds", "steps", "tasks", "seconds",
               "us per task", "% of best rate");
    for (const Result& result : results) {
      fmt::print("{:>10} {:>8} {:>10} {:>12.6f} {:>12.3f} {:>16.1f}\n", result.rounds, result.steps,
                 result.tasks, result.seconds, granularity_us(result), 100 * rate(result) / best);
    }
  }

  void print_json(const Pattern& pattern, const Result& result) const {
    fmt::print("{{\"variant\": \"{}\", \"pattern\": \"{}\", \"ranks\": {}, \"workers\": {}, "
               "\"rounds\": {}, \"steps\": {}, \"tasks\": {}, \"work\": {}, \"seconds\": {}}}\n",
               variant_.name, pattern.name, ranks_, workers_, result.rounds, result.steps,
               result.tasks, result.work, result.seconds);
  }

  const Options& options_;
  const Variant& variant_;
  const int rank_ = apps::rank_of_all();
  const int ranks_ = apps::ranks_of_all();
  int workers_ = 0;
  double round_s_ = 0;
};

}  // namespace

int run(int argc, char** argv, const std::vector<Variant>& variants) {
  const Options options = parse_options(argc, argv);
  const auto found = std::ranges::find(variants, std::string_view(options.variant),
                                       [](const Variant& v) { return std::string_view(v.name); });
  if (found == variants.end()) {
    std::string names;
    for (const Variant& variant : variants) names += fmt::format(" {}", variant.name);
    throw InputError(fmt::format("--variant {}: this program has{}", options.variant, names));
  }
  Program(options, *found).run();
  return 0;
}

}  // namespace task_bench
