// SPDX-License-Identifier: BSD-3-Clause
// overlap: how much of a message's time hides behind a computation, in every way to write it. A
// table, and with --json one record for each way, size and computation.
// Exit codes: 0 well, 1 wrong input. The same on every rank.
#include <fmt/format.h>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "exchange.hpp"
#include "../no_any_tag.hpp"

namespace overlap {
namespace {

struct Options {
  std::vector<int> sizes{8, 1024, 65536, 1 << 20, 4 << 20, 16 << 20};
  std::vector<double> ratios{0.1, 0.5, 1, 2, 10};
  double fixed_us = 500;  // the paper's computation; 0: none
  double step_us = 1000;
  int repetitions = 7;
  std::string json;
};

constexpr const char* description =
    "Receives a message on rank 0 while it computes, and says how much of the shorter of the two\n"
    "was hidden: (t_blocking - t) / min(t_communication, t_computation). Run it on tools/netlab:\n"
    "over shared memory a transfer takes the processor that the computation wants.\n";

void add_options(CLI::App& app, Options& options) {
  app.add_option("--sizes", options.sizes, "Bytes of the message, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--ratios", options.ratios,
                 "Computation, in times of the communication, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0.001, 1000.0))
      ->capture_default_str();
  app.add_option("--fixed-us", options.fixed_us,
                 "One more computation, of so many microseconds; 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--step-us", options.step_us,
                 "Between two calls of MPI_Test, and the length of a computing task")
      ->check(CLI::Range(1.0, 1e7))
      ->capture_default_str();
  app.add_option("--repetitions", options.repetitions, "Of each way")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--json", options.json, "Write the records there");
}

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

nlohmann::json records_of(const Row& row, const std::string& mode) {
  nlohmann::json records;
  for (std::size_t i = 0; i < std::size(ways); ++i) {
    records.push_back({{"way", name_of(ways[i])},
                       {"mode", ways[i] == Way::tasks ? mode : ""},
                       {"bytes", row.setting.bytes},
                       {"computation_us", row.computation_us},
                       {"step_us", row.setting.step_us},
                       {"communication_us", row.communication_us},
                       {"blocking_us", row.blocking_us},
                       {"us", row.times[i].median},
                       {"hidden", row.hidden[i].median},
                       {"hidden_least", row.hidden[i].least},
                       {"hidden_most", row.hidden[i].most}});
  }
  return records;
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

// What rank 0 decides, everybody does.
double agree(double value) {
  MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return value;
}

void run(const Options& options, int rank) {
  const Work work;
  const std::string mode = imbrex::progress_report().mode;
  nlohmann::json records = nlohmann::json::array();
  if (rank == 0) print_head(mode);
  for (const int bytes : options.sizes) {
    const Setting alone{MPI_COMM_WORLD, bytes, 0, options.step_us};
    std::vector<double> times;
    (void)measure(Way::iw, alone, work);  // warms up
    for (int i = 0; i < options.repetitions; ++i) times.push_back(measure(Way::iw, alone, work));
    const double communication = agree(spread_of(times).median);
    std::vector<double> computations;
    for (const double ratio : options.ratios) computations.push_back(ratio * communication);
    if (options.fixed_us > 0) computations.push_back(options.fixed_us);
    for (const double compute_us : computations) {
      const Row row = measure_row({MPI_COMM_WORLD, bytes, compute_us, options.step_us}, work,
                                  options.repetitions);
      if (rank != 0) continue;
      print_row(row);
      for (auto& record : records_of(row, mode)) records.push_back(std::move(record));
    }
  }
  if (rank == 0 && !options.json.empty()) {
    std::ofstream(options.json) << records.dump(1) << '\n';
  }
}

// Empty, or what is wrong; known to rank 0 alone, where the file is.
std::string check_json(const Options& options, int rank) {
  if (rank != 0 || options.json.empty() || std::ofstream(options.json, std::ios::app)) return {};
  return fmt::format("--json {}: cannot be written", options.json);
}

int run_all(int argc, char** argv) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  CLI::App app(description);
  Options options;
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool help = error.get_exit_code() == 0;
    if (rank == 0) (void)app.exit(error, std::cout, std::cerr);
    return help ? 0 : 1;
  }
  std::string wrong = check_json(options, rank);
  if (ranks < 2) wrong = "it needs 2 ranks: start it by `mpirun -n 2`";
  if (rank == 0 && !wrong.empty()) fmt::print(stderr, "overlap: {}\n", wrong);
  if (agree(wrong.empty() ? 0 : 1) != 0) return 1;
  promise_no_any_tag(MPI_COMM_WORLD);
  run(options, rank);
  return 0;
}

}  // namespace
}  // namespace overlap

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int code = overlap::run_all(argc, argv);
  MPI_Finalize();
  return code;
}
