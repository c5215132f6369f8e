// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <fmt/format.h>
#include <imbrex/imbrex.hpp>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "../kernels.hpp"

namespace tiled {
namespace {

// A line of the table of medians: a figure of a run, or its share of the workers' time.
struct Line {
  const char* label;
  int digits;
  const char* figure;
  double factor = 1;
  bool is_share = false;

  [[nodiscard]] double of(const nlohmann::json& run) const {
    const auto number = [&run](const char* const name) { return run[name].get<double>(); };
    const double busy = number("in_task_s") + number("idle_s") + number("overhead_s");
    if (is_share && busy <= 0) return 0;
    return factor * number(figure) / (is_share ? busy : 1);
  }
};

constexpr Line lines[] = {{"time, s", 3, "seconds"},
                          {"Gflop/s", 1, "gflops"},
                          {"DGEMM, Gflop/s", 1, "dgemm_gflops"},
                          {"share of DGEMM, %", 1, "share", 100},
                          {"in tasks, %", 1, "in_task_s", 100, true},
                          {"idle, %", 1, "idle_s", 100, true},
                          {"overhead, %", 1, "overhead_s", 100, true},
                          {"tasks run", 0, "tasks"},
                          {"suspensions", 0, "suspensions"},
                          {"residual", 4, "residual"}};

// Prints the ratio of the two variants, if both were run.
void print_ratio(const apps::Runs& runs, Variant one, Variant other) {
  const auto median = [&runs](Variant variant) -> std::optional<double> {
    const auto& names = runs.variants();
    const auto found = std::ranges::find(names, word_of(variant_names, variant));
    if (found == names.end()) return std::nullopt;
    return runs.median(static_cast<std::size_t>(found - names.begin()));
  };
  const std::optional<double> seconds = median(one);
  const std::optional<double> divisor = median(other);
  if (!seconds || !divisor) return;
  fmt::print("{} takes {:.2f} times as long as {}.\n", word_of(variant_names, one),
             *seconds / *divisor, word_of(variant_names, other));
}

void print_memory(const apps::Runs& runs, const Stopwatch& stopwatch, const Layout& layout) {
  const double tile_mib = 8.0 * layout.tile * layout.tile / (1 << 20);
  for (std::size_t i = 0; i < runs.variants().size(); ++i) {
    if (runs.variants()[i] == word_of(variant_names, Variant::fork_join)) continue;
    const double peak = runs.median(i, "received_tiles_peak");
    fmt::print("{}: at most {:.0f} received tiles in memory at once ({:.1f} MiB a rank).\n",
               runs.variants()[i], peak, peak * tile_mib);
  }
  if (const std::string text = describe(stopwatch.broadcasts()); !text.empty()) {
    fmt::print("inserted, last run: {}.\n", text);
  }
}

}  // namespace

void print_problem(const Options& options, const Algorithm& algorithm) {
  const Layout& layout = algorithm.layout();
  const int tiles = layout.tiles();
  fmt::print("Matrix    {}\n", algorithm.description());
  fmt::print("Tiles     {} x {} of {} rows, the last of {}\n", tiles, tiles, layout.tile,
             layout.extent(tiles - 1));
  const Grid& grid = layout.grid;
  fmt::print("Ranks     {} in a grid of {} x {}, {} each\n", grid.rows * grid.columns, grid.rows,
             grid.columns, apps::counted(imbrex::worker_count(), "worker"));
  fmt::print("BLAS      {}, one thread a call\n", describe_blas());
  if (!algorithm.times().empty()) {
    print_times(options.timed, algorithm.times(), "a whole tile");
    return;
  }
  if (const std::string advice = advise_on_blas(); !advice.empty()) {
    fmt::print("          note: {}\n", advice);
  }
  fmt::print("Rate      DGEMM of order {} on all workers at once, before and after each run\n\n",
             options.rate_size);
  std::fflush(stdout);
}

void print_comparison(const apps::Runs& runs, const Stopwatch& stopwatch, const Layout& layout) {
  const nlohmann::json& last = runs.figures().back();
  fmt::print("\n{:<20}", "medians");
  for (const std::string& variant : runs.variants()) fmt::print("{:>12}", variant);
  for (const Line& line : lines) {
    if (!last.contains(line.figure)) continue;
    fmt::print("\n{:<20}", line.label);
    for (std::size_t i = 0; i < runs.variants().size(); ++i) {
      fmt::print("{:>12.{}f}", runs.median(i, [&](const auto& run) { return line.of(run); }),
                 line.digits);
    }
  }
  fmt::print("\n(in tasks, idle, overhead: shares of the workers' time{})\n",
             last.contains("residual_method")
                 ? ";\n residual: " + last["residual_method"].get<std::string>() : "");
  print_ratio(runs, Variant::fork_join, Variant::tasks);
  print_ratio(runs, Variant::inserted, Variant::tasks);
  print_memory(runs, stopwatch, layout);
  for (const auto& [variant, text] : stopwatch.uses()) {
    if (!text.empty()) fmt::print("{:<10}{}\n", word_of(variant_names, variant), text);
  }
  std::fflush(stdout);
}

void write_json(const Options& options, const Algorithm& algorithm, const apps::Runs& runs) {
  const Layout& layout = algorithm.layout();
  nlohmann::json document{{"benchmark", options.algorithm},
                          {"matrix", algorithm.description()},
                          {"n", layout.n},
                          {"tile", layout.tile},
                          {"grid", {layout.grid.rows, layout.grid.columns}},
                          {"ranks", layout.grid.rows * layout.grid.columns},
                          {"workers", imbrex::worker_count()},
                          {"blas", describe_blas()},
                          {"runs", runs.figures()}};
  for (std::size_t i = 0; i < algorithm.times().size(); ++i) {
    document["kernels"].push_back(
        {{"name", options.timed.names[i]}, {"us", 1e6 * algorithm.times()[i]}});
  }
  for (std::size_t i = 0; i < runs.variants().size(); ++i) {
    document["medians"][runs.variants()[i]] = {{"seconds", runs.median(i)},
                                               {"gflops", runs.median(i, "gflops")},
                                               {"share", runs.median(i, "share")}};
  }
  apps::write_json(options.json, document);
}

}  // namespace tiled
