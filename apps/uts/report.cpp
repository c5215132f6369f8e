// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "../harness/program.hpp"

namespace uts {

Result gather(MPI_Comm comm, const std::vector<Tally>& mine, const double seconds,
              const bool searched_whole) {
  Result result;
  MPI_Comm_size(comm, &result.ranks);
  Tally sum;
  for (const Tally& tally : mine) add(sum, tally);
  std::uint64_t counts[4] = {sum.counts.nodes, sum.counts.leaves, sum.steals, sum.failed};
  double times[4] = {sum.work_s, sum.overhead_s, sum.search_s, sum.idle_s};
  int searchers = static_cast<int>(mine.size());
  std::uint64_t depths[2] = {sum.counts.depth, ~sum.counts.depth};  // the least, turned round
  double slowest = seconds;
  MPI_Allreduce(MPI_IN_PLACE, counts, 4, MPI_UINT64_T, MPI_SUM, comm);
  MPI_Allreduce(MPI_IN_PLACE, times, 4, MPI_DOUBLE, MPI_SUM, comm);
  MPI_Allreduce(MPI_IN_PLACE, &searchers, 1, MPI_INT, MPI_SUM, comm);
  MPI_Allreduce(MPI_IN_PLACE, depths, 2, MPI_UINT64_T, MPI_MAX, comm);
  MPI_Allreduce(MPI_IN_PLACE, &slowest, 1, MPI_DOUBLE, MPI_MAX, comm);
  result.sum.counts = {counts[0], counts[1], depths[0]};
  result.sum.work_s = times[0];
  result.sum.overhead_s = times[1];
  result.sum.search_s = times[2];
  result.sum.idle_s = times[3];
  result.sum.steals = counts[2];
  result.sum.failed = counts[3];
  result.searchers = searchers;
  result.seconds = slowest;
  result.rate = static_cast<double>(counts[0]) / slowest;
  if (searched_whole) {
    const auto ranks = static_cast<std::uint64_t>(result.ranks);
    int same = counts[0] == ranks * sum.counts.nodes && counts[1] == ranks * sum.counts.leaves &&
               depths[0] == ~depths[1] ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, comm);
    if (same == 0) throw std::runtime_error("ranks counted the same tree differently");
    result.sum.counts = sum.counts;
  }
  return result;
}

namespace {

constexpr apps::Choice<Type> type_names[] = {{"binomial", Type::binomial},
                                             {"geometric", Type::geometric},
                                             {"hybrid", Type::hybrid},
                                             {"balanced", Type::balanced}};
constexpr apps::Choice<Shape> shape_names[] = {{"linear", Shape::linear},
                                               {"expdec", Shape::expdec},
                                               {"cyclic", Shape::cyclic},
                                               {"fixed", Shape::fixed}};

std::string describe(const Parameters& tree) {
  std::string text = word_of(type_names, tree.type);
  const bool geometric = tree.type == Type::geometric || tree.type == Type::hybrid;
  if (geometric) text += fmt::format(", {}", word_of(shape_names, tree.shape));
  text += fmt::format(", b {}", tree.root_children);
  if (tree.type != Type::binomial) text += fmt::format(", d {}", tree.depth);
  if (tree.type == Type::binomial || tree.type == Type::hybrid) {
    text += fmt::format(", q {}, m {}", tree.binomial_q, tree.binomial_m);
  }
  if (tree.type == Type::hybrid) text += fmt::format(", f {}", tree.hybrid_shift);
  return text + fmt::format(", seed {}", tree.seed);
}

std::string name_or_none(const Parameters& tree) {
  const KnownTree* const known = find_known(tree);
  return known != nullptr ? known->name : "";
}

bool steals_two_sided(const Options& options) {
  return options.variant == Variant::mpi || options.variant == Variant::openmp;
}

void print_statistics(const Result& result) {
  const auto each = static_cast<double>(result.searchers);
  const Tally& sum = result.sum;
  fmt::print("{:>6} {:>8} {:>10} {:>10} {:>12} {:>10} {:>10} {:>10} {:>10}\n", "Ranks", "Workers",
             "Time(s)", "Work(s)", "Overhead(s)", "Search(s)", "Idle(s)", "Fails", "Steals");
  fmt::print("{:>6} {:>8} {:>10.3f} {:>10.3f} {:>12.3f} {:>10.3f} {:>10.3f} {:>10} {:>10}\n",
             result.ranks, result.searchers, result.seconds, sum.work_s / each,
             sum.overhead_s / each, sum.search_s / each, sum.idle_s / each, sum.failed, sum.steals);
}

void print_json(const Options& options, const Result& result) {
  const auto each = static_cast<double>(result.searchers);
  const Tally& sum = result.sum;
  const Settings& settings = options.settings;
  nlohmann::json line{{"benchmark", "uts"},
                      {"variant", word_of(variant_names, options.variant)},
                      {"tree", name_or_none(options.tree)},
                      {"ranks", result.ranks},
                      {"workers", result.searchers},
                      {"nodes", sum.counts.nodes},
                      {"depth", sum.counts.depth},
                      {"leaves", sum.counts.leaves},
                      {"seconds", result.seconds},
                      {"rate", result.rate},
                      {"work_s", sum.work_s / each},
                      {"overhead_s", sum.overhead_s / each},
                      {"search_s", sum.search_s / each},
                      {"idle_s", sum.idle_s / each},
                      {"fails", sum.failed},
                      {"steals", sum.steals},
                      {"chunk", settings.chunk},
                      {"interval", settings.interval},
                      {"node_us", 1e6 * settings.node_s},
                      {"sha1", settings.hash == Hash::plain ? "plain" : "instructions"}};
  if (steals_two_sided(options)) {
    line["victims"] = word_of(victims_names, settings.victims);
    line["steal"] = word_of(steal_names, settings.steal);
  }
  fmt::print("{}\n", line.dump());
}

}  // namespace

void print_problem(const Options& options, const int ranks, const int searchers) {
  const Settings& settings = options.settings;
  const std::string name = name_or_none(options.tree);
  fmt::print("Tree      {}{}{}\n", name, name.empty() ? "" : ": ", describe(options.tree));
  if (options.tree.granularity > 1) {
    fmt::print("Hashes    {} a node\n", options.tree.granularity);
  }
  const double mean = options.tree.binomial_q * options.tree.binomial_m;
  const bool binomial = options.tree.type == Type::binomial || options.tree.type == Type::hybrid;
  if (binomial && mean >= 1 && name.empty()) {
    fmt::print("          q m is {:.6g}, not below 1: the tree may have no end\n", mean);
  }
  fmt::print("Variant   {}, {} ranks with {} searchers\n",
             word_of(variant_names, options.variant), ranks, searchers);
  if (options.variant != Variant::sequential) {
    const auto number = [](int value) { return value > 0 ? fmt::format("{}", value) : "chosen"; };
    fmt::print("Stealing  chunk {}, interval {}", number(settings.chunk),
               number(settings.interval));
    if (steals_two_sided(options)) {
      fmt::print(", {} victims, {}", settings.victims == Victims::ring ? "ring of" : "random",
                 settings.steal == Steal::chunk ? "a chunk" : "half");
    }
    fmt::print("\n");
  }
  fmt::print("SHA-1     {}\n", settings.hash == Hash::plain
                                   ? "plain C++" : "the processor's instructions");
  if (settings.node_s > 0) {
    fmt::print("Kernels   timed: a node also sleeps for {} us\n", 1e6 * settings.node_s);
  }
  std::fflush(stdout);
}

void print_result(const Options& options, const Result& result) {
  const Counts& counts = result.sum.counts;
  fmt::print("Nodes {}  depth {}  leaves {} ({:.2f} %)  time {:.3f} s  rate {:.2f} Mnodes/s{}\n",
             counts.nodes, counts.depth, counts.leaves,
             100.0 * static_cast<double>(counts.leaves) / static_cast<double>(counts.nodes),
             result.seconds, 1e-6 * result.rate,
             options.variant == Variant::sequential && result.ranks > 1
                 ? fmt::format(" (each of {} ranks all nodes)", result.ranks) : "");
  if (options.statistics) print_statistics(result);
  if (options.json) print_json(options, result);
  std::fflush(stdout);
}

void print_searchers(MPI_Comm comm, const std::vector<Tally>& mine) {
  const int rank = apps::rank_of_all();
  const int ranks = apps::ranks_of_all();
  for (int turn = 0; turn < ranks; ++turn) {
    for (std::size_t i = 0; turn == rank && i < mine.size(); ++i) {
      const Tally& tally = mine[i];
      fmt::print("  rank {} searcher {}: nodes {}, work {:.3f} s, overhead {:.3f} s, search {:.3f} "
                 "s, idle {:.3f} s, steals {}, fails {}\n", rank, i, tally.counts.nodes,
                 tally.work_s, tally.overhead_s, tally.search_s, tally.idle_s, tally.steals,
                 tally.failed);
    }
    std::fflush(stdout);
    MPI_Barrier(comm);
  }
}

bool is_right(const Options& options, const Counts& counts) {
  const KnownTree* const known = find_known(options.tree);
  if (known == nullptr) return true;
  return counts.nodes == known->counts.nodes && counts.depth == known->counts.depth &&
         (known->counts.leaves == 0 || counts.leaves == known->counts.leaves);
}

}  // namespace uts
