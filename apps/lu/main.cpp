// SPDX-License-Identifier: BSD-3-Clause
// lu: factors a random matrix, A = L U without pivoting, in tiles over MPI ranks, as tasks that
// block in plain MPI calls, or as tasks that every rank inserts; checks and prints what came out.
// Exit codes: 0 well; 1 wrong input; 2 a residual that is too large. The same on every rank.
#include <fmt/format.h>
#include <imbrex/detail/observation.hpp>
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
#include "factor.hpp"

namespace lu {
namespace {

constexpr double residual_limit = 10;
constexpr int probes = 16;

struct Options {
  std::int64_t n = 0;
  int tile = 0;  // 0: 384, or n if that is less
  std::string grid;
  std::string variant = "tasks";
  int repeat = 1;
  std::uint64_t seed = 1;
  TaskOptions tasks;
  TimedOptions timed;
  std::string json;
};

Options parse_options(int argc, char** argv, std::string& help) {
  Options options;
  TimedText timed;
  std::string priorities = "none";
  CLI::App app("Factors a random matrix, A = L U without pivoting, in tiles over MPI ranks, as\n"
               "tasks that block in plain MPI calls, or as tasks that every rank inserts, whose\n"
               "messages the runtime finds.", "lu");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  app.add_option("--random", options.n, "The order of the matrix")
      ->check(CLI::PositiveNumber)
      ->required();
  app.add_option("--tile", options.tile, "Rows of a tile; 384, or all if the matrix has fewer")
      ->check(CLI::PositiveNumber);
  app.add_option("--grid", options.grid, "ROWSxCOLUMNS of ranks; nearly square if not given");
  app.add_option("--variant", options.variant, "tasks, inserted, or both in turn")
      ->check(CLI::IsMember({"tasks", "inserted", "both"}))
      ->capture_default_str();
  app.add_flag("--trim", options.tasks.trim,
               "Inserted: each rank leaves out of the loop what does not concern it");
  app.add_option("--repeat", options.repeat, "Runs of each variant")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "Of the matrix")->capture_default_str();
  app.add_option("--lookahead", options.tasks.lookahead,
                 "Steps whose received tiles may be in memory at once")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--priorities", priorities,
                 "none, or sends: mark them, for policies that go by them")
      ->check(CLI::IsMember({"none", "sends"}))
      ->capture_default_str();
  app.add_option("--json", options.json, "Write the figures there too");
  add_timed(app, kernel_names, timed);
  if (!parse(app, argc, argv, help)) return options;
  if (options.tasks.trim && options.variant == "tasks") {
    throw InputError("--trim: needs --variant inserted, or both");
  }
  options.tasks.mark_sends = priorities == "sends";
  options.timed = read_timed(kernel_names, timed);
  return options;
}

struct Run {
  std::string variant;
  double seconds;      // from a barrier to the last rank's end
  double port_bytes;   // sent or received, whichever is more, by the rank with most
  double residual;     // 0 if kernels sleep
  Activity activity;
  Broadcasts broadcasts;  // of inserted tasks, over all ranks
};

Run run_once(const Team& team, const Options& options, const Kernels& kernels, TiledMatrix& matrix,
             const std::string& variant) {
  const UnsymmetricSource source(options.n, options.seed);
  fill(matrix, source);
  MPI_Barrier(team.all());
  const imbrex::detail::Totals totals = imbrex::detail::totals();
  const double start = MPI_Wtime();
  TaskUse use;
  const auto run = variant == "tasks" ? &factor : &factor_inserted;
  const std::int64_t minor = run(team, matrix, kernels, options.tasks, use);
  double most[2] = {MPI_Wtime() - start,
                    static_cast<double>(std::max(use.bytes_sent, use.bytes_received))};
  const Activity activity = activity_since(team, totals);
  MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_DOUBLE, MPI_MAX, team.all());
  if (minor != 0) throw InputError(fmt::format("the leading minor of order {} is zero", minor));
  return {variant, most[0], most[1],
          kernels.sleep() ? 0 : residual(team, matrix, source, probes), activity,
          sum_over_ranks(team, use.broadcasts)};
}

void print_run(const Run& run, int number, bool sleep) {
  const Activity& activity = run.activity;
  const double busy = activity.in_task_s + activity.idle_s + activity.overhead_s;
  fmt::print("run {:<3} {:<8} {:9.3f} s   in tasks {:.1f} %, idle {:.1f} %, overhead {:.1f} %",
             number, run.variant, run.seconds, 100 * activity.in_task_s / busy,
             100 * activity.idle_s / busy, 100 * activity.overhead_s / busy);
  fmt::print("{}\n", sleep ? "" : fmt::format("   residual {:.4f}", run.residual));
  if (const std::string text = describe(run.broadcasts); !text.empty()) {
    fmt::print("        {}\n", text);
  }
  std::fflush(stdout);
}

nlohmann::json to_json(const Run& run) {
  nlohmann::json record{{"variant", run.variant},
                        {"seconds", run.seconds},
                        {"port_bytes", run.port_bytes},
                        {"residual", run.residual},
                        {"in_task_s", run.activity.in_task_s},
                        {"idle_s", run.activity.idle_s},
                        {"overhead_s", run.activity.overhead_s},
                        {"tasks", run.activity.tasks},
                        {"suspensions", run.activity.suspensions}};
  add_to(record, run.broadcasts);
  return record;
}

// The exit code.
int run(int argc, char** argv) {
  int ranks = 0;
  int rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::string help;
  const Options options = parse_options(argc, argv, help);
  if (print_help(help)) return 0;
  const Team team(options.grid.empty() ? nearly_square(ranks) : parse_grid(options.grid, ranks));
  check_json(team, options.json);
  const int tile =
      options.tile != 0 ? options.tile : static_cast<int>(std::min<std::int64_t>(384, options.n));
  const Layout layout{options.n, tile, team.grid(), Shape::full};
  check_layout(team, layout, 1);
  const std::unique_ptr<TiledMatrix> matrix = allocate(team, layout);
  const KernelTimes times =
      find_times(team, options.timed, [tile] { return measure_kernels(tile); });
  const Kernels kernels(times_here(team, options.timed, times), tile);
  if (rank == 0) {
    fmt::print("LU of {0} x {0}, {1} x {1} tiles of {2} on {3} x {4} ranks; residual: "
               "||A - L U|| / (n ||A|| eps)\n", options.n, layout.tiles(), tile, team.grid().rows,
               team.grid().columns);
    if (kernels.sleep()) print_times(options.timed, times);
  }

  nlohmann::json document{{"benchmark", "lu"}, {"n", options.n}, {"tile", tile}, {"ranks", ranks},
                          {"blas", describe_blas()}};
  for (std::size_t i = 0; i < times.size(); ++i) {
    document["kernels"].push_back({{"name", kernel_names[i]}, {"us", 1e6 * times[i]}});
  }
  int code = 0;
  int number = 0;
  for (int repetition = 0; repetition < options.repeat; ++repetition) {
    for (const char* const variant : {"tasks", "inserted"}) {
      if (options.variant != "both" && options.variant != variant) continue;
      const Run result = run_once(team, options, kernels, *matrix, variant);
      if (rank == 0) print_run(result, ++number, kernels.sleep());
      document["runs"].push_back(to_json(result));
      if (!(result.residual <= residual_limit)) code = 2;  // NaN too
    }
  }
  if (code == 2 && rank == 0) fmt::print(stderr, "lu: a residual is above {}\n", residual_limit);
  if (rank == 0 && !options.json.empty()) std::ofstream(options.json) << document.dump(2) << "\n";
  return code;
}

}  // namespace
}  // namespace lu

int main(int argc, char** argv) {
  return tiled::run_program("lu", argc, argv, &lu::run);
}
