// SPDX-License-Identifier: BSD-3-Clause
// stencil1d: reads the command line, runs the variants in turn, compares fields, prints times.
// Exit codes: 0 well; 1 wrong input; 2 fields that differ. All ranks exit alike.
// Built a second time with IMBREX_SERIAL, as stencil1d_serial, without the runtime.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "../harness/program.hpp"
#include "../harness/runs.hpp"
#include "../no_any_tag.hpp"
#include "options.hpp"

namespace stencil1d {
namespace {

// The cells of all ranks after `steps`, computed by each rank alone; this rank's share.
std::vector<double> compute_serially(const Domain& mine, bool periodic, int steps) {
  Domain whole = mine;
  whole.rank = 0;
  whole.ranks = 1;
  Field field(whole);
  field.reset();
  const auto ghost_bytes = static_cast<std::size_t>(mine.ghost) * sizeof(double);
  for (int step = 0; step < steps; ++step) {
    if (periodic) {
      std::memcpy(field.ghosts(step, left), field.border(step, right), ghost_bytes);
      std::memcpy(field.ghosts(step, right), field.border(step, left), ghost_bytes);
    }
    sweep(whole, field.cells(step), field.cells(step + 1), {0, whole.count()});
  }
  const double* const begin = field.cells(steps) + mine.first();
  return {begin, begin + mine.count()};
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

class Benchmark {
 public:
  explicit Benchmark(const Options& options)
      : options_(options),
        domain_(make_domain(MPI_COMM_WORLD, options.size, options.ghost, options.chunks,
                            options.periodic)),
        field_(domain_), same_(options.variants.size(), true),
        runs_(names_of(options.variants), options.repeat, false) {
    domain_.cell_ns = options.cell_ns;
    domain_.priorities = options.priorities;
  }

  // The exit code.
  int run() {
    if (options_.verify) expected_ = compute_serially(domain_, options_.periodic, options_.steps);
    runs_.measure([this](const apps::Turn& turn) {
      if (options_.hidden && turn.variant == 0) messages_s_.push_back(seconds_of(&run_messages));
      return run_once(turn.variant);
    });
    const std::uint64_t hash = hash_of(domain_, expected_);
    if (domain_.rank == 0) {
      print(hash);
      if (options_.json) print_json();
      if (!runs_.right()) fmt::print(stderr, "stencil1d: fields differ: see the last column\n");
    }
    return runs_.right() ? 0 : 2;
  }

 private:
  static std::vector<std::string> names_of(const std::vector<Variant>& variants) {
    std::vector<std::string> names;
    for (const Variant& variant : variants) names.emplace_back(variant.name);
    return names;
  }

  double seconds_of(decltype(Variant::run) variant) {
    field_.reset();
    MPI_Barrier(domain_.comm);
    const double begin = MPI_Wtime();
    variant(domain_, field_, options_.steps);
    MPI_Barrier(domain_.comm);
    return MPI_Wtime() - begin;
  }

  apps::Run run_once(std::size_t variant) {
    const double seconds = seconds_of(options_.variants[variant].run);
    const double* const cells = field_.cells(options_.steps);
    const std::vector<double> got(cells, cells + domain_.count());
    if (expected_.empty()) expected_ = got;  // the first variant's
    const bool same = same_everywhere(domain_, got, expected_);
    same_[variant] = same_[variant] && same;
    return {.seconds = seconds, .right = same};
  }

  void print(std::uint64_t hash) const {
    fmt::print("{} cells on {} ranks, ghost layers of {}, {}; {} steps, {} chunks a rank\n",
               domain_.size, domain_.ranks, domain_.ghost,
               options_.periodic ? "periodic" : "open ends", options_.steps, domain_.chunks());
    if (domain_.cell_ns > 0) {
      fmt::print("kernels sleep for {} ns a cell: there is no field that could be checked\n",
                 domain_.cell_ns);
    }
    if (options_.hidden) {
      fmt::print("messages alone: median s {:.4f}\n", apps::median_of(messages_s_));
    }
    fmt::print("{:<10} {:>5} {:>10} {:>10} {:>10} {:>9}   {}\n", "variant", "runs", "median s",
               "least s", "most s", options_.hidden ? "hidden %" : "",
               options_.verify ? "as computed alone" : "as the first");
    for (std::size_t i = 0; i < same_.size(); ++i) {
      const apps::Spread spread = apps::spread_of(runs_.seconds(i));
      fmt::print("{:<10} {:>5} {:>10.4f} {:>10.4f} {:>10.4f} {:>9}   {}\n", runs_.variants()[i],
                 runs_.seconds(i).size(), spread.median, spread.least, spread.most,
                 options_.hidden ? fmt::format("{:.1f}", 100 * hidden(spread.median)) : "",
                 same_[i] ? "yes" : "NO");
    }
    fmt::print("field {:016x}\n", hash);
  }

  // The share of the shorter of messages and computation that a run of so many seconds hides.
  double hidden(double seconds) const {
    const double block = runs_.median(0);
    const double messages = apps::median_of(messages_s_);
    return (block - seconds) / std::min(messages, block - messages);
  }

  void print_json() const {
    for (std::size_t i = 0; i < same_.size(); ++i) {
      nlohmann::json record{{"variant", runs_.variants()[i]},
                            {"seconds", runs_.median(i)},
                            // The bytes of a rank with two neighbours, in each direction.
                            {"port_bytes", 2 * 8 * domain_.ghost * options_.steps}};
      if (options_.hidden) {
        record["messages_s"] = apps::median_of(messages_s_);
        record["hidden"] = hidden(runs_.median(i));
      }
      fmt::print("{}\n", record.dump());
    }
  }

  const Options options_;
  Domain domain_;
  Field field_;
  std::vector<bool> same_;  // by variant
  apps::Runs runs_;
  std::vector<double> messages_s_;  // of the messages alone
  std::vector<double> expected_;  // this rank's cells after the last step
};

int run(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
#ifndef IMBREX_SERIAL
  if (options.measure) {
    measure_progress(options.progress);
    return 0;
  }
#endif
  return Benchmark(options).run();
}

void start(int& argc, char**& argv) {
  MPI_Init(&argc, &argv);
  promise_no_any_tag(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace stencil1d

int main(int argc, char** argv) {
  return apps::run_program("stencil1d", argc, argv, &stencil1d::start, &stencil1d::run);
}
