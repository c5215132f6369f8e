// SPDX-License-Identifier: BSD-3-Clause
// uts: reads the command line, searches the tree, prints counts and times.
// Exit codes: 0 well; 1 wrong input; 2 counts that are not those of a known tree. All
// ranks exit alike.
//
// Built twice: uts has the imbrex variant, and becomes uts_plain for the others, which are built
// without imbrex, with UTS_PLAIN; so they run as they would without it.
#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <optional>

#include "../harness/program.hpp"
#include "options.hpp"
#include "report.hpp"
#ifndef UTS_PLAIN
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>
#endif

namespace uts {
namespace {

#ifdef UTS_PLAIN
int searchers_here(const Options& options) {
  if (options.variant == Variant::imbrex) {
    throw InputError("this program has no imbrex in it: build/bin/uts has that variant");
  }
  return options.variant == Variant::openmp ? openmp_threads() : 1;
}
std::vector<Tally> search(const Options& options, const Run& run) {
  if (options.variant == Variant::sequential) return run_sequential(run);
  return options.variant == Variant::mpi ? run_mpi(run) : run_openmp(run);
}
#else
int searchers_here(const Options&) { return std::max(1, imbrex::worker_count()); }
std::vector<Tally> search(const Options&, const Run& run) { return run_imbrex(run); }
#endif

// Sets the values that the command line leaves to the variant; imbrex finds its own.
void choose(const Options& options, Settings& settings) {
  if (options.variant == Variant::imbrex) return;
  // The reference's 20, four of five of which would be leaves.
  if (settings.chunk == 0) settings.chunk = 4;
  if (settings.interval == 0) {
    constexpr double interval_s = 60e-6;
    settings.interval = std::max(1, static_cast<int>(interval_s / (15e-9 + settings.node_s)));
  }
}

int run(int argc, char** argv) {
  Options options = parse_options(argc, argv);
  const int rank = apps::rank_of_all();
  int searchers = searchers_here(options);
  choose(options, options.settings);
  MPI_Allreduce(MPI_IN_PLACE, &searchers, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0 && options.verbosity > 0) {
    print_problem(options, apps::ranks_of_all(), searchers);
  }
  const Tree tree(options.tree);
  bool right = true;
  for (int number = 0; number < options.repeat; ++number) {
    apps::Progress progress(0, "nodes", rank == 0 && options.verbosity > 0 ? 10 : 0);
    MPI_Barrier(MPI_COMM_WORLD);
    progress.begin("uts");
    const double start_s = seconds();
    const std::vector<Tally> mine =
        search(options, Run{MPI_COMM_WORLD, tree, options.settings, progress});
    const double passed_s = seconds() - start_s;
    const Result result =
        gather(MPI_COMM_WORLD, mine, passed_s, options.variant == Variant::sequential);
    if (rank == 0) print_result(options, result);
    if (options.verbosity > 1) print_searchers(MPI_COMM_WORLD, mine);
    if (!is_right(options, result.sum.counts)) {
      right = false;
      if (rank == 0) {
        const KnownTree& known = *find_known(options.tree);
        fmt::print(stderr, "uts: these counts are wrong: {} has {} nodes, depth {}\n", known.name,
                   known.counts.nodes, known.counts.depth);
      }
    }
  }
  return right ? 0 : 2;
}

void start(int& argc, char**& argv) {
  const std::optional<Options> options = apps::look_at(argc, argv, &parse_options);
#ifdef UTS_PLAIN
  // OpenMP's threads call MPI in turn.
  const int needed = options && options->variant == Variant::openmp ? MPI_THREAD_SERIALIZED
                                                                    : MPI_THREAD_SINGLE;
  int got = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, needed, &got);
  if (got < needed) {
    fmt::print(stderr, "uts: --variant openmp: this MPI allows no calls by several threads\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
#else
  if (options && options->variant != Variant::imbrex) apps::become("uts_plain", argv);
  MPI_Init(&argc, &argv);
#endif
}

}  // namespace
}  // namespace uts

int main(int argc, char** argv) {
  return apps::run_program("uts", argc, argv, &uts::start, &uts::run);
}
