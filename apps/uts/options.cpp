// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace uts {
namespace {

using apps::CommandLine;

constexpr const char* description =
    "Unbalanced Tree Search: counts the nodes of a tree that is made from SHA-1 while it is\n"
    "searched (Olivier et al., LCPC 2006), alone or under mpirun.";

void add_tree(CommandLine& line, Parameters& tree, std::string& known_tree) {
  std::string names;
  for (const KnownTree& known : known_trees()) names += fmt::format(" {}", known.name);
  line.text("--tree", known_tree, "One of these, instead of the next nine:" + names);
  line.choice("-t", tree.type,
              {{"0", Type::binomial},
               {"1", Type::geometric},
               {"2", Type::hybrid},
               {"3", Type::balanced}},
              "Type: 0 binomial, 1 geometric, 2 hybrid, 3 balanced");
  line.choice("-a", tree.shape,
              {{"0", Shape::linear},
               {"1", Shape::expdec},
               {"2", Shape::cyclic},
               {"3", Shape::fixed}},
              "Geometric shape: 0 linear, 1 expdec, 2 cyclic, 3 fixed");
  line.number("-d", tree.depth, {}, "Geometric depth");
  line.number("-b", tree.root_children, {}, "Children of the root");
  line.number("-r", tree.seed, {0}, "Seed of the root");
  line.number("-q", tree.binomial_q, {}, "Binomial: chance of having children");
  line.number("-m", tree.binomial_m, {}, "Binomial: how many children then");
  line.number("-f", tree.hybrid_shift, {}, "Hybrid: share of -d from which on it is binomial");
  line.number("-g", tree.granularity, {}, "Hashes of a node");
}

void add_settings(CommandLine& line, Settings& settings, bool& timed, double& node_us) {
  line.number("-c", settings.chunk, {1, 1'000'000},
              "Nodes (that are no leaves) given away at once; as the variant chooses if not given");
  line.number("-i", settings.interval, {1, 1'000'000'000},
              "Nodes between two looks at messages; as the variant chooses if not given");
  line.choice("--victims", settings.victims, victims_names,
              "mpi, openmp: which rank is asked, the next one or a random one");
  line.choice("--steal", settings.steal, steal_names,
              "mpi, openmp: what is given, a chunk, or half of all, in chunks. imbrex: none, so "
              "that ranks keep theirs");
  line.choice("--kernels", timed, {{"real", false}, {"timed", true}},
              "real, or timed: a node also sleeps for --node-us, so that ranks may share "
              "processors");
  line.number("--node-us", node_us, {0.01, 1e6}, "Timed: microseconds of a node");
  settings.hash = best_hash();
  line.choice("--sha1", settings.hash, {{"auto", best_hash()}, {"plain", Hash::plain}},
              "auto, or plain: without the processor's instructions for it");
}

void read_tree(const CommandLine& line, const std::string& name, Parameters& tree) {
  if (!name.empty()) {
    for (const char* const letter : {"-t", "-a", "-d", "-b", "-r", "-q", "-m", "-f"}) {
      if (!line.given(letter)) continue;
      throw InputError(fmt::format("--tree {} has its own {}: give one of the two", name, letter));
    }
    const auto trees = known_trees();
    const auto found = std::ranges::find(trees, name, &KnownTree::name);
    if (found == trees.end()) {
      throw InputError(fmt::format("--tree {}: there is none of this name (--help lists them)",
                                   name));
    }
    const int granularity = tree.granularity;
    tree = found->parameters;
    tree.granularity = granularity;
  }
  check(tree);
}

}  // namespace

Options parse_options(int argc, char** argv) {
  Options options;
  std::string tree;
  bool timed = false;
  double node_us = 10;
  CommandLine line("uts", description);
  line.choice("--variant", options.variant, variant_names,
              "sequential (each rank by itself), mpi (the reference's strategy), openmp (MPI and "
              "OpenMP), imbrex");
  add_tree(line, options.tree, tree);
  add_settings(line, options.settings, timed, node_us);
  line.number("-v,--verbose", options.verbosity, {0, 2},
              "0: counts and rate alone; 1: also the tree, and progress every 10 s; 2: also each "
              "rank");
  line.number("--repeat", options.repeat, {1}, "Runs");
  line.flag("--statistics", options.statistics,
            "Where the time went, as Table III of Chatterjee et al.");
  line.flag("--json", options.json, "Each run as a line of JSON, too");
  line.parse(argc, argv);
  line.needs({"--node-us"}, timed, "--kernels timed");
  read_tree(line, tree, options.tree);
  if (timed) options.settings.node_s = 1e-6 * node_us;
  if (options.settings.steal == Steal::none && options.variant != Variant::imbrex) {
    throw InputError("--steal none is for the variant imbrex");
  }
  return options;
}

}  // namespace uts
