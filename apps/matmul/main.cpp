// SPDX-License-Identifier: BSD-3-Clause
// matmul: multiplies two random matrices in tiles over MPI ranks, by tasks that block in plain MPI
// calls, and by tasks that every rank inserts; checks against dgemm and prints what came out.
// Exit codes: 0 well; 1 wrong input; 2 an error that is too large. The same on every rank.
#include <fmt/format.h>
#include <imbrex/detail/observation.hpp>
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../tiled/activity.hpp"
#include "../tiled/setup.hpp"
#include "../tiled/timed_options.hpp"
#include "multiply.hpp"

namespace matmul {
namespace {

constexpr double error_limit = 1;

struct CommandLine {
  std::int64_t n = 0;
  int tile = 0;  // 0: 384, or n if that is less
  std::string grid;
  std::string variant = "both";
  int repeat = 1;
  std::uint64_t seed = 1;
  int check = 4;
  Options options;
  TimedOptions timed;
  std::string json;
};

CommandLine parse_options(int argc, char** argv, std::string& help) {
  CommandLine line;
  TimedText timed;
  CLI::App app("Multiplies two random matrices, C = A B, in tiles over MPI ranks: as tasks that\n"
               "block in plain MPI calls, and as tasks that every rank inserts, whose messages\n"
               "the runtime finds.", "matmul");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  app.add_option("--random", line.n, "The order of the matrices")
      ->check(CLI::PositiveNumber)
      ->required();
  app.add_option("--tile", line.tile, "Rows of a tile; 384, or all if the matrix has fewer")
      ->check(CLI::PositiveNumber);
  app.add_option("--grid", line.grid, "ROWSxCOLUMNS of ranks; nearly square if not given");
  app.add_option("--variant", line.variant, "messages, inserted, or both in turn")
      ->check(CLI::IsMember({"messages", "inserted", "both"}))
      ->capture_default_str();
  app.add_option("--slices", line.options.slices,
                 "Inserted: parts that are summed to C, each by a group of ranks")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_flag("--trim", line.options.trim,
               "Inserted: each rank leaves out of the loop what does not concern it");
  app.add_option("--lookahead", line.options.lookahead,
                 "Messages: steps whose received tiles may be in memory at once")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--repeat", line.repeat, "Runs of each variant")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--seed", line.seed, "Of the matrices")->capture_default_str();
  app.add_option("--check", line.check, "Tiles of each rank that are compared with dgemm's")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--json", line.json, "Write the figures there too");
  add_timed(app, kernel_names, timed);
  if (!parse(app, argc, argv, help)) return line;
  const bool sliced = line.options.slices > 1;
  if ((sliced || line.options.trim) && line.variant == "messages") {
    throw InputError("--slices and --trim: need --variant inserted, or both");
  }
  if (sliced && line.options.trim) {
    throw InputError("--trim: not with --slices, where others than its owner add to a tile");
  }
  line.timed = read_timed(kernel_names, timed);
  return line;
}

struct Run {
  std::string variant;
  double seconds;      // from a barrier to the last rank's end
  double gflops;       // Gflop/s: 2 n^3 operations
  double port_bytes;   // sent or received, whichever is more, by the rank with most
  double tiles_peak;   // received, or parts of a sum, in memory at once: of the rank with most
  double error;        // 0 if kernels sleep
  Activity activity;
  Broadcasts broadcasts;  // of inserted tasks, over all ranks
};

class Benchmark {
 public:
  Benchmark(const Team& team, const CommandLine& line, const Layout& layout,
            const KernelTimes& times)
      : team_(team),
        line_(line),
        kernels_(times_here(team, line.timed, times), layout.tile),
        a_source_(layout.n, line.seed),
        b_source_(layout.n, line.seed + 1),
        matrices_{std::move(*allocate(team, layout)), std::move(*allocate(team, layout)),
                  std::move(*allocate(team, layout))} {
    fill(matrices_.a, a_source_);
    fill(matrices_.b, b_source_);
  }

  Run run(const std::string& variant) {
    const Layout& layout = matrices_.c.layout();
    for_each_tile_of_mine(matrices_.c, [&](int i, int j) {
      const std::int64_t count = std::int64_t{layout.extent(i)} * layout.extent(j);
      std::fill_n(matrices_.c.handle(i, j), count, 0.0);
    });
    MPI_Barrier(team_.all());
    const imbrex::detail::Totals totals = imbrex::detail::totals();
    const double start = MPI_Wtime();
    TaskUse use;
    const auto multiply = variant == "messages" ? &multiply_messages : &multiply_inserted;
    multiply(team_, matrices_, kernels_, line_.options, use);
    double most[3] = {MPI_Wtime() - start,
                      static_cast<double>(std::max(use.bytes_sent, use.bytes_received)),
                      static_cast<double>(use.tiles_peak)};
    const Activity activity = activity_since(team_, totals);
    MPI_Allreduce(MPI_IN_PLACE, most, 3, MPI_DOUBLE, MPI_MAX, team_.all());
    const double n = static_cast<double>(layout.n);
    return {variant, most[0], 2e-9 * n * n * n / most[0], most[1], most[2],
            kernels_.sleep() ? 0 : error(team_, matrices_.c, a_source_, b_source_, line_.check),
            activity, sum_over_ranks(team_, use.broadcasts)};
  }

  [[nodiscard]] bool sleeps() const noexcept { return kernels_.sleep(); }

 private:
  const Team& team_;
  const CommandLine& line_;
  const Kernels kernels_;
  const UniformSource a_source_, b_source_;
  Matrices matrices_;
};

void print_run(const Run& run, int number, bool sleep) {
  const Activity& activity = run.activity;
  const double busy = activity.in_task_s + activity.idle_s + activity.overhead_s;
  fmt::print("run {:<3} {:<8} {:9.3f} s {:8.1f} Gflop/s   in tasks {:.1f} %, idle {:.1f} %", number,
             run.variant, run.seconds, run.gflops, 100 * activity.in_task_s / busy,
             100 * activity.idle_s / busy);
  fmt::print("{}\n", sleep ? "" : fmt::format("   error {:.4f}", run.error));
  if (const std::string text = describe(run.broadcasts); !text.empty()) {
    fmt::print("        {}\n", text);
  }
  std::fflush(stdout);
}

nlohmann::json to_json(const Run& run) {
  nlohmann::json record{{"variant", run.variant},
                        {"seconds", run.seconds},
                        {"gflops", run.gflops},
                        {"port_bytes", run.port_bytes},
                        {"received_tiles_peak", run.tiles_peak},
                        {"error", run.error},
                        {"in_task_s", run.activity.in_task_s},
                        {"idle_s", run.activity.idle_s},
                        {"overhead_s", run.activity.overhead_s}};
  add_to(record, run.broadcasts);
  return record;
}

void check_slices(const Team& team, int slices) {
  if (team.size() % slices == 0) return;
  throw InputError(fmt::format("--slices {}: must divide the number of ranks, which is {}", slices,
                               team.size()));
}

// The exit code.
int run(int argc, char** argv) {
  int ranks = 0;
  int rank = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::string help;
  const CommandLine line = parse_options(argc, argv, help);
  if (print_help(help)) return 0;
  const Team team(line.grid.empty() ? nearly_square(ranks) : parse_grid(line.grid, ranks));
  check_slices(team, line.options.slices);
  check_json(team, line.json);
  const int tile =
      line.tile != 0 ? line.tile : static_cast<int>(std::min<std::int64_t>(384, line.n));
  const Layout layout{line.n, tile, team.grid(), Shape::full};
  check_layout(team, layout, 3);
  const KernelTimes times =
      find_times(team, line.timed, [tile] { return measure_kernels(tile); });
  Benchmark benchmark(team, line, layout, times);
  if (rank == 0) {
    fmt::print("C = A B of {0} x {0}, {1} x {1} tiles of {2} on {3} x {4} ranks; {5} slice{6}; "
               "error: ||C - A B|| / (n ||A|| ||B|| eps)\n", line.n, layout.tiles(), tile,
               team.grid().rows, team.grid().columns, line.options.slices,
               line.options.slices == 1 ? "" : "s");
    if (benchmark.sleeps()) print_times(line.timed, times);
  }

  nlohmann::json document{{"benchmark", "matmul"}, {"n", line.n}, {"tile", tile},
                          {"ranks", ranks}, {"slices", line.options.slices},
                          {"blas", describe_blas()}};
  int code = 0;
  int number = 0;
  for (int repetition = 0; repetition < line.repeat; ++repetition) {
    for (const char* const variant : {"messages", "inserted"}) {
      if (line.variant != "both" && line.variant != variant) continue;
      const Run result = benchmark.run(variant);
      if (rank == 0) print_run(result, ++number, benchmark.sleeps());
      document["runs"].push_back(to_json(result));
      if (!(result.error <= error_limit)) code = 2;  // NaN too
    }
  }
  if (code == 2 && rank == 0) fmt::print(stderr, "matmul: an error is above {}\n", error_limit);
  if (rank == 0 && !line.json.empty()) std::ofstream(line.json) << document.dump(2) << "\n";
  return code;
}

}  // namespace
}  // namespace matmul

int main(int argc, char** argv) {
  return tiled::run_program("matmul", argc, argv, &matmul::run);
}
