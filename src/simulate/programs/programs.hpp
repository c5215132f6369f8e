// SPDX-License-Identifier: BSD-3-Clause
// The generators: programs whose tasks and messages are known without running them.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "imbrex/error.hpp"
#include "simulate/engine/program.hpp"

namespace imbrex::simulate {

// The duration of a kernel, in nanoseconds, by its name.
using DurationOf = std::function<Time(std::string_view kernel)>;

// Throws Error if a program has more messages between two ranks than there are tags.
inline void check_messages(const double most) {
  constexpr double tags = 2'147'483'647;
  if (most <= tags) return;
  throw Error(fmt::format("imbrex simulate: the program has up to {:.3g} messages between two "
                          "ranks, and there are {:.0f} tags: reduce its sizes", most, tags));
}

// Adds a task to a batch, in the words of imbrex::TaskBuilder. A datum is named by the address of a
// char, or by a number as for Batch::access().
class Builder {
 public:
  Builder(Batch& batch, const TaskPlan& plan) : batch_(batch), plan_(batch.add(plan)) {}
  Builder& priority(const int level) {
    plan_.priority = level;
    return *this;
  }
  template <class Datum>
  Builder& in(const Datum& datum) { return access(datum, detail::AccessKind::in); }
  template <class Datum>
  Builder& out(const Datum& datum) { return access(datum, detail::AccessKind::out); }
  template <class Datum>
  Builder& inout(const Datum& datum) { return access(datum, detail::AccessKind::inout); }

 private:
  Builder& access(const char& name, const detail::AccessKind kind) {
    batch_.access({&name, kind});
    return *this;
  }
  Builder& access(const std::uint64_t datum, const detail::AccessKind kind) {
    batch_.access(datum, kind);
    return *this;
  }

  Batch& batch_;
  TaskPlan& plan_;
};

struct CholeskySetup {
  std::int64_t n = 0;
  int tile = 1;
  int rows = 1;         // of the grid of ranks
  int columns = 1;
  int lookahead = 0;    // steps whose received tiles are in memory at once; 0: all
  bool marks = false;   // sends have a priority, as `tiled cholesky --priorities sends`
};
// As apps/tiled/cholesky/tasks.cpp. Kernels: potrf, trsm, syrk, gemm.
[[nodiscard]] std::unique_ptr<Program> make_cholesky(const CholeskySetup& setup,
                                                     const DurationOf& duration_of);

struct StencilSetup {
  int ranks = 1;
  std::int64_t size = 0;     // cells of all ranks
  std::int64_t ghost = 1;    // cells that a rank gets from each neighbour
  int chunks = 1;            // of the cells between the two borders
  int steps = 1;
  bool is_periodic = true;
  bool marks = false;        // as for Cholesky
  double cell_ns = 0;        // to compute one
};
// As apps/stencil1d/tasks.cpp, with one finish() around all steps. Throws Error if a rank has fewer
// than 3 * ghost cells.
[[nodiscard]] std::unique_ptr<Program> make_stencil(const StencilSetup& setup);

enum class ExchangeVariant : std::uint8_t {
  blocking,         // all lines, then the exchange, then all lines
  partial_receive,  // a group of lines is computed when its points are here
  partial_blocks,   // the block of a rank is computed when it is here
  messages          // chunks leave when they are computed; groups as under partial_receive
};
struct ExchangeSetup {
  ExchangeVariant variant = ExchangeVariant::messages;
  int ranks = 1;
  std::int64_t n = 1;   // lines of the field, of n points each
  int chunks = 16;      // of a rank's lines before the exchange
  int parts = 16;       // and after it
};
// As the two-dimensional transform of apps/fft with this `--variant`. Kernel: line. Throws Error if
// n is not a multiple of the ranks.
[[nodiscard]] std::unique_ptr<Program> make_exchange(const ExchangeSetup& setup,
                                                     const DurationOf& duration_of);

struct BlocksSetup {
  int ranks = 1;
  int blocks = 16;      // of a row, and of a column
  int side = 64;        // cells of a block's row
  int steps = 100;
  int hot = 8;          // a block of the hot spot takes so many times as long
};
// As apps/stencil2d with blocks that do not move. Kernel: block, outside of the hot spot.
[[nodiscard]] std::unique_ptr<Program> make_blocks(const BlocksSetup& setup,
                                                   const DurationOf& duration_of);

struct GradientsSetup {
  bool multigrid = false;  // as apps/hpcg; else as apps/minife
  int ranks = 1;
  int n = 1;               // of a rank, in each dimension: elements (minife), points (hpcg)
  int blocks = 1;          // sub-blocks of a rank
  int iterations = 1;
};
// Kernels: multiply, add, dot (minife); smooth, multiply, add, dot, fill (hpcg); each on all points
// of a rank, by one worker. Throws Error if hpcg's n is not a multiple of 8.
[[nodiscard]] std::unique_ptr<Program> make_gradients(const GradientsSetup& setup,
                                                      const DurationOf& duration_of);

struct WavefrontSetup {
  int ranks = 1;
  std::int64_t rows = 1, columns = 1;
  std::int64_t outer_rows = 1, outer_columns = 1;  // of an outer tile
  std::int64_t inner_rows = 1, inner_columns = 1;  // of a task's tile
  bool cyclic = false;                             // outer tiles; else in blocks of a diagonal
};
// As apps/smith_waterman with `--variant imbrex`. Kernel: tile, of a whole inner tile.
[[nodiscard]] std::unique_ptr<Program> make_wavefront(const WavefrontSetup& setup,
                                                      const DurationOf& duration_of);

}  // namespace imbrex::simulate
