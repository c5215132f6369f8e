// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/take_simulation.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "imbrex/error.hpp"
#include "simulate/carried/broadcast.hpp"
#include "simulate/carried/pool.hpp"
#include "simulate/owners/owned_program.hpp"
#include "simulate/programs/programs.hpp"
#include "simulate/recorded/recorded_program.hpp"

namespace imbrex::simulate {

namespace {

using Made = std::unique_ptr<Program>;

[[nodiscard]] Made take_cholesky(Settings& settings, const int ranks,
                                 const DurationOf& duration_of) {
  CholeskySetup setup;
  setup.n = settings.take("n", std::int64_t{1});
  setup.tile = settings.take("tile", 1);
  setup.rows = settings.take("rows", 1);
  setup.columns = settings.take("columns", 1);
  setup.lookahead = settings.take("lookahead", 0);
  setup.marks = settings.take("marks", 0) != 0;
  if (std::int64_t{setup.rows} * setup.columns != ranks) {
    throw Error(fmt::format("a grid of {}x{} is not for {} ranks", setup.rows, setup.columns,
                            ranks));
  }
  return make_cholesky(setup, duration_of);
}

[[nodiscard]] Made take_stencil(Settings& settings, const int ranks) {
  StencilSetup setup;
  setup.ranks = ranks;
  setup.size = settings.take("size", std::int64_t{1});
  setup.ghost = settings.take("ghost", std::int64_t{1});
  setup.chunks = settings.take("chunks", 1);
  setup.steps = settings.take("steps", 1);
  setup.is_periodic = settings.take("periodic", 0) != 0;
  setup.marks = settings.take("marks", 0) != 0;
  setup.cell_ns = settings.take("cell_ns", 0.0);
  return make_stencil(setup);
}

[[nodiscard]] ExchangeVariant take_variant(Settings& settings) {
  const std::string text = settings.take_text("variant");
  if (text == "blocking") return ExchangeVariant::blocking;
  if (text == "partial-receive") return ExchangeVariant::partial_receive;
  if (text == "partial-blocks") return ExchangeVariant::partial_blocks;
  if (text == "messages") return ExchangeVariant::messages;
  throw Error(fmt::format(
      "variant={}: valid: blocking, partial-receive, partial-blocks, messages", text));
}

[[nodiscard]] Made take_exchange(Settings& settings, const int ranks,
                                 const DurationOf& duration_of) {
  ExchangeSetup setup;
  setup.variant = take_variant(settings);
  setup.ranks = ranks;
  setup.n = settings.take("n", std::int64_t{1});
  setup.chunks = settings.take("chunks", 1);
  setup.parts = settings.take("parts", 1);
  return make_exchange(setup, duration_of);
}

[[nodiscard]] Made take_blocks(Settings& settings, const int ranks,
                               const DurationOf& duration_of) {
  BlocksSetup setup;
  setup.ranks = ranks;
  setup.blocks = settings.take("blocks", 1);
  setup.side = settings.take("side", 1);
  setup.steps = settings.take("steps", 1);
  setup.hot = settings.take("hot", 1);
  return make_blocks(setup, duration_of);
}

[[nodiscard]] Made take_gradients(Settings& settings, const bool multigrid, const int ranks,
                                  const DurationOf& duration_of) {
  GradientsSetup setup;
  setup.multigrid = multigrid;
  setup.ranks = ranks;
  setup.n = settings.take("n", 1);
  setup.blocks = settings.take("blocks", 1);
  setup.iterations = settings.take("iterations", 1);
  return make_gradients(setup, duration_of);
}

[[nodiscard]] Made take_wavefront(Settings& settings, const int ranks,
                                  const DurationOf& duration_of) {
  WavefrontSetup setup;
  setup.ranks = ranks;
  setup.rows = settings.take("rows", std::int64_t{1});
  setup.columns = settings.take("columns", std::int64_t{1});
  setup.outer_rows = settings.take("outer_rows", std::int64_t{1});
  setup.outer_columns = settings.take("outer_columns", std::int64_t{1});
  setup.inner_rows = settings.take("inner_rows", std::int64_t{1});
  setup.inner_columns = settings.take("inner_columns", std::int64_t{1});
  setup.cyclic = settings.take("cyclic", 0) != 0;
  return make_wavefront(setup, duration_of);
}

[[nodiscard]] Made take_program(Settings& settings, const std::string& name, const int ranks) {
  const DurationOf duration_of = [&](const std::string_view kernel) {
    return settings.take(fmt::format("kernel.{}", kernel), Time{0});
  };
  if (name == "cholesky") return take_cholesky(settings, ranks, duration_of);
  if (name == "stencil1d") return take_stencil(settings, ranks);
  if (name == "exchange") return take_exchange(settings, ranks, duration_of);
  if (name == "stencil2d") return take_blocks(settings, ranks, duration_of);
  if (name == "minife") return take_gradients(settings, false, ranks, duration_of);
  if (name == "hpcg") return take_gradients(settings, true, ranks, duration_of);
  if (name == "wavefront") return take_wavefront(settings, ranks, duration_of);
  throw Error(fmt::format("there is no program {}", name));
}

[[nodiscard]] distributed::TreeKind take_tree(Settings& settings) {
  using distributed::TreeKind;
  const std::string text = settings.take_text("tree");
  if (text == "auto") return TreeKind::automatic;
  for (const TreeKind kind :
       {TreeKind::star, TreeKind::binomial, TreeKind::chain, TreeKind::binary}) {
    if (text == distributed::name_of(kind)) return kind;
  }
  throw Error(fmt::format("tree={}: valid: auto, star, binomial, chain, binary", text));
}

// A program of the user's: its kernels are numbered, in the order of their names in its file.
[[nodiscard]] Made take_owned(Settings& settings, const ClusterSetup& cluster) {
  OwnedSetup setup;
  setup.path = settings.take_text("file");
  setup.ranks = cluster.ranks;
  setup.per_node = cluster.per_node;
  setup.elsewhere_ns = settings.take("elsewhere_ns", Time{0});
  setup.combine_ns = settings.take("combine_ns", Time{0});
  setup.tree = take_tree(settings);
  const int kernels = settings.take("kernels", 0);
  for (int i = 0; i < kernels; ++i) {
    std::string name = settings.take_text(fmt::format("name.{}", i));
    setup.kernels.push_back(
        {std::move(name), settings.take(fmt::format("kernel.{}", i), Time{0})});
  }
  return make_owned_program(setup);
}

}  // namespace

Simulation take_simulation(Settings& settings, const ClusterSetup& cluster) {
  const std::string name = settings.take_text("program");
  if (name == "broadcast") {
    BroadcastSetup setup;
    setup.bytes = settings.take("bytes", std::int64_t{1});
    setup.rounds = settings.take("rounds", 1);
    setup.tree = take_tree(settings);
    return [=, &cluster] { return simulate_broadcast(setup, cluster); };
  }
  if (name == "pool") {
    PoolSetup setup;
    setup.tree = settings.take_text("tree");
    setup.node_ns = settings.take("node_ns", 0.0);
    setup.victims = settings.take("victims", std::uint32_t{0});
    return [=, &cluster] { return simulate_pool(setup, cluster); };
  }
  if (name == "owners") {
    const std::shared_ptr<Program> program = take_owned(settings, cluster);
    return [program, &cluster] { return simulate(*program, cluster); };
  }
  if (name == "trace") {
    RecordedSetup setup;
    setup.heads = settings.take_text("heads");
    setup.ranks = cluster.ranks;
    setup.creator_ns = cluster.rank.creator_ns;
    setup.speed = settings.take("speed", 0.0);
    if (!(setup.speed > 0)) throw Error("speed=0: give a number above 0");
    std::map<std::string, std::uint64_t> left_out;
    const std::shared_ptr<Program> recorded = make_recorded(setup, left_out);
    const bool tells = settings.take("tells", 0) != 0;
    for (const auto& [what, count] : left_out) {
      if (tells) fmt::print(stderr, "imbrex simulate: not simulated: {} ({} times)\n", what, count);
    }
    return [recorded, &cluster] { return simulate(*recorded, cluster); };
  }
  const std::shared_ptr<Program> program = take_program(settings, name, cluster.ranks);
  return [program, &cluster] { return simulate(*program, cluster); };
}

}  // namespace imbrex::simulate
