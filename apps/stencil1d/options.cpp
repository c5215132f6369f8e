// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <algorithm>

#include "../harness/command_line.hpp"

namespace stencil1d {

namespace {

using apps::CommandLine;

#ifndef IMBREX_SERIAL
void add_progress(CommandLine& line, Options& options) {
  ProgressOptions& progress = options.progress;
  line.flag("--measure-progress", options.measure,
            "Instead: rank 0 receives a message while it computes, in every way to write that; "
            "how much of the shorter of the two is hidden: (t_blocking - t) / "
            "min(t_communication, t_computation). Run it on tools/netlab: over shared memory a "
            "transfer takes the processor that the computation wants");
  line.numbers("--sizes", progress.sizes, {1, 1 << 30},
               "Of its messages in bytes, separated by commas");
  line.numbers("--ratios", progress.ratios, {0.001, 1000},
               "Of its computation to the communication, separated by commas");
  line.number("--computation-us", progress.computation_us, {0},
              "One more computation of so many microseconds; 0: none");
  line.number("--step-us", progress.step_us, {1, 1e7},
              "Between two of its calls of MPI_Test, and the length of a computing task");
  line.number("--rounds", progress.rounds, {1, 100'000}, "Of each way");
}
#endif

void add_run(CommandLine& line, Options& options) {
  line.number("--size", options.size, {1}, "Cells of all ranks");
  line.number("--ghost", options.ghost, {1, 100'000'000},
              "Cells of a ghost layer, and the reach of a step");
  line.number("--steps", options.steps, {1}, "");
  line.repetitions("--repeat", options.repeat);
  line.number("--chunks", options.chunks, {1}, "Tasks of a rank's core in a step, at most");
  line.choice("--boundary", options.periodic, {{"periodic", true}, {"open", false}},
              "periodic, or open: the first and last rank have one neighbour");
}

}  // namespace

const std::vector<Variant>& all_variants() {
  static const std::vector<Variant> variants{
      {"block", &run_block},       {"bulk", &run_bulk},
#ifndef IMBREX_SERIAL
      {"split", &run_split},       {"yield", &run_yield}, {"tasks", &run_tasks},
#endif
      {"triggers", &run_triggers},
  };
  return variants;
}

Options parse_options(int argc, char** argv) {
  Options options;
  std::vector<std::string> names;
  std::vector<std::string> known;
  for (const Variant& variant : all_variants()) known.emplace_back(variant.name);
  bool timed = false;
  double cell_ns = 2;
  CommandLine line("stencil1d",
                   "A 1-D stencil over MPI ranks with wide ghost layers, in the ways of Capra et "
                   "al.; all must\ngive the same field to the last bit.");
  add_run(line, options);
  line.words("--variants", names, known, "Which, separated by commas; all if not given");
  line.flag("--verify", options.verify, "Compute the field on one rank too, and compare");
  line.flag("--hidden", options.hidden,
            "Also exchange the messages alone, and print the share of the shorter of messages and "
            "computation that each variant hides");
  line.choice("--kernels", timed, {{"real", false}, {"timed", true}},
              "real, or timed: a sweep sleeps --cell-ns for each cell, so that ranks may share "
              "processors; there is no field then");
  line.number("--cell-ns", cell_ns, {0.001, 1e6}, "Timed: nanoseconds");
  line.choice("--priorities", options.priorities,
              {{"borders", Priorities::borders},
               {"sends", Priorities::sends},
               {"none", Priorities::none}},
              "Tasks: borders and their messages first, sends alone, or none");
  line.flag("--json", options.json, "Print the figures of each variant as a line of JSON, too");
#ifndef IMBREX_SERIAL
  add_progress(line, options);
#endif
  line.parse(argc, argv);
  line.needs({"--cell-ns"}, timed, "--kernels timed");
  if (timed && options.verify) {
    throw InputError("--verify: --kernels timed computes no field that could be verified");
  }
  options.progress.json = options.json;
  if (timed) options.cell_ns = cell_ns;
  for (const Variant& variant : all_variants()) {
    const bool requested = names.empty() || std::ranges::find(names, variant.name) != names.end();
    if (requested || (options.hidden && variant.run == &run_block)) {
      options.variants.push_back(variant);
    }
  }
  return options;
}

}  // namespace stencil1d
