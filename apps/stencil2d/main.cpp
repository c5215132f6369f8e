// SPDX-License-Identifier: BSD-3-Clause
// stencil2d: reads the command line, runs the stencil in the variants asked for, checks and prints
// what came out.
// Exit codes: 0 well; 1 wrong input; 2 a field that is wrong. All ranks exit alike.
#include <fmt/format.h>
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <string>
#include <vector>

#include "../harness/runs.hpp"
#include "../tiled/setup.hpp"
#include "../tiled/timed_options.hpp"
#include "run.hpp"

namespace stencil2d {
namespace {

struct Settings {
  Problem problem;
  Options options;
  std::vector<std::string> variants{"fixed", "moving"};
  int repeat = 1;
  bool verify = false;
  tiled::TimedOptions timed;
  std::string json;
};

void add_problem(apps::CommandLine& line, Problem& problem) {
  line.number("--blocks", problem.blocks, {1, 1024}, "Of a row, and of a column, of the field");
  line.number("--side", problem.side, {1, 8192}, "Cells of a block's row, and of its column");
  line.number("--steps", problem.steps, {1}, "");
  line.number("--rounds", problem.rounds, {0, 100'000}, "Of a cell's reaction, in a step");
  line.number("--hot", problem.hot, {1, 1000},
              "Times as many in the hot spot; 1: all blocks cost the same");
  line.number("--radius", problem.radius, {0, 1}, "Of the hot spot; the field's width is 1");
  line.number("--turns", problem.turns, {0, 100},
              "Of the hot spot around the middle, in the whole run");
}

Settings parse_options(int argc, char** argv) {
  Settings settings;
  apps::CommandLine line("stencil2d",
                         "A stencil in two dimensions, whose blocks are data with owners. A hot "
                         "spot, in\nwhich blocks cost more, goes around; every few steps the ranks "
                         "measure what each\nblock takes, agree where blocks are to be, and move "
                         "them.");
  add_problem(line, settings.problem);
  line.number("--every", settings.options.every, {1}, "Steps after which blocks may move");
  line.choice("--variant", settings.variants,
              {{"fixed", {"fixed"}},
               {"moving", {"moving"}},
               {"both", {"fixed", "moving"}},
               {"tasks", {"tasks"}},
               {"iterate", {"iterate"}},
               {"messages", {"tasks", "iterate"}},
               {"all", {"fixed", "moving", "tasks", "iterate"}}},
              "fixed, moving, or both in turn; tasks: messages are plain MPI calls in tasks, and "
              "blocks stay; iterate: these tasks, created once; messages: both of these in turn; "
              "or all");
  line.repetitions("--repeat", settings.repeat);
  line.flag("--verify", settings.verify, "Compute the field on one rank too, and compare");
  line.json(settings.json);
  add_timed(line, "a block", "", settings.timed);
  line.parse(argc, argv);
  check_timed(line, kernel_names, settings.timed);
  if (settings.verify && settings.timed.timed) {
    throw tiled::InputError("--verify: --kernels timed computes no field that could be verified");
  }
  return settings;
}

apps::Run result_of(const Outcome& outcome, bool verified) {
  apps::Run run{.seconds = outcome.seconds,
                .right = outcome.right,
                .text = fmt::format("   imbalance {:.2f}   {:.1f} MB sent{}", outcome.imbalance,
                                    1e-6 * static_cast<double>(outcome.bytes_sent),
                                    !verified ? "" : outcome.right ? "   as computed alone"
                                                                   : "   WRONG"),
                .figures = {{"imbalance", outcome.imbalance},
                            {"bytes_sent", outcome.bytes_sent},
                            {"periods", nlohmann::json::array()}}};
  for (std::size_t p = 0; p < outcome.periods.size(); ++p) {
    const Period& period = outcome.periods[p];
    run.figures["periods"].push_back({{"imbalance", period.imbalance},
                                      {"imbalance_expected", period.imbalance_expected},
                                      {"moved", period.moved}});
    if (period.moved == 0) continue;
    run.text += fmt::format("\n        period {:<4} imbalance {:.2f}, {} blocks moved, for {:.2f}",
                            p + 1, period.imbalance, period.moved, period.imbalance_expected);
  }
  return run;
}

Variant variant_of(const std::string& name) {
  return name == "fixed"    ? Variant::fixed
         : name == "moving" ? Variant::moving
         : name == "tasks"  ? Variant::tasks
                            : Variant::iterate;
}

// The exit code.
int run_all(const tiled::Team& team, const Settings& settings, const Kernels& kernels) {
  std::vector<double> expected;
  if (settings.verify) expected = compute_serially(settings.problem);
  apps::Runs runs(settings.variants, settings.repeat, team.rank() == 0);
  runs.measure([&](const apps::Turn& turn) {
    Options options = settings.options;
    options.variant = variant_of(settings.variants[turn.variant]);
    return result_of(run(team, settings.problem, kernels, options, expected), settings.verify);
  });
  if (team.rank() != 0) return runs.right() ? 0 : 2;
  if (settings.variants.size() > 1 && settings.variants[1] == "moving") {
    fmt::print("With moving blocks it takes {:.2f} times as long as with fixed ones (medians).\n",
               runs.median(1) / runs.median(0));
  }
  if (settings.variants.size() > 1 && settings.variants.back() == "iterate") {
    fmt::print("With tasks created once it takes {:.2f} times as long as with tasks created in "
               "each step (medians).\n",
               runs.median(settings.variants.size() - 1) /
                   runs.median(settings.variants.size() - 2));
  }
  if (!runs.right()) fmt::print(stderr, "stencil2d: a field is not as computed alone\n");
  apps::write_json(settings.json, {{"benchmark", "stencil2d"},
                                   {"ranks", team.size()},
                                   {"blocks", settings.problem.blocks},
                                   {"side", settings.problem.side},
                                   {"runs", runs.figures()}});
  return runs.right() ? 0 : 2;
}

int run_program(int argc, char** argv) {
  const int ranks = apps::ranks_of_all();
  const Settings settings = parse_options(argc, argv);
  const Problem& problem = settings.problem;
  const tiled::Team team({1, ranks});
  apps::check_writable(team.all(), "--json", settings.json);
  const tiled::KernelTimes times =
      find_times(team, settings.timed, [&problem] { return measure_kernels(problem); });
  if (team.rank() == 0) {
    fmt::print("{0} x {0} blocks of {1} x {1} cells on {2} ranks, {3} each; {4} steps, periods of "
               "{5}\nImbalance: the longest time in kernels of a rank over the mean\n",
               problem.blocks, problem.side, ranks,
               apps::counted(imbrex::worker_count(), "worker"), problem.steps,
               settings.options.every);
    if (settings.timed.timed) {
      print_times(settings.timed, times, "a block outside of the hot spot");
    }
  }
  return run_all(team, settings, Kernels(times_here(team, settings.timed, times)));
}

}  // namespace
}  // namespace stencil2d

int main(int argc, char** argv) {
  return tiled::run_program("stencil2d", argc, argv, &stencil2d::run_program);
}
