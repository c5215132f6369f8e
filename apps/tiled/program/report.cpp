// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <stdexcept>

#include "../kernels.hpp"

namespace tiled {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]);
}

// The median of `figure` over the runs of one variant.
template <class Figure>
double median_of(const std::vector<Run>& runs, Variant variant, Figure&& figure) {
  std::vector<double> values;
  for (const Run& run : runs) {
    if (run.variant == variant) values.push_back(std::invoke(figure, run));
  }
  return median(std::move(values));
}

std::vector<Variant> variants_of(const std::vector<Run>& runs) {
  std::vector<Variant> variants;
  for (const Variant variant : {Variant::fork_join, Variant::tasks, Variant::inserted}) {
    const auto is_it = [&](const Run& run) { return run.variant == variant; };
    if (std::any_of(runs.begin(), runs.end(), is_it)) variants.push_back(variant);
  }
  return variants;
}

double busy(const Run& run) {
  return run.activity.in_task_s + run.activity.idle_s + run.activity.overhead_s;
}
double percent(double part, const Run& run) {
  return busy(run) > 0 ? 100 * part / busy(run) : 0;
}

struct Line {
  const char* label;
  int digits;
  std::function<double(const Run&)> figure;
};

const std::vector<Line>& lines() {
  static const std::vector<Line> all{
      {"time, s", 3, [](const Run& run) { return run.seconds; }},
      {"Gflop/s", 1, [](const Run& run) { return run.gflops; }},
      {"DGEMM, Gflop/s", 1, [](const Run& run) { return run.rate; }},
      {"share of DGEMM, %", 1, [](const Run& run) { return 100 * run.share(); }},
      {"in tasks, %", 1, [](const Run& run) { return percent(run.activity.in_task_s, run); }},
      {"idle, %", 1, [](const Run& run) { return percent(run.activity.idle_s, run); }},
      {"overhead, %", 1, [](const Run& run) { return percent(run.activity.overhead_s, run); }},
      {"tasks run", 0, [](const Run& run) { return run.activity.tasks; }},
      {"suspensions", 0, [](const Run& run) { return run.activity.suspensions; }},
      {"residual", 4,
       [](const Run& run) { return run.residual ? run.residual->value : 0; }},
  };
  return all;
}

// Prints the ratio of the two variants, if both were run.
void print_ratio(const std::vector<Run>& runs, Variant one, Variant other) {
  const double divisor = median_of(runs, other, &Run::seconds);
  const double seconds = median_of(runs, one, &Run::seconds);
  if (seconds == 0 || divisor == 0) return;
  fmt::print("{} takes {:.2f} times as long as {}.\n", name_of(one), seconds / divisor,
             name_of(other));
}

void print_memory(const Problem& problem, const std::vector<Run>& runs) {
  const double tile_mib = 8.0 * problem.layout.tile * problem.layout.tile / (1 << 20);
  for (const Variant variant : variants_of(runs)) {
    if (variant == Variant::fork_join) continue;
    const double peak = median_of(runs, variant, &Run::received_peak);
    fmt::print("{}: at most {:.0f} received tiles in memory at once ({:.1f} MiB a rank).\n",
               name_of(variant), peak, peak * tile_mib);
  }
  const Run& last = runs.back();
  if (const std::string text = describe(last.broadcasts); !text.empty()) {
    fmt::print("inserted, last run: {}.\n", text);
  }
}

// Each variant's last run.
void print_figures(const std::vector<Run>& runs) {
  for (const Variant variant : variants_of(runs)) {
    const auto last = std::find_if(runs.rbegin(), runs.rend(),
                                   [&](const Run& run) { return run.variant == variant; });
    if (last->figures.empty()) continue;
    fmt::print("{:<10}", name_of(variant));
    for (const auto& [name, value] : last->figures) fmt::print(" {} {:.8g}", name, value);
    fmt::print("\n");
  }
}

nlohmann::json to_json(const Run& run) {
  nlohmann::json record{{"variant", name_of(run.variant)},
                        {"seconds", run.seconds},
                        {"gflops", run.gflops},
                        {"in_task_s", run.activity.in_task_s},
                        {"idle_s", run.activity.idle_s},
                        {"overhead_s", run.activity.overhead_s},
                        {"tasks", run.activity.tasks},
                        {"suspensions", run.activity.suspensions},
                        {"steals", run.activity.steals},
                        {"received_tiles_peak", run.received_peak},
                        {"port_bytes", run.port_bytes}};
  if (run.variant == Variant::inserted) add_to(record, run.broadcasts);
  if (run.residual) {
    record["dgemm_gflops"] = run.rate;
    record["share"] = run.share();
    record["residual"] = run.residual->value;
    record["residual_method"] = run.residual->method;
  }
  for (const auto& [name, value] : run.figures) record[name] = value;
  return record;
}

}  // namespace

void print_problem(const Problem& problem, const Options& options) {
  const Layout& layout = problem.layout;
  const int tiles = layout.tiles();
  fmt::print("Matrix    {}\n", problem.matrix);
  fmt::print("Tiles     {} x {} of {} rows, the last of {}\n", tiles, tiles, layout.tile,
             layout.extent(tiles - 1));
  fmt::print("Ranks     {} in a grid of {} x {}, {} worker{} each\n", problem.ranks,
             layout.grid.rows, layout.grid.columns, problem.workers,
             problem.workers == 1 ? "" : "s");
  if (!problem.times.empty()) {
    print_times(options.timed, problem.times);
    return;
  }
  fmt::print("BLAS      {}, one thread a call\n", describe_blas());
  if (const std::string advice = advise_on_blas(); !advice.empty()) {
    fmt::print("          note: {}\n", advice);
  }
  fmt::print("Rate      DGEMM of order {} on all workers at once, before and after each run\n\n",
             options.rate_size);
  std::fflush(stdout);
}

void print_run(int number, const Run& run) {
  fmt::print("run {:<3} {:<9} {:9.3f} s {:8.1f} Gflop/s", number, name_of(run.variant),
             run.seconds, run.gflops);
  if (run.residual) {
    fmt::print(" {:6.1f} % of DGEMM   residual {:.4f}", 100 * run.share(), run.residual->value);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

void print_comparison(const Problem& problem, const std::vector<Run>& runs) {
  const std::vector<Variant> variants = variants_of(runs);
  fmt::print("\n{:<20}", "medians");
  for (const Variant variant : variants) fmt::print("{:>12}", name_of(variant));
  fmt::print("\n");
  for (const Line& line : lines()) {
    const std::string_view label = line.label;
    if (!problem.times.empty() && (label.starts_with("DGEMM") || label.starts_with("share") ||
                          label == "residual")) {
      continue;
    }
    fmt::print("{:<20}", label);
    for (const Variant variant : variants) {
      fmt::print("{:>12.{}f}", median_of(runs, variant, line.figure), line.digits);
    }
    fmt::print("\n");
  }
  fmt::print("(in tasks, idle, overhead: shares of the workers' time");
  if (runs.back().residual) {
    fmt::print(";\n residual: {}", runs.back().residual->method);
  }
  fmt::print(")\n");
  print_ratio(runs, Variant::fork_join, Variant::tasks);
  print_ratio(runs, Variant::inserted, Variant::tasks);
  print_memory(problem, runs);
  print_figures(runs);
  std::fflush(stdout);
}

void write_json(const std::string& path, const Problem& problem, const std::vector<Run>& runs) {
  const Layout& layout = problem.layout;
  nlohmann::json document{{"benchmark", problem.algorithm},
                          {"matrix", problem.matrix},
                          {"n", layout.n},
                          {"tile", layout.tile},
                          {"grid", {layout.grid.rows, layout.grid.columns}},
                          {"ranks", problem.ranks},
                          {"workers", problem.workers},
                          {"blas", describe_blas()}};
  for (std::size_t i = 0; i < problem.times.size(); ++i) {
    document["kernels"].push_back({{"name", problem.kernels[i]}, {"us", 1e6 * problem.times[i]}});
  }
  for (const Run& run : runs) document["runs"].push_back(to_json(run));
  for (const Variant variant : variants_of(runs)) {
    document["medians"][name_of(variant)] = {
        {"seconds", median_of(runs, variant, &Run::seconds)},
        {"gflops", median_of(runs, variant, &Run::gflops)},
        {"share", median_share(runs, variant)}};
  }
  std::ofstream stream(path);
  stream << document.dump(2) << "\n";
  stream.close();
  if (!stream) throw std::runtime_error("--json " + path + ": " + std::strerror(errno));
}

double median_share(const std::vector<Run>& runs, Variant variant) {
  return median_of(runs, variant, &Run::share);
}

}  // namespace tiled
