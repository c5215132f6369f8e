// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <algorithm>
#include <map>

#include "../command_line.hpp"

namespace stencil1d {

namespace {

constexpr const char* description =
    "A 1-D stencil over MPI ranks with wide ghost layers, in the ways of Capra et al.; all must\n"
    "give the same field to the last bit.";

struct Timed {
  std::string kernels = "real";
  double cell_ns = 2;
};

void add_timed(CLI::App& app, Options& options, Timed& timed) {
  auto* const kernels =
      app.add_option("--kernels", timed.kernels,
                     "real, or timed: a sweep sleeps --cell-ns for each cell, so that ranks may "
                     "share processors; there is no field then")
          ->check(CLI::IsMember({"real", "timed"}))
          ->capture_default_str();
  app.add_option("--cell-ns", timed.cell_ns, "Timed: nanoseconds")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str()
      ->needs(kernels);
  const std::map<std::string, Priorities> priorities{{"borders", Priorities::borders},
                                                     {"sends", Priorities::sends},
                                                     {"none", Priorities::none}};
  app.add_option("--priorities", options.priorities,
                 "Tasks: borders and their messages first, sends alone, or none")
      ->transform(CLI::CheckedTransformer(priorities));
}

#ifndef IMBREX_SERIAL
void add_progress(CLI::App& app, Options& options) {
  ProgressOptions& progress = options.progress;
  app.add_flag("--measure-progress", options.measure,
               "Instead: rank 0 receives a message while it computes, in every way to write that; "
               "how much of the shorter of the two is hidden: (t_blocking - t) / "
               "min(t_communication, t_computation). Run it on tools/netlab: over shared memory a "
               "transfer takes the processor that the computation wants");
  apps::add_list(app, "--sizes", progress.sizes, "Of its messages in bytes, separated by commas")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  apps::add_list(app, "--ratios", progress.ratios,
                 "Of its computation to the communication, separated by commas")
      ->check(CLI::Range(0.001, 1000.0))
      ->capture_default_str();
  app.add_option("--computation-us", progress.computation_us,
                 "One more computation of so many microseconds; 0: none")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--step-us", progress.step_us,
                 "Between two of its calls of MPI_Test, and the length of a computing task")
      ->check(CLI::Range(1.0, 1e7))
      ->capture_default_str();
  app.add_option("--rounds", progress.rounds, "Of each way")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
}
#endif

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

Options parse_options(int argc, char** argv, std::string& help) {
  Options options;
  std::vector<std::string> names;
  std::vector<std::string> known;
  for (const Variant& variant : all_variants()) known.emplace_back(variant.name);
  std::string boundary = "periodic";
  Timed timed;
  CLI::App app(description, "stencil1d");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  app.add_option("--size", options.size, "Cells of all ranks")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--ghost", options.ghost, "Cells of a ghost layer, and the reach of a step")
      ->check(CLI::Range(1, 100'000'000))
      ->capture_default_str();
  app.add_option("--steps", options.steps)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--repeat", options.repeat, "Runs of each variant, in turn")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--chunks", options.chunks, "Tasks of a rank's core in a step, at most")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--boundary", boundary, "periodic, or open: the first and last rank have one "
                 "neighbour")
      ->check(CLI::IsMember({"periodic", "open"}))
      ->capture_default_str();
  apps::add_list(app, "--variants", names, "Which, separated by commas; all if not given")
      ->check(CLI::IsMember(known));
  app.add_flag("--verify", options.verify, "Compute the field on one rank too, and compare");
  app.add_flag("--hidden", options.hidden,
               "Also exchange the messages alone, and print the share of the shorter of messages "
               "and computation that each variant hides");
  add_timed(app, options, timed);
  app.add_flag("--json", options.json, "Print the figures of each variant as a line of JSON, too");
#ifndef IMBREX_SERIAL
  add_progress(app, options);
#endif
  if (!apps::parse(app, argc, argv, help)) return options;
  options.periodic = boundary == "periodic";
  options.progress.json = options.json;
  if (timed.kernels == "timed") {
    if (options.verify) {
      throw InputError("--verify: --kernels timed computes no field that could be verified");
    }
    options.cell_ns = timed.cell_ns;
  }
  for (const Variant& variant : all_variants()) {
    const bool requested = names.empty() || std::ranges::find(names, variant.name) != names.end();
    if (requested || (options.hidden && variant.run == &run_block)) {
      options.variants.push_back(variant);
    }
  }
  return options;
}

}  // namespace stencil1d
