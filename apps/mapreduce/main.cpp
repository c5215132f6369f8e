// SPDX-License-Identifier: BSD-3-Clause
// mapreduce: reads the command line, runs the word count or the matrix-vector product in each
// variant, checks and prints what came out.
// Exit codes: 0 well; 1 wrong input; 2 a wrong result. All ranks exit alike.
#include <fmt/format.h>
#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>

#include "../harness/runs.hpp"
#include "../tiled/setup.hpp"
#include "matvec/matvec.hpp"
#include "options.hpp"
#include "shuffle/progress.hpp"
#include "shuffle/timed.hpp"
#include "words/word_count.hpp"

namespace mapreduce {
namespace {

// The results that decide whether a run is right.
struct Verdict {
  bool right = true;
  std::string text;
};

// A program with all that main needs beside it.
struct Problem {
  Program& program;
  std::function<Verdict()> check;  // collective
};

// Times are those of the slowest rank.
apps::Run run_once(const tiled::Team& team, const Options& options, const std::string& variant,
                   const Problem& problem) {
  Progress program(problem.program, team.rank() == 0 ? options.progress_s : 0, options.chunks);
  const Shape shape{team.all(), options.chunks, options.batches};
  Times times;
  program.begin();
  MPI_Barrier(team.all());
  const double begin = MPI_Wtime();
  std::ranges::find(all_variants, variant, &Variant::name)->run(program, shape, times);
  program.end();
  double most[2] = {MPI_Wtime() - begin, times.exchange_s};
  MPI_Allreduce(MPI_IN_PLACE, most, 2, MPI_DOUBLE, MPI_MAX, team.all());
  const Verdict verdict = problem.check();
  return {.seconds = most[0],
          .right = verdict.right,
          .text = fmt::format(
              "   {:>22}   {}",
              most[1] > 0 ? fmt::format("in the exchange {:.3f} s", most[1]) : "", verdict.text),
          .figures = {{"exchange_s", most[1]}, {"right", verdict.right}}};
}

// The others beside the first.
void print_comparison(const apps::Runs& runs) {
  for (std::size_t i = 1; i < runs.variants().size(); ++i) {
    const double less = 1 - runs.median(i) / runs.median(0);
    fmt::print("{} takes {:.1f} % {} time than {} (medians)\n", runs.variants()[i],
               100 * std::abs(less), less >= 0 ? "less" : "more", runs.variants().front());
  }
}

// All variants, and what is said of them. The exit code.
int run_all(const tiled::Team& team, const Options& options, const Problem& problem,
            nlohmann::json document) {
  apps::Runs runs(options.variants, options.repetitions, team.rank() == 0);
  runs.measure([&](const apps::Turn& turn) {
    return run_once(team, options, options.variants[turn.variant], problem);
  });
  if (team.rank() == 0) {
    print_comparison(runs);
    if (!runs.right()) fmt::print(stderr, "mapreduce: a result is wrong\n");
    document["runs"] = runs.figures();
    apps::write_json(options.json, document);
  }
  return runs.right() ? 0 : 2;
}

// Returns how much a chunk takes, and makes, as given or as the first rank's first chunk does.
// Collective.
ChunkCost cost_of(const tiled::Team& team, const Options& options, Program& real) {
  std::uint64_t bytes = 0;
  const auto measure = [&] {
    Output output(static_cast<std::size_t>(team.size()));
    const double map_s = tiled::least_time([&] { output.assign(output.size(), {}); },
                                           [&] { real.map({0, 1}, output); });
    bytes = 0;
    for (const Bytes& part : output) bytes += part.size();
    const double reduce_s = tiled::least_time([&] { real.begin(); }, [&] {
      for (const Bytes& part : output) real.reduce(part);
    });
    return tiled::KernelTimes{map_s, reduce_s};
  };
  const tiled::TimedOptions& timed = options.timed;
  if (!options.tuple_bytes && !timed.kernel_us.empty() && team.rank() == 0) (void)measure();
  const tiled::KernelTimes all = find_times(team, timed, measure);
  const tiled::KernelTimes here = times_here(team, timed, all);
  if (options.tuple_bytes) bytes = static_cast<std::uint64_t>(*options.tuple_bytes);
  MPI_Bcast(&bytes, 1, MPI_UINT64_T, 0, team.all());
  const auto ranks = static_cast<std::uint64_t>(team.size());
  bytes = std::max<std::uint64_t>(bytes / ranks, 1) * ranks;
  if (team.rank() == 0) {
    fmt::print("Kernels sleep: the map of a chunk {:.0f} us, the reduction of what it makes {:.0f} "
               "us, {} bytes; nothing is computed, and no result is checked\n", 1e6 * all[0],
               1e6 * all[1], bytes);
    if (timed.slow.rank >= 0) {
      fmt::print("On rank {} they take {} times as long\n", timed.slow.rank, timed.slow.factor);
    }
    std::fflush(stdout);
  }
  return {here[0], here[1], static_cast<std::size_t>(bytes)};
}

int run_timed(const tiled::Team& team, const Options& options, Program& real,
              nlohmann::json document) {
  const ChunkCost cost = cost_of(team, options, real);
  Timed timed(cost, team.size());
  document["kernels"] = {{"map_us", 1e6 * cost.map_s},
                         {"reduce_us", 1e6 * cost.reduce_s},
                         {"tuple_bytes", cost.bytes}};
  return run_all(team, options, {timed, [] { return Verdict{}; }}, std::move(document));
}

// Collective. Throws InputError.
Text open_text(const tiled::Team& team, const Options& options) {
  if (options.files.empty()) return Text(options.random);
  std::optional<Text> text;
  std::string wrong;
  try {
    text.emplace(options.files, options.repeat);
  } catch (const std::runtime_error& error) {
    wrong = error.what();
  }
  tiled::fail_together(team.all(), wrong);
  const std::uint64_t ranks = static_cast<std::uint64_t>(team.size());
  const std::uint64_t rank = static_cast<std::uint64_t>(team.rank());
  const std::uint64_t share = text->size_of_files() / ranks + 1;
  try {
    text->check(share * rank, share * (rank + 1));
  } catch (const std::runtime_error& error) {
    wrong = error.what();
  }
  tiled::fail_together(team.all(), wrong);
  return std::move(*text);
}

void print_words(const Options& options, const Ranking& ranking) {
  for (std::size_t k = 0; k < ranking.size() && k < static_cast<std::size_t>(options.top); ++k) {
    fmt::print("{:>12} {}\n", ranking[k].second, ranking[k].first);
  }
  if (options.output.empty()) return;
  std::ofstream file(options.output);
  for (const auto& [word, number] : ranking) file << number << ' ' << word << '\n';
  file.flush();
  if (!file) throw std::runtime_error("--output " + options.output + ": writing failed");
}

int run_words(const tiled::Team& team, const Options& options, nlohmann::json document) {
  const Text text = open_text(team, options);
  apps::check_writable(team.all(), "--output", options.output);
  document["bytes"] = text.size();
  if (team.rank() == 0) {
    fmt::print("Word count of {:.1f} MB{}, {} chunks a rank, on {} ranks with {} each\n",
               1e-6 * static_cast<double>(text.size()),
               options.files.empty() ? " of random words" : "", options.chunks, team.size(),
               apps::counted(imbrex::worker_count(), "worker"));
    std::fflush(stdout);
  }
  WordCount count(text, team.all(), options.chunks);
  if (options.timed.timed) return run_timed(team, options, count, std::move(document));
  std::uint64_t alone[3] = {};
  if (team.rank() == 0) {
    const double begin = MPI_Wtime();
    const Digest digest = digest_of(count_serially(text));
    fmt::print("One thread has counted {} words, {} different ones, in {:.1f} s\n", digest.words,
               digest.distinct, MPI_Wtime() - begin);
    std::fflush(stdout);
    alone[0] = digest.words;
    alone[1] = digest.distinct;
    alone[2] = digest.hash;
  }
  MPI_Bcast(alone, 3, MPI_UINT64_T, 0, team.all());
  const Digest expected{alone[0], alone[1], alone[2]};
  document["words"] = expected.words;
  document["distinct"] = expected.distinct;
  const auto check = [&]() -> Verdict {
    const Digest found = digest_of_all(count.counts(), team.all());
    if (found == expected) return {true, "as counted alone"};
    return {false, fmt::format("WRONG: {} words, {} different ones", found.words, found.distinct)};
  };
  const int code = run_all(team, options, {count, check}, std::move(document));
  if (options.top == 0 && options.output.empty()) return code;
  const Ranking ranking = gather(count.counts(), team.all());
  if (team.rank() == 0) print_words(options, ranking);
  return code;
}

int run_matvec(const tiled::Team& team, const Options& options, nlohmann::json document) {
  // The matrix, what maps make of it, and the buffers of both sides of the exchange.
  const double bytes = 4 * 8.0 * static_cast<double>(options.n * options.n);
  tiled::check_memory(team.all(), bytes / team.size(), fmt::format("--n {}: needs", options.n),
                      "a smaller one");
  document["n"] = options.n;
  if (team.rank() == 0) {
    fmt::print("Matrix-vector product of order {}, {} chunks a rank, on {} ranks with {} each; "
               "error: |y - dgemv's| / (n eps |A||x|)\n", options.n, options.chunks, team.size(),
               apps::counted(imbrex::worker_count(), "worker"));
    std::fflush(stdout);
  }
  MatVec product(options.n, team.all(), options.chunks);
  if (options.timed.timed) return run_timed(team, options, product, std::move(document));
  const auto check = [&]() -> Verdict {
    const double error = product.error();
    return {error <= 1, fmt::format("error {:.6f}", error)};
  };
  return run_all(team, options, {product, check}, std::move(document));
}

// The exit code.
int run(int argc, char** argv) {
  const int ranks = apps::ranks_of_all();
  const Options options = parse_options(argc, argv);
  const tiled::Team team({1, ranks});
  apps::check_writable(team.all(), "--json", options.json);
  nlohmann::json document{{"benchmark", "mapreduce"},
                          {"program", options.words ? "wordcount" : "matvec"},
                          {"ranks", ranks},
                          {"workers", imbrex::worker_count()},
                          {"chunks", options.chunks},
                          {"batches", options.batches}};
  return options.words ? run_words(team, options, std::move(document))
                       : run_matvec(team, options, std::move(document));
}

}  // namespace
}  // namespace mapreduce

int main(int argc, char** argv) {
  return tiled::run_program("mapreduce", argc, argv, &mapreduce::run);
}
