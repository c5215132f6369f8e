// SPDX-License-Identifier: BSD-3-Clause
// The version with messages: SUMMA (van de Geijn and Watts, 1997) as tasks. In step k the tiles of
// column k of A go along the rows of the grid, those of row k of B along its columns.
#include <imbrex/imbrex.hpp>

#include <algorithm>

#include "multiply.hpp"

namespace matmul {

using imbrex::at;  // tiles are named by their handles, which are pointers
namespace {

class TaskGraph {
 public:
  TaskGraph(const Team& team, Matrices& matrices, const Kernels& kernels, int lookahead)
      : c_(matrices.c),
        layout_(matrices.c.layout()),
        tiles_(layout_.tiles()),
        kernels_(kernels),
        a_(team, matrices.a,
           {.lookahead = lookahead, .send_priority = 0, .receive_priority = 0,
            .step_of = StepOf::column}),
        b_(team, matrices.b,
           {.lookahead = lookahead, .send_priority = 0, .receive_priority = 0,
            .step_of = StepOf::row,
            .first_tag = static_cast<int>(layout_.position(tiles_, 0))}) {}

  void create() {
    for (int k = 0; k < tiles_; ++k) {
      for (int i = 0; i < tiles_; ++i) {
        a_.pass_on(i, k, along_row(i, k));
        b_.pass_on(k, i, along_column(k, i));
      }
      for (int j = 0; j < tiles_; ++j) {
        for (int i = 0; i < tiles_; ++i) create_gemm(i, j, k);
      }
      for (int i = 0; i < tiles_; ++i) {
        a_.release(i, k, along_row(i, k));
        b_.release(k, i, along_column(k, i));
      }
    }
  }
  [[nodiscard]] std::int64_t bad_minor() const noexcept { return 0; }
  [[nodiscard]] TaskUse use() const noexcept {
    const TaskUse a = a_.use();
    const TaskUse b = b_.use();
    return {.tiles_peak = a.tiles_peak + b.tiles_peak,
            .bytes_sent = a.bytes_sent + b.bytes_sent,
            .bytes_received = a.bytes_received + b.bytes_received,
            .broadcasts = {}};
  }

 private:
  void create_gemm(int i, int j, int k) {
    if (!c_.is_mine(i, j)) return;
    double*& a = a_.operand(i, k);
    double*& b = b_.operand(k, j);
    double*& c = c_.handle(i, j);
    imbrex::task("gemm").in(at(&a), at(&b)).inout(at(&c)).launch([this, &a, &b, &c, i, j, k] {
      kernels_.gemm({a, layout_.extent(i), layout_.extent(k)},
                    {b, layout_.extent(k), layout_.extent(j)},
                    {c, layout_.extent(i), layout_.extent(j)});
    });
  }

  // The ranks other than the owner that read tile (i, k) of A, ascending; and (k, j) of B.
  [[nodiscard]] std::vector<int> along_row(int i, int k) const {
    std::vector<int> ranks;
    for (int j = 0; j < std::min(tiles_, layout_.grid.columns); ++j) {
      ranks.push_back(layout_.owner(i, j));
    }
    std::erase(ranks, layout_.owner(i, k));
    return ranks;
  }
  [[nodiscard]] std::vector<int> along_column(int k, int j) const {
    std::vector<int> ranks;
    for (int i = 0; i < std::min(tiles_, layout_.grid.rows); ++i) {
      ranks.push_back(layout_.owner(i, j));
    }
    std::erase(ranks, layout_.owner(k, j));
    return ranks;
  }

  TiledMatrix& c_;
  const Layout& layout_;
  const int tiles_;
  const Kernels& kernels_;
  Exchange a_;
  Exchange b_;
};

}  // namespace

void multiply_messages(const Team& team, Matrices& matrices, const Kernels& kernels,
                       const TaskOptions& options, TaskUse& use) {
  TaskGraph graph(team, matrices, kernels, options.lookahead);
  (void)run_graph(team, graph, use);  // no kernel can fail
}

}  // namespace matmul
