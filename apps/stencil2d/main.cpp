// SPDX-License-Identifier: BSD-3-Clause
// stencil2d: reads the command line, runs the stencil with blocks that stay and with blocks that
// move, checks and prints what came out.
// Exit codes: 0 well; 1 wrong input; 2 a field that is wrong. All ranks exit alike.
#include <fmt/format.h>
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../tiled/activity.hpp"
#include "../tiled/setup.hpp"
#include "../tiled/timed_options.hpp"
#include "run.hpp"

namespace stencil2d {
namespace {

struct CommandLine {
  Problem problem;
  Options options;
  std::string variant = "both";
  int repeat = 1;
  bool verify = false;
  tiled::TimedOptions timed;
  std::string json;
};

void add_problem(CLI::App& app, Problem& problem) {
  app.add_option("--blocks", problem.blocks, "Of a row, and of a column, of the field")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_option("--side", problem.side, "Cells of a block's row, and of its column")
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  app.add_option("--steps", problem.steps)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--rounds", problem.rounds, "Of a cell's reaction, in a step")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();
  app.add_option("--hot", problem.hot, "Times as many in the hot spot; 1: all blocks cost the same")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--radius", problem.radius, "Of the hot spot; the field's width is 1")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  app.add_option("--turns", problem.turns, "Of the hot spot around the middle, in the whole run")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
}

CommandLine parse_options(int argc, char** argv, std::string& help) {
  CommandLine line;
  tiled::TimedText timed;
  CLI::App app("A stencil in two dimensions, whose blocks are data with owners. A hot spot, in\n"
               "which blocks cost more, goes around; every few steps the ranks measure what each\n"
               "block takes, agree where blocks are to be, and move them.", "stencil2d");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  add_problem(app, line.problem);
  app.add_option("--every", line.options.every, "Steps after which blocks may move")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--variant", line.variant, "fixed, moving, or both in turn")
      ->check(CLI::IsMember({"fixed", "moving", "both"}))
      ->capture_default_str();
  app.add_option("--repeat", line.repeat, "Runs of each variant")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--verify", line.verify, "Compute the field on one rank too, and compare");
  app.add_option("--json", line.json, "Write the figures there too");
  add_timed(app, kernel_names, timed);
  if (!apps::parse(app, argc, argv, help)) return line;
  line.timed = read_timed(kernel_names, timed);
  if (line.verify && line.timed.timed) {
    throw tiled::InputError("--verify: --kernels timed computes no field that could be verified");
  }
  return line;
}

void print_run(const std::string& variant, const Outcome& outcome, int number, bool verify) {
  fmt::print("run {:<3} {:<7} {:9.3f} s   imbalance {:.2f}   {:.1f} MB sent{}\n", number, variant,
             outcome.seconds, outcome.imbalance, 1e-6 * static_cast<double>(outcome.bytes_sent),
             !verify ? "" : outcome.right ? "   as computed alone" : "   WRONG");
  for (std::size_t p = 0; p < outcome.periods.size(); ++p) {
    const Period& period = outcome.periods[p];
    if (period.moved == 0) continue;
    fmt::print("        period {:<4} imbalance {:.2f}, {} blocks moved, for {:.2f}\n", p + 1,
               period.imbalance, period.moved, period.imbalance_expected);
  }
  std::fflush(stdout);
}

nlohmann::json to_json(const std::string& variant, const Outcome& outcome) {
  nlohmann::json periods = nlohmann::json::array();
  for (const Period& period : outcome.periods) {
    periods.push_back({{"imbalance", period.imbalance},
                       {"imbalance_expected", period.imbalance_expected},
                       {"moved", period.moved}});
  }
  return {{"variant", variant},          {"seconds", outcome.seconds},
          {"imbalance", outcome.imbalance}, {"bytes_sent", outcome.bytes_sent},
          {"periods", periods}};
}

void print_times(const CommandLine& line, const tiled::KernelTimes& times) {
  fmt::print("A block takes {:.0f} us asleep, {} times as long in the hot spot; there is no field "
             "that could be checked\n", 1e6 * times[0], line.problem.hot);
  if (line.timed.slow.rank >= 0) {
    fmt::print("On rank {} it takes {} times as long\n", line.timed.slow.rank,
               line.timed.slow.factor);
  }
}

// The exit code.
int run_all(const tiled::Team& team, const CommandLine& line, const Kernels& kernels) {
  std::vector<double> expected;
  if (line.verify) expected = compute_alone(line.problem);
  nlohmann::json document{{"benchmark", "stencil2d"}, {"ranks", team.size()},
                          {"blocks", line.problem.blocks}, {"side", line.problem.side}};
  std::vector<double> seconds[2];
  bool right = true;
  int number = 0;
  for (int repetition = 0; repetition < line.repeat; ++repetition) {
    for (const bool moving : {false, true}) {
      const std::string variant = moving ? "moving" : "fixed";
      if (line.variant != "both" && line.variant != variant) continue;
      Options options = line.options;
      options.moving = moving;
      const Outcome outcome = run(team, line.problem, kernels, options, expected);
      right = right && outcome.right;
      seconds[moving ? 1 : 0].push_back(outcome.seconds);
      if (team.rank() == 0) print_run(variant, outcome, ++number, line.verify);
      document["runs"].push_back(to_json(variant, outcome));
    }
  }
  if (team.rank() != 0) return right ? 0 : 2;
  if (line.variant == "both") {
    fmt::print("With moving blocks it takes {:.2f} times as long as with fixed ones (medians).\n",
               tiled::median_of(seconds[1]) / tiled::median_of(seconds[0]));
  }
  if (!right) fmt::print(stderr, "stencil2d: a field is not as computed alone\n");
  if (!line.json.empty()) std::ofstream(line.json) << document.dump(2) << "\n";
  return right ? 0 : 2;
}

int run_program(int argc, char** argv) {
  int ranks = 0;
  int rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::string help;
  const CommandLine line = parse_options(argc, argv, help);
  if (tiled::print_help(help)) return 0;
  const tiled::Team team({1, ranks});
  check_json(team, line.json);
  const tiled::KernelTimes times =
      find_times(team, line.timed, [&line] { return measure_kernels(line.problem); });
  const Kernels kernels(times_here(team, line.timed, times));
  if (rank == 0) {
    const Problem& problem = line.problem;
    fmt::print("{0} x {0} blocks of {1} x {1} cells on {2} ranks, {3} worker{4} each; {5} steps, "
               "periods of {6}\nImbalance: the longest time in kernels of a rank over the mean\n",
               problem.blocks, problem.side, ranks, imbrex::worker_count(),
               imbrex::worker_count() == 1 ? "" : "s", problem.steps, line.options.every);
    if (kernels.sleep()) print_times(line, times);
  }
  return run_all(team, line, kernels);
}

}  // namespace
}  // namespace stencil2d

int main(int argc, char** argv) {
  return tiled::run_program("stencil2d", argc, argv, &stencil2d::run_program);
}
