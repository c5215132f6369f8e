// SPDX-License-Identifier: BSD-3-Clause
// smith_waterman: reads the command line and the sequences, runs one version, prints what it found.
// Exit codes: 0 well; 1 wrong input. All ranks exit alike.
// Built twice: smith_waterman has the imbrex variant, and becomes smith_waterman_plain for the
// others, which are built without imbrex, with SMITH_WATERMAN_PLAIN; so they run as without it.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "../harness/program.hpp"
#include "options.hpp"
#include "variants.hpp"
#ifndef SMITH_WATERMAN_PLAIN
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>
#endif

namespace smith_waterman {
namespace {

struct Team {
  int rank = 0;
  int ranks = 1;
  int threads = 1;
};

struct Inputs {
  Sequence a;
  Sequence b;
};

struct Outcome {
  Cell end;
  double seconds = 0;
};

// Sends the letters that only the first rank has read to all ranks. Collective.
void broadcast(std::vector<Letter>& letters) {
  auto length = static_cast<std::int64_t>(letters.size());
  MPI_Bcast(&length, 1, MPI_INT64_T, 0, MPI_COMM_WORLD);
  letters.resize(static_cast<std::size_t>(length));
  constexpr std::int64_t piece = 1 << 28;
  for (std::int64_t first = 0; first < length; first += piece) {
    MPI_Bcast(letters.data() + first, static_cast<int>(std::min(piece, length - first)),
              MPI_UINT8_T, 0, MPI_COMM_WORLD);
  }
}

// The first rank reads files. Collective. Throws InputError.
Inputs load(const Options& options, const Team& team) {
  Inputs inputs;
  if (options.random.rows > 0) {
    inputs.a.letters = random_letters(options.random.rows, 2 * options.seed);
    inputs.b.letters = random_letters(options.random.columns, 2 * options.seed + 1);
    inputs.a.name = inputs.b.name = "random";
    return inputs;
  }
  std::string wrong;
  if (team.rank == 0) {
    try {
      inputs.a = read_fasta(options.a, options.reading);
      inputs.b = read_fasta(options.b, options.reading);
    } catch (const FileError& error) {
      wrong = error.what();
    }
  }
  apps::fail_together(MPI_COMM_WORLD, wrong);
  broadcast(inputs.a.letters);
  broadcast(inputs.b.letters);
  return inputs;
}

// If not given: the published size, or less so that each rank has some on the longest diagonal;
// whole inner tiles.
std::int64_t outer_side(std::int64_t length, std::int64_t inner, std::int64_t largest, int ranks) {
  const std::int64_t share = length / (4 * static_cast<std::int64_t>(ranks));
  const std::int64_t side = std::clamp(share, std::min(inner, largest), largest);
  return std::max<std::int64_t>(side / inner * inner, inner);
}

// Throws InputError.
Tiling tiling_of(const Options& options, const Inputs& inputs, const Team& team) {
  Tiling tiling;
  tiling.whole = {static_cast<std::int64_t>(inputs.a.letters.size()),
                  static_cast<std::int64_t>(inputs.b.letters.size())};
  const Extent inner = options.inner;
  tiling.outer = options.outer.value_or(
      Extent{outer_side(tiling.whole.rows, inner.rows, 9280, team.ranks),
             outer_side(tiling.whole.columns, inner.columns, 9600, team.ranks)});
  tiling.outer = {std::min(tiling.outer.rows, tiling.whole.rows),
                  std::min(tiling.outer.columns, tiling.whole.columns)};
  tiling.inner = {std::min(inner.rows, tiling.outer.rows),
                  std::min(inner.columns, tiling.outer.columns)};
  tiling.ranks = team.ranks;
  tiling.distribution = options.distribution;
  const std::int64_t step = std::max({options.scoring.match, -options.scoring.gap});
  if ((tiling.whole.rows + tiling.whole.columns) * step > 2'000'000'000) {
    throw apps::InputError(fmt::format("sequences of {} and {} letters: with steps of {} scores "
                                        "would exceed 32 bits", tiling.whole.rows,
                                        tiling.whole.columns, step));
  }
  if (static_cast<double>(tiling.down()) * tiling.across() > 4e6) {
    throw apps::InputError(fmt::format("--outer {} {}: makes {} x {} tiles; at most 4 million "
                                        "are allowed", tiling.outer.rows, tiling.outer.columns,
                                        tiling.down(), tiling.across()));
  }
  return tiling;
}

// Returns the time that a tile sleeps, by the fastest of several runs on the first rank.
// Collective.
double measure_tile(const Problem& problem) {
  double least = 0;
  for (int run = 0; run < 7; ++run) {
    const int rows = static_cast<int>(problem.tiling.inner.rows);
    const int columns = static_cast<int>(problem.tiling.inner.columns);
    std::vector<Score> column(static_cast<std::size_t>(rows));
    std::vector<Score> row(static_cast<std::size_t>(columns));
    fill_edge(problem.scoring, 0, column);
    fill_edge(problem.scoring, 0, row);
    Score corner = 0;
    Largest largest;
    const double begin = MPI_Wtime();
    compute(problem.scoring, {.a = problem.a, .rows = rows, .b = problem.b, .columns = columns,
                              .column = column.data(), .row = row.data(), .corner = &corner},
            {}, problem.scoring.local ? &largest : nullptr);
    const double took = MPI_Wtime() - begin;
    least = run == 0 ? took : std::min(least, took);
  }
  MPI_Bcast(&least, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return std::max(least, 1e-9);
}

std::int64_t cells_of(const Tiling& tiling, Variant variant, int rank) {
  if (variant == Variant::sequential) return tiling.whole.rows * tiling.whole.columns;
  std::int64_t cells = 0;
  for (int i = 0; i < tiling.down(); ++i) {
    for (int j = 0; j < tiling.across(); ++j) {
      if (tiling.home(i, j) != rank) continue;
      const Extent extent = tiling.extent(i, j);
      cells += extent.rows * extent.columns;
    }
  }
  return cells;
}

#ifdef SMITH_WATERMAN_PLAIN
Score run_variant(const Problem& problem, Variant variant) {
  if (variant == Variant::mpi) return run_fork_join(problem, MPI_COMM_WORLD);
  return run_sequential(problem, MPI_COMM_WORLD);
}

// Throws InputError for the variant that is not here.
int threads_of(Variant variant) {
  if (variant == Variant::imbrex) {
    throw apps::InputError("--variant imbrex: is of the program smith_waterman; here are "
                            "sequential and mpi");
  }
  return variant == Variant::mpi ? fork_join_threads() : 1;
}
#else
Score run_variant(const Problem& problem, Variant) { return run_tasks(problem, MPI_COMM_WORLD); }

// Variants are imbrex: start() has left nothing else.
int threads_of(Variant) { return imbrex::worker_count(); }
#endif

// The first of all ranks' cells; on all ranks.
Cell first_of_all(const Cell& mine, const Team& team) {
  std::vector<Cell> cells(static_cast<std::size_t>(team.ranks));
  MPI_Allgather(&mine, sizeof mine, MPI_BYTE, cells.data(), sizeof mine, MPI_BYTE,
                MPI_COMM_WORLD);
  return *std::ranges::min_element(
      cells, [](const Cell& one, const Cell& other) { return one.precedes(other); });
}

Outcome run(Problem problem, const Options& options, const Team& team) {
  Largest largest;
  apps::Progress progress(cells_of(problem.tiling, options.variant, team.rank), "cells",
                           team.rank == 0 ? options.progress_s : 0);
  progress.begin("smith_waterman");
  if (problem.scoring.local) problem.largest = &largest;
  problem.progress = &progress;
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  Score last = run_variant(problem, options.variant);
  MPI_Barrier(MPI_COMM_WORLD);
  Outcome outcome;
  outcome.seconds = MPI_Wtime() - begin;
  if (problem.scoring.local) {
    outcome.end = first_of_all(largest.first(), team);
  } else {
    MPI_Allreduce(MPI_IN_PLACE, &last, 1, MPI_INT32_T, MPI_SUM, MPI_COMM_WORLD);
    outcome.end = {last, problem.tiling.whole.rows - 1, problem.tiling.whole.columns - 1};
  }
  return outcome;
}

void print_sequence(char letter, const std::string& path, const Sequence& sequence,
                    const Reading& reading) {
  fmt::print("{}         {} letters, {}{}\n", letter, sequence.letters.size(),
             path.empty() ? "" : path + ", ", sequence.name.empty() ? "without a name"
                                                                     : sequence.name);
  if (sequence.dropped > 0) {
    fmt::print("          {} letters that are not A, C, G, T are dropped\n", sequence.dropped);
  }
  if (sequence.records > 1) {
    fmt::print("          {} records, one after the other\n", sequence.records);
  } else if (sequence.records == 1 && !reading.all_records) {
    fmt::print("          the first record of the file\n");
  }
}

void print_problem(const Problem& problem, const Options& options, const Inputs& inputs,
                   const Team& team) {
  print_sequence('A', options.a, inputs.a, options.reading);
  print_sequence('B', options.b, inputs.b, options.reading);
  const Scoring& scoring = problem.scoring;
  const Tiling& tiling = problem.tiling;
  fmt::print("Scoring   {}, match {}, transition {}, transversion {}, gap {}\n",
             scoring.local ? "local" : "global", scoring.match, scoring.transition,
             scoring.transversion, scoring.gap);
  fmt::print("Tiles     {} x {} of {} x {}, {}; of inner tiles of {} x {}\n", tiling.down(),
             tiling.across(), tiling.outer.rows, tiling.outer.columns,
             word_of(distribution_names, tiling.distribution), tiling.inner.rows,
             tiling.inner.columns);
  fmt::print("Variant   {}, {} ranks of {} threads\n", word_of(variant_names, options.variant),
             options.variant == Variant::sequential ? 1 : team.ranks, team.threads);
  if (options.timed()) {
    fmt::print("Kernel    sleeps {:.1f} us for a whole inner tile, {}; there is no score\n",
               1e6 * problem.kernel.sleep_s, options.kernel_us ? "as given" : "as measured");
  } else {
    fmt::print("Kernel    {}\n", options.kernels == Kernels::plain ? "plain, by the definition"
                                                                  : kernel_name());
  }
  std::fflush(stdout);
}

void print_outcome(const Problem& problem, const Options& options, const Outcome& outcome) {
  const double cells = static_cast<double>(problem.tiling.whole.rows) *
                       static_cast<double>(problem.tiling.whole.columns);
  if (!options.timed()) {
    fmt::print("Score     {}\n", outcome.end.score);
    if (outcome.end.row < 0) {
      fmt::print("End       none: no two letters are equal\n");
    } else {
      fmt::print("End       letter {} of A, {} of B\n", outcome.end.row + 1,
                 outcome.end.column + 1);
    }
  }
  fmt::print("Time      {:.6f} s, {:.0f} cells, {:.3f} GCUPS\n", outcome.seconds, cells,
             1e-9 * cells / outcome.seconds);
}

void print_json(const Problem& problem, const Options& options, const Team& team,
                const Outcome& outcome) {
  const Tiling& tiling = problem.tiling;
  const std::int64_t cells = tiling.whole.rows * tiling.whole.columns;
  nlohmann::json line{{"variant", word_of(variant_names, options.variant)},
                      {"mode", options.scoring.local ? "local" : "global"},
                      {"distribution", word_of(distribution_names, options.distribution)},
                      {"kernels", word_of(kernels_names, options.kernels)},
                      {"ranks", team.ranks},
                      {"threads", team.threads},
                      {"length_a", tiling.whole.rows},
                      {"length_b", tiling.whole.columns},
                      {"outer", {tiling.outer.rows, tiling.outer.columns}},
                      {"inner", {tiling.inner.rows, tiling.inner.columns}},
                      {"cells", cells},
                      {"seconds", outcome.seconds},
                      {"gcups", 1e-9 * static_cast<double>(cells) / outcome.seconds}};
  if (options.timed()) {
    line["kernel_us"] = 1e6 * problem.kernel.sleep_s;
  } else {
    line["score"] = outcome.end.score;
    line["end_a"] = outcome.end.row + 1;  // 0: nothing is aligned
    line["end_b"] = outcome.end.column + 1;
  }
  fmt::print("{}\n", line.dump());
}

int run(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  Team team{apps::rank_of_all(), apps::ranks_of_all()};
  team.threads = threads_of(options.variant);  // refuses a variant that is not here
  const Inputs inputs = load(options, team);
  Problem problem{.a = inputs.a.letters.data(), .b = inputs.b.letters.data(),
                  .scoring = options.scoring, .tiling = tiling_of(options, inputs, team),
                  .kernel = {.plain = options.kernels == Kernels::plain}};
  if (options.timed()) {
    problem.kernel.whole_cells = problem.tiling.inner.rows * problem.tiling.inner.columns;
    problem.kernel.sleep_s =
        options.kernel_us ? 1e-6 * *options.kernel_us : measure_tile(problem);
  }
  if (team.rank == 0) print_problem(problem, options, inputs, team);
  const Outcome outcome = run(problem, options, team);
  if (team.rank == 0) {
    print_outcome(problem, options, outcome);
    if (options.json) print_json(problem, options, team, outcome);
  }
  return 0;
}

void start(int& argc, char**& argv) {
#ifndef SMITH_WATERMAN_PLAIN
  const std::optional<Options> options = apps::look_at(argc, argv, &parse_options);
  if (options && options->variant != Variant::imbrex) apps::become("smith_waterman_plain", argv);
#endif
  MPI_Init(&argc, &argv);
}

}  // namespace
}  // namespace smith_waterman

int main(int argc, char** argv) {
  return apps::run_program("smith_waterman", argc, argv, &smith_waterman::start,
                           &smith_waterman::run);
}
