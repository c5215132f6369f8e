// SPDX-License-Identifier: BSD-3-Clause
// stencil1d: reads the command line, runs the variants in turn, compares fields, prints times.
// Exit codes: 0 well; 1 wrong input; 2 fields that differ. All ranks exit alike.
// Built a second time with IMBREX_SERIAL, as stencil1d_serial, without the runtime.
#include <fmt/format.h>
#include <mpi.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "../no_any_tag.hpp"
#include "options.hpp"

namespace stencil1d {
namespace {

// The cells of all ranks after `steps`, computed by each rank alone; this rank's share.
std::vector<double> compute_alone(const Domain& mine, bool periodic, int steps) {
  Domain whole = mine;
  whole.first = 0;
  whole.count = mine.size;
  Field field(whole);
  field.reset();
  const auto ghost_bytes = static_cast<std::size_t>(mine.ghost) * sizeof(double);
  for (int step = 0; step < steps; ++step) {
    if (periodic) {
      std::memcpy(field.ghosts(step, left), field.border(step, right), ghost_bytes);
      std::memcpy(field.ghosts(step, right), field.border(step, left), ghost_bytes);
    }
    sweep(whole, field.cells(step), field.cells(step + 1), {0, whole.count});
  }
  const double* const begin = field.cells(steps) + mine.first;
  return {begin, begin + mine.count};
}

// FNV-1a over the bits of all cells, in the order of the cells; on all ranks.
std::uint64_t hash_of(const Domain& domain, const std::vector<double>& cells) {
  std::uint64_t hash = 0xcbf29ce484222325;
  if (domain.rank > 0) {
    MPI_Recv(&hash, 1, MPI_UINT64_T, domain.rank - 1, 0, domain.comm, MPI_STATUS_IGNORE);
  }
  for (const double cell : cells) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &cell, sizeof bits);
    hash = (hash ^ bits) * 0x100000001b3;
  }
  if (domain.rank + 1 < domain.ranks) {
    MPI_Send(&hash, 1, MPI_UINT64_T, domain.rank + 1, 0, domain.comm);
  }
  MPI_Bcast(&hash, 1, MPI_UINT64_T, domain.ranks - 1, domain.comm);
  return hash;
}

bool same_everywhere(const Domain& domain, const std::vector<double>& one,
                     const std::vector<double>& other) {
  int same = std::memcmp(one.data(), other.data(), one.size() * sizeof(double)) == 0 ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, domain.comm);
  return same != 0;
}

struct Result {
  std::vector<double> seconds;
  bool same = true;
};

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

class Benchmark {
 public:
  explicit Benchmark(const Options& options)
      : options_(options),
        domain_(make_domain(MPI_COMM_WORLD, options.size, options.ghost, options.chunks,
                            options.periodic)),
        field_(domain_), results_(options.variants.size()) {
    domain_.cell_ns = options.cell_ns;
    domain_.priorities = options.priorities;
  }

  // The exit code.
  int run() {
    if (options_.verify) expected_ = compute_alone(domain_, options_.periodic, options_.steps);
    for (int round = 0; round < options_.repeat; ++round) {
      if (options_.hidden) messages_s_.push_back(seconds_of(&run_messages));
      for (std::size_t index = 0; index < results_.size(); ++index) run_once(index);
    }
    const std::uint64_t hash = hash_of(domain_, expected_);
    if (domain_.rank == 0) {
      print(hash);
      if (options_.json) print_json();
    }
    const bool same = std::ranges::all_of(results_, &Result::same);
    if (!same && domain_.rank == 0) {
      fmt::print(stderr, "stencil1d: fields differ: see the last column\n");
    }
    return same ? 0 : 2;
  }

 private:
  double seconds_of(decltype(Variant::run) variant) {
    field_.reset();
    MPI_Barrier(domain_.comm);
    const double begin = MPI_Wtime();
    variant(domain_, field_, options_.steps);
    MPI_Barrier(domain_.comm);
    return MPI_Wtime() - begin;
  }

  void run_once(std::size_t index) {
    results_[index].seconds.push_back(seconds_of(options_.variants[index].run));
    const double* const cells = field_.cells(options_.steps);
    const std::vector<double> got(cells, cells + domain_.count);
    if (expected_.empty()) expected_ = got;  // the first variant's
    results_[index].same = same_everywhere(domain_, got, expected_) && results_[index].same;
  }

  void print(std::uint64_t hash) const {
    fmt::print("{} cells on {} ranks, ghost layers of {}, {}; {} steps, {} chunks a rank\n",
               domain_.size, domain_.ranks, domain_.ghost,
               options_.periodic ? "periodic" : "open ends", options_.steps, domain_.chunks);
    if (domain_.cell_ns > 0) {
      fmt::print("kernels sleep for {} ns a cell: there is no field that could be checked\n",
                 domain_.cell_ns);
    }
    if (options_.hidden) fmt::print("messages alone: median s {:.4f}\n", median_of(messages_s_));
    fmt::print("{:<10} {:>5} {:>10} {:>10} {:>10} {:>9}   {}\n", "variant", "runs", "median s",
               "least s", "most s", options_.hidden ? "hidden %" : "",
               options_.verify ? "as computed alone" : "as the first");
    for (std::size_t index = 0; index < results_.size(); ++index) {
      const std::vector<double>& seconds = results_[index].seconds;
      fmt::print("{:<10} {:>5} {:>10.4f} {:>10.4f} {:>10.4f} {:>9}   {}\n",
                 options_.variants[index].name, seconds.size(), median_of(seconds),
                 std::ranges::min(seconds), std::ranges::max(seconds),
                 options_.hidden ? fmt::format("{:.1f}", 100 * hidden(median_of(seconds))) : "",
                 results_[index].same ? "yes" : "NO");
    }
    fmt::print("field {:016x}\n", hash);
  }

  // The share of the shorter of messages and computation that a run of so many seconds hides.
  double hidden(double seconds) const {
    const double block = median_of(results_.front().seconds);
    const double messages = median_of(messages_s_);
    return (block - seconds) / std::min(messages, block - messages);
  }

  void print_json() const {
    for (std::size_t index = 0; index < results_.size(); ++index) {
      nlohmann::json record{{"variant", options_.variants[index].name},
                            {"seconds", median_of(results_[index].seconds)},
                            // The bytes of a rank with two neighbours, in each direction.
                            {"port_bytes", 2 * 8 * domain_.ghost * options_.steps}};
      if (options_.hidden) {
        record["messages_s"] = median_of(messages_s_);
        record["hidden"] = hidden(median_of(results_[index].seconds));
      }
      fmt::print("{}\n", record.dump());
    }
  }

  const Options options_;
  Domain domain_;
  Field field_;
  std::vector<Result> results_;
  std::vector<double> messages_s_;  // of the messages alone
  std::vector<double> expected_;  // this rank's cells after the last step
};

int run(const Options& options) {
#ifndef IMBREX_SERIAL
  if (options.measure) {
    measure_progress(options.progress);
    return 0;
  }
#endif
  return Benchmark(options).run();
}

}  // namespace
}  // namespace stencil1d

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  promise_no_any_tag(MPI_COMM_WORLD);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  int code = 1;
  try {
    std::string help;
    const stencil1d::Options options = stencil1d::parse_options(argc, argv, help);
    if (!help.empty()) {
      if (rank == 0) fmt::print("{}", help);
      code = 0;
    } else {
      code = stencil1d::run(options);
    }
  } catch (const std::exception& error) {  // the same on every rank
    if (rank == 0) fmt::print(stderr, "stencil1d: {}\n", error.what());
  }
  MPI_Finalize();
  return code;
}
