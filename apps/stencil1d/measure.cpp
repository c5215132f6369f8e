// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include <fmt/format.h>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "../harness/program.hpp"
#include "../harness/runs.hpp"
#include "exchange.hpp"

namespace stencil1d {
namespace {

// ---- figures -----------------------------------------------------------------------------------

using apps::Spread;

constexpr Way ways[] = {Way::icw, Way::itcw, Way::tests, Way::tasks};

struct Row {
  Setting setting;
  double communication_us;  // alone
  double computation_us;    // alone
  double blocking_us;       // one after the other
  std::vector<Spread> times;   // us, in the order of `ways`
  std::vector<Spread> hidden;  // shares, the same
};

// The first turn warms up, and is not counted.
Row measure_row(const Setting& setting, const Work& work, int repetitions) {
  constexpr std::size_t others = 3;  // before the ways
  std::vector<std::string> names{"communication", "computation", "blocking"};
  for (const Way way : ways) names.emplace_back(name_of(way));
  apps::Runs runs(names, 1 + repetitions, false);
  runs.measure([&](const apps::Turn& turn) -> apps::Run {
    if (turn.variant == 1) {
      const double start = MPI_Wtime();
      work.run(setting.compute_us);
      return {.seconds = MPI_Wtime() - start};
    }
    const Way way = turn.variant == 0   ? Way::iw
                    : turn.variant == 2 ? Way::block
                                        : ways[turn.variant - others];
    return {.seconds = 1e-6 * measure(way, setting, work)};
  });
  const auto times_us = [&runs](const std::size_t variant) {
    std::vector<double> times(runs.seconds(variant).begin() + 1, runs.seconds(variant).end());
    for (double& time : times) time *= 1e6;
    return times;
  };
  Row row{setting, apps::median_of(times_us(0)), apps::median_of(times_us(1)),
          apps::median_of(times_us(2)), {}, {}};
  const double shorter = std::min(row.communication_us, row.computation_us);
  for (std::size_t i = 0; i < std::size(ways); ++i) {
    std::vector<double> times = times_us(others + i);
    row.times.push_back(apps::spread_of(times));
    for (double& time : times) time = (row.blocking_us - time) / shorter;
    row.hidden.push_back(apps::spread_of(times));
  }
  return row;
}

void print_json(const Row& row, const std::string& mode) {
  for (std::size_t i = 0; i < std::size(ways); ++i) {
    const nlohmann::json record{{"way", name_of(ways[i])},
                                {"mode", ways[i] == Way::tasks ? mode : ""},
                                {"bytes", row.setting.bytes},
                                {"computation_us", row.computation_us},
                                {"step_us", row.setting.step_us},
                                {"communication_us", row.communication_us},
                                {"blocking_us", row.blocking_us},
                                {"us", row.times[i].median},
                                {"hidden", row.hidden[i].median},
                                {"hidden_least", row.hidden[i].least},
                                {"hidden_most", row.hidden[i].most}};
    fmt::print("{}\n", record.dump());
  }
}

void print_head(const std::string& mode) {
  fmt::print("Share of the shorter of communication and computation that is hidden: median (least "
             "to most).\nTasks make progress by: {}\n\n{:>10} {:>11} {:>11} {:>11}", mode, "bytes",
             "comm. us", "compute us", "blocking us");
  for (const Way way : ways) fmt::print(" {:^21}", name_of(way));
  fmt::print("\n");
}

void print_row(const Row& row) {
  fmt::print("{:>10} {:>11.1f} {:>11.1f} {:>11.1f}", row.setting.bytes, row.communication_us,
             row.computation_us, row.blocking_us);
  for (const Spread& share : row.hidden) {
    fmt::print(" {:>5.0f} % ({:>4.0f} to {:>4.0f})", 100 * share.median, 100 * share.least,
               100 * share.most);
  }
  fmt::print("\n");
  std::fflush(stdout);
}

// ---- the run -----------------------------------------------------------------------------------

// Rank 0 measures, and all ranks use its result.
double communication_us(int bytes, const ProgressOptions& options, const Work& work) {
  const Setting alone{MPI_COMM_WORLD, bytes, 0, options.step_us};
  std::vector<double> times;
  (void)measure(Way::iw, alone, work);  // warms up
  for (int i = 0; i < options.rounds; ++i) times.push_back(measure(Way::iw, alone, work));
  double median = apps::median_of(times);
  MPI_Bcast(&median, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return median;
}

}  // namespace

void measure_progress(const ProgressOptions& options) {
  const int rank = apps::rank_of_all();
  if (apps::ranks_of_all() < 2) {
    throw apps::InputError("--measure-progress needs 2 ranks: start it by `mpirun -n 2`");
  }
  const Work work;
  const std::string mode = imbrex::progress_report().mode;
  if (rank == 0) print_head(mode);
  for (const int bytes : options.sizes) {
    const double communication = communication_us(bytes, options, work);
    std::vector<double> computations;
    for (const double ratio : options.ratios) computations.push_back(ratio * communication);
    if (options.computation_us > 0) computations.push_back(options.computation_us);
    for (const double compute_us : computations) {
      const Row row = measure_row({MPI_COMM_WORLD, bytes, compute_us, options.step_us}, work,
                                  options.rounds);
      if (rank != 0) continue;
      print_row(row);
      if (options.json) print_json(row, mode);
    }
  }
}

}  // namespace stencil1d
