// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/take_simulation.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text/brief.hpp"
#include "imbrex/error.hpp"
#include "simulate/carried/broadcast.hpp"
#include "simulate/carried/pool.hpp"
#include "simulate/owners/owned_program.hpp"
#include "simulate/programs/programs.hpp"
#include "simulate/recorded/recorded_program.hpp"

namespace imbrex::simulate {

namespace {

using Made = std::unique_ptr<Program>;

// The most of sizes: products of two stay below 2^63, and bytes of a message below 10^13.
constexpr int count_most = 1 << 20;
constexpr std::int64_t size_most = 1'000'000'000'000;
constexpr std::int64_t letters_most = 2'147'483'647;
constexpr int lines_most = 1 << 24;
constexpr int points_most = 1024;
constexpr Time kernel_ns_most = 1'000'000'000'000'000;

[[nodiscard]] bool take_flag(Settings& settings, const std::string& name) {
  return settings.take(name, 0, 1) != 0;
}

[[nodiscard]] Made take_cholesky(Settings& settings, const int ranks,
                                 const DurationOf& duration_of) {
  CholeskySetup setup;
  setup.n = settings.take("n", std::int64_t{1}, size_most);
  setup.tile = settings.take("tile", 1, count_most);
  setup.rows = settings.take("rows", 1, count_most);
  setup.columns = settings.take("columns", 1, count_most);
  setup.lookahead = settings.take("lookahead", 0);
  setup.marks = take_flag(settings, "marks");
  if (std::int64_t{setup.rows} * setup.columns != ranks) {
    throw Error(fmt::format("a grid of {}x{} is not for {} ranks", setup.rows, setup.columns,
                            ranks));
  }
  return make_cholesky(setup, duration_of);
}

[[nodiscard]] Made take_stencil(Settings& settings, const int ranks) {
  StencilSetup setup;
  setup.ranks = ranks;
  setup.size = settings.take("size", std::int64_t{1}, size_most);
  setup.ghost = settings.take("ghost", std::int64_t{1}, size_most);
  setup.chunks = settings.take("chunks", 1, count_most);
  setup.steps = settings.take("steps", 1, count_most);
  setup.is_periodic = take_flag(settings, "periodic");
  setup.marks = take_flag(settings, "marks");
  setup.cell_ns = settings.take("cell_ns", 0.0, 1e12);
  return make_stencil(setup);
}

[[nodiscard]] ExchangeVariant take_variant(Settings& settings) {
  const std::string text = settings.take_text("variant");
  if (text == "blocking") return ExchangeVariant::blocking;
  if (text == "partial-receive") return ExchangeVariant::partial_receive;
  if (text == "partial-blocks") return ExchangeVariant::partial_blocks;
  if (text == "messages") return ExchangeVariant::messages;
  throw Error(fmt::format(
      "variant={}: valid: blocking, partial-receive, partial-blocks, messages",
      base::text::brief(text)));
}

[[nodiscard]] Made take_exchange(Settings& settings, const int ranks,
                                 const DurationOf& duration_of) {
  ExchangeSetup setup;
  setup.variant = take_variant(settings);
  setup.ranks = ranks;
  setup.n = settings.take("n", std::int64_t{1}, std::int64_t{lines_most});
  setup.chunks = settings.take("chunks", 1, count_most);
  setup.parts = settings.take("parts", 1, count_most);
  return make_exchange(setup, duration_of);
}

[[nodiscard]] Made take_blocks(Settings& settings, const int ranks,
                               const DurationOf& duration_of) {
  BlocksSetup setup;
  setup.ranks = ranks;
  setup.blocks = settings.take("blocks", 1, count_most);
  setup.side = settings.take("side", 1, count_most);
  setup.steps = settings.take("steps", 1, count_most);
  setup.hot = settings.take("hot", 1, count_most);
  return make_blocks(setup, duration_of);
}

[[nodiscard]] Made take_gradients(Settings& settings, const bool multigrid, const int ranks,
                                  const DurationOf& duration_of) {
  GradientsSetup setup;
  setup.multigrid = multigrid;
  setup.ranks = ranks;
  setup.n = settings.take("n", 1, points_most);
  setup.blocks = settings.take("blocks", 1, count_most);
  setup.iterations = settings.take("iterations", 1, count_most);
  return make_gradients(setup, duration_of);
}

[[nodiscard]] Made take_wavefront(Settings& settings, const int ranks,
                                  const DurationOf& duration_of) {
  WavefrontSetup setup;
  setup.ranks = ranks;
  setup.rows = settings.take("rows", std::int64_t{1}, letters_most);
  setup.columns = settings.take("columns", std::int64_t{1}, letters_most);
  setup.outer_rows = settings.take("outer_rows", std::int64_t{1}, letters_most);
  setup.outer_columns = settings.take("outer_columns", std::int64_t{1}, letters_most);
  setup.inner_rows = settings.take("inner_rows", std::int64_t{1}, letters_most);
  setup.inner_columns = settings.take("inner_columns", std::int64_t{1}, letters_most);
  setup.cyclic = take_flag(settings, "cyclic");
  return make_wavefront(setup, duration_of);
}

[[nodiscard]] Made take_program(Settings& settings, const std::string& name, const int ranks) {
  const DurationOf duration_of = [&](const std::string_view kernel) {
    return settings.take(fmt::format("kernel.{}", kernel), Time{0}, kernel_ns_most);
  };
  if (name == "cholesky") return take_cholesky(settings, ranks, duration_of);
  if (name == "stencil1d") return take_stencil(settings, ranks);
  if (name == "exchange") return take_exchange(settings, ranks, duration_of);
  if (name == "stencil2d") return take_blocks(settings, ranks, duration_of);
  if (name == "minife") return take_gradients(settings, false, ranks, duration_of);
  if (name == "hpcg") return take_gradients(settings, true, ranks, duration_of);
  if (name == "wavefront") return take_wavefront(settings, ranks, duration_of);
  throw Error(fmt::format("there is no program {}", base::text::brief(name)));
}

[[nodiscard]] distributed::TreeKind take_tree(Settings& settings) {
  using distributed::TreeKind;
  const std::string text = settings.take_text("tree");
  if (text == "auto") return TreeKind::automatic;
  for (const TreeKind kind :
       {TreeKind::star, TreeKind::binomial, TreeKind::chain, TreeKind::binary}) {
    if (text == distributed::name_of(kind)) return kind;
  }
  throw Error(fmt::format("tree={}: valid: auto, star, binomial, chain, binary",
                          base::text::brief(text)));
}

[[nodiscard]] std::vector<Kernel> take_kernels(Settings& settings) {
  std::vector<Kernel> kernels(settings.take("kernels", std::size_t{0}, std::size_t{65'535}));
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    kernels[i].name = settings.take_text(fmt::format("name.{}", i));
    kernels[i].duration = settings.take(fmt::format("kernel.{}", i), Time{0}, kernel_ns_most);
  }
  return kernels;
}

// A program of the user's: its kernels are numbered, in the order of their names in its file.
[[nodiscard]] Made take_owned(Settings& settings, const ClusterSetup& cluster) {
  OwnedSetup setup;
  setup.path = settings.take_text("file");
  setup.ranks = cluster.ranks;
  setup.per_node = cluster.per_node;
  setup.elsewhere_ns = settings.take("elsewhere_ns", Time{0}, kernel_ns_most);
  setup.combine_ns = settings.take("combine_ns", Time{0}, kernel_ns_most);
  setup.tree = take_tree(settings);
  setup.kernels = take_kernels(settings);
  return make_owned_program(setup);
}

}  // namespace

Simulation take_simulation(Settings& settings, const ClusterSetup& cluster) {
  const std::string name = settings.take_text("program");
  if (name == "broadcast") {
    BroadcastSetup setup;
    setup.bytes = settings.take("bytes", std::int64_t{1}, size_most);
    setup.rounds = settings.take("rounds", 1, count_most);
    setup.tree = take_tree(settings);
    return [=, &cluster] { return simulate_broadcast(setup, cluster); };
  }
  if (name == "pool") {
    PoolSetup setup;
    setup.tree = settings.take_text("tree");
    setup.node_ns = settings.take("node_ns", 0.0, static_cast<double>(kernel_ns_most));
    setup.victims = settings.take("victims", std::uint32_t{0}, std::uint32_t{count_most});
    return [=, &cluster] { return simulate_pool(setup, cluster); };
  }
  if (name == "owners") {
    const std::shared_ptr<Program> program = take_owned(settings, cluster);
    return [program, &cluster] { return simulate(*program, cluster); };
  }
  if (name == "trace") {
    RecordedSetup setup;
    setup.steps = settings.take_text("steps");
    setup.ranks = cluster.ranks;
    setup.creator_ns = cluster.rank.creator_ns;
    setup.speed = settings.take("speed", 1e-6, 1e6);
    setup.times = take_kernels(settings);
    const std::shared_ptr<Program> recorded = make_recorded(setup);
    return [recorded, &cluster] { return simulate(*recorded, cluster); };
  }
  const std::shared_ptr<Program> program = take_program(settings, name, cluster.ranks);
  return [program, &cluster] { return simulate(*program, cluster); };
}

}  // namespace imbrex::simulate
