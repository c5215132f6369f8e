// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "../command_line.hpp"

namespace uts {
namespace {

constexpr const char* description =
    "Unbalanced Tree Search: counts the nodes of a tree that is made from SHA-1 while it is\n"
    "searched (Olivier et al., LCPC 2006), alone or under mpirun.";

constexpr const char* variant_names[] = {"sequential", "mpi", "openmp", "imbrex"};  // by number

// The text of the command line before it is checked.
struct Text {
  std::string variant = "imbrex";
  std::string tree;
  std::string victims = "ring";
  std::string steal = "chunk";
  std::string kernels = "real";
  double node_us = 10;
  std::string sha1 = "auto";
  int type = static_cast<int>(Parameters().type);
  int shape = static_cast<int>(Parameters().shape);
};

void add_tree(CLI::App& app, Parameters& tree, Text& text) {
  std::string names;
  for (const KnownTree& known : known_trees()) names += fmt::format(" {}", known.name);
  app.add_option("--tree", text.tree, "One of these, instead of the next nine:" + names);
  app.add_option("-t", text.type, "Type: 0 binomial, 1 geometric, 2 hybrid, 3 balanced")
      ->check(CLI::Range(0, 3))
      ->capture_default_str();
  app.add_option("-a", text.shape, "Geometric shape: 0 linear, 1 expdec, 2 cyclic, 3 fixed")
      ->check(CLI::Range(0, 3))
      ->capture_default_str();
  app.add_option("-d", tree.depth, "Geometric depth")->capture_default_str();
  app.add_option("-b", tree.root_children, "Children of the root")->capture_default_str();
  app.add_option("-r", tree.seed, "Seed of the root")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("-q", tree.binomial_q, "Binomial: chance of having children")
      ->capture_default_str();
  app.add_option("-m", tree.binomial_m, "Binomial: how many children then")->capture_default_str();
  app.add_option("-f", tree.hybrid_shift, "Hybrid: share of -d from which on it is binomial")
      ->capture_default_str();
  app.add_option("-g", tree.granularity, "Hashes of a node")->capture_default_str();
}

void add_settings(CLI::App& app, Settings& settings, Text& text) {
  app.add_option("-c", settings.chunk,
                 "Nodes (that are no leaves) given away at once; as the variant chooses if not "
                 "given")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("-i", settings.interval,
                 "Nodes between two looks at messages; as the variant chooses if not given")
      ->check(CLI::Range(1, 1'000'000'000));
  app.add_option("--victims", text.victims,
                 "mpi, openmp: which rank is asked, the next one or a random one")
      ->check(CLI::IsMember({"ring", "random"}))
      ->capture_default_str();
  app.add_option("--steal", text.steal,
                 "mpi, openmp: what is given, a chunk, or half of all, in chunks")
      ->check(CLI::IsMember({"chunk", "half"}))
      ->capture_default_str();
  app.add_option("--kernels", text.kernels,
                 "real, or timed: a node also sleeps for --node-us, so that ranks may share "
                 "processors")
      ->check(CLI::IsMember({"real", "timed"}))
      ->capture_default_str();
  app.add_option("--node-us", text.node_us, "Timed: microseconds of a node")
      ->check(CLI::Range(0.01, 1e6))
      ->capture_default_str();
  app.add_option("--sha1", text.sha1,
                 "auto, or plain: without the processor's instructions for it")
      ->check(CLI::IsMember({"auto", "plain"}))
      ->capture_default_str();
}

void read_tree(const CLI::App& app, const Text& text, Parameters& tree) {
  tree.type = static_cast<Type>(text.type);
  tree.shape = static_cast<Shape>(text.shape);
  if (!text.tree.empty()) {
    for (const char* const letter : {"-t", "-a", "-d", "-b", "-r", "-q", "-m", "-f"}) {
      if (app.count(letter) == 0) continue;
      throw InputError(fmt::format("--tree {} has its own {}: give one of the two", text.tree,
                                   letter));
    }
    const auto trees = known_trees();
    const auto found = std::ranges::find(trees, text.tree, [](const KnownTree& known) {
      return std::string(known.name);
    });
    if (found == trees.end()) {
      throw InputError(fmt::format("--tree {}: there is none of this name (--help lists them)",
                                   text.tree));
    }
    const int granularity = tree.granularity;
    tree = found->parameters;
    tree.granularity = granularity;
  }
  check(tree);
}

}  // namespace

const char* name_of(const Variant variant) noexcept {
  return variant_names[static_cast<int>(variant)];
}

Options parse_options(int argc, char** argv, std::string& help) {
  Options options;
  Text text;
  CLI::App app(description, "uts");
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
  app.add_option("--variant", text.variant,
                 "sequential (each rank by itself), mpi (the reference's strategy), openmp (MPI "
                 "and OpenMP), imbrex")
      ->check(CLI::IsMember({"sequential", "mpi", "openmp", "imbrex"}))
      ->capture_default_str();
  add_tree(app, options.tree, text);
  add_settings(app, options.settings, text);
  app.add_option("-v,--verbose", options.verbosity,
                 "0: counts and rate alone; 1: also the tree, and progress every 10 s; 2: also "
                 "each rank")
      ->check(CLI::Range(0, 2))
      ->capture_default_str();
  app.add_option("--repeat", options.repeat, "Runs")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_flag("--statistics", options.statistics,
               "Where the time went, as Table III of Chatterjee et al.");
  app.add_flag("--json", options.json, "Each run as a line of JSON, too");
  if (!apps::parse(app, argc, argv, help)) return options;
  if (app.count("--node-us") > 0 && text.kernels != "timed") {
    throw InputError("--node-us: needs --kernels timed");
  }
  options.variant = static_cast<Variant>(
      std::ranges::find(variant_names, text.variant) - std::begin(variant_names));
  if (text.victims == "random") options.settings.victims = Victims::random;
  if (text.steal == "half") options.settings.steal = Steal::half;
  read_tree(app, text, options.tree);
  if (text.kernels == "timed") options.settings.node_s = 1e-6 * text.node_us;
  options.settings.hash = text.sha1 == "auto" ? best_hash() : Hash::plain;
  return options;
}

}  // namespace uts
