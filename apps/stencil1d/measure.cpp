// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include <fmt/format.h>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>
#include <mpi.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "exchange.hpp"

namespace stencil1d {
namespace {

// ---- figures -----------------------------------------------------------------------------------

struct Spread {
  double least = 0;
  double median = 0;
  double most = 0;
};

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

constexpr Way ways[] = {Way::icw, Way::itcw, Way::tests, Way::tasks};

struct Row {
  Setting setting;
  double communication_us;  // alone
  double computation_us;    // alone
  double blocking_us;       // one after the other
  std::vector<Spread> times;   // us, in the order of `ways`
  std::vector<Spread> hidden;  // shares, the same
};

// All ways in turn, so that a change of the machine's speed meets them all. The first turn warms
// up, and is not counted.
Row measure_row(const Setting& setting, const Work& work, int repetitions) {
  std::vector<double> communication;
  std::vector<double> computation;
  std::vector<double> blocking;
  std::vector<std::vector<double>> times;
  std::vector<std::vector<double>> hidden(std::size(ways));
  for (int turn = -1; turn < repetitions; ++turn) {
    if (turn == 0) {
      communication.clear();
      computation.clear();
      blocking.clear();
    }
    if (turn <= 0) times.assign(std::size(ways), {});
    communication.push_back(measure(Way::iw, setting, work));
    const double start = MPI_Wtime();
    work.run(setting.compute_us);
    computation.push_back(1e6 * (MPI_Wtime() - start));
    blocking.push_back(measure(Way::block, setting, work));
    for (std::size_t i = 0; i < std::size(ways); ++i) {
      times[i].push_back(measure(ways[i], setting, work));
    }
  }
  Row row{setting,
          spread_of(communication).median,
          spread_of(computation).median,
          spread_of(blocking).median,
          {},
          {}};
  const double shorter = std::min(row.communication_us, row.computation_us);
  for (std::size_t i = 0; i < std::size(ways); ++i) {
    for (const double time : times[i]) hidden[i].push_back((row.blocking_us - time) / shorter);
    row.times.push_back(spread_of(times[i]));
    row.hidden.push_back(spread_of(hidden[i]));
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
  double median = spread_of(times).median;
  MPI_Bcast(&median, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return median;
}

}  // namespace

void measure_progress(const ProgressOptions& options) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks < 2) {
    throw std::invalid_argument("--measure-progress needs 2 ranks: start it by `mpirun -n 2`");
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
