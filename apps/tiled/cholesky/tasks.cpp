// SPDX-License-Identifier: BSD-3-Clause
// The task version. Every rank runs the same sequential loop over all operations and creates those
// that concern it: as in Pereira et al. 2021, one task for each potrf, trsm, syrk and gemm, and a
// send task and a receive task for each tile and each rank that reads it (tiled/exchange.hpp, which
// also describes a potrf that fails). The accesses alone decide when each task runs.
#include <imbrex/imbrex.hpp>

#include "factor.hpp"

namespace cholesky {

using imbrex::at;  // tiles are named by their handles, which are pointers
namespace {

class TaskGraph {
 public:
  TaskGraph(const Team& team, TiledMatrix& matrix, const Kernels& kernels,
            const TaskOptions& options)
      : matrix_(matrix),
        layout_(matrix.layout()),
        kernels_(kernels),
        panel_(options.priorities == Priorities::panel ? 1 : 0),
        exchange_(team, matrix,
                  {.lookahead = options.lookahead,
                   .send_priority = options.priorities == Priorities::none ? 0 : 1,
                   .receive_priority = panel_}) {}

  void create() { in_program_order(layout_.tiles(), *this); }
  [[nodiscard]] std::int64_t bad_minor() const noexcept { return bad_minor_; }
  [[nodiscard]] TaskUse use() const noexcept { return exchange_.use(); }

  // Functions that in_program_order() calls: each makes the tasks of this rank.
  void potrf(int k) {
    if (!matrix_.is_mine(k, k)) return;
    double*& a = matrix_.handle(k, k);
    imbrex::task("potrf").inout(at(&a)).priority(panel_).launch([this, &a, k] {
      if (has_failed()) return;
      const int info = kernels_.potrf(mutable_tile(a, k, k));
      if (info == 0) return;
      bad_minor_ = layout_.first(k) + info;
      exchange_.fail();
    });
  }

  void trsm(int i, int k) {
    if (!matrix_.is_mine(i, k)) return;
    double*& diagonal = exchange_.operand(k, k);
    double*& a = matrix_.handle(i, k);
    imbrex::task("trsm").in(at(&diagonal)).inout(at(&a)).priority(panel_).launch(
        [this, &diagonal, &a, i, k] {
          if (!has_failed()) kernels_.trsm(tile(diagonal, k, k), mutable_tile(a, i, k));
        });
  }

  void syrk(int j, int k) {
    if (!matrix_.is_mine(j, j)) return;
    double*& a = exchange_.operand(j, k);
    double*& c = matrix_.handle(j, j);
    imbrex::task("syrk").in(at(&a)).inout(at(&c)).launch([this, &a, &c, j, k] {
      if (!has_failed()) kernels_.syrk(tile(a, j, k), mutable_tile(c, j, j));
    });
  }

  void gemm(int i, int j, int k) {
    if (!matrix_.is_mine(i, j)) return;
    double*& a = exchange_.operand(i, k);
    double*& b = exchange_.operand(j, k);
    double*& c = matrix_.handle(i, j);
    imbrex::task("gemm").in(at(&a), at(&b)).inout(at(&c)).launch([this, &a, &b, &c, i, j, k] {
      if (!has_failed()) kernels_.gemm(tile(a, i, k), tile(b, j, k), mutable_tile(c, i, j));
    });
  }

  void factored(int i, int k) { exchange_.pass_on(i, k, readers(layout_, i, k)); }

  void step_done(int k) {
    for (int i = k; i < layout_.tiles(); ++i) exchange_.release(i, k, readers(layout_, i, k));
  }

 private:
  [[nodiscard]] bool has_failed() const noexcept { return exchange_.has_failed(); }
  [[nodiscard]] ConstTile tile(const double* data, int i, int j) const noexcept {
    return {data, layout_.extent(i), layout_.extent(j)};
  }
  [[nodiscard]] Tile mutable_tile(double* data, int i, int j) const noexcept {
    return {data, layout_.extent(i), layout_.extent(j)};
  }

  TiledMatrix& matrix_;
  const Layout& layout_;
  const Kernels& kernels_;
  const int panel_;  // priority
  Exchange exchange_;
  std::int64_t bad_minor_ = 0;  // the one potrf that fails here; read when nothing runs
};

}  // namespace

std::int64_t factor_tasks(const Team& team, TiledMatrix& matrix, const Kernels& kernels,
                          const TaskOptions& options, TaskUse& use) {
  TaskGraph graph(team, matrix, kernels, options);
  return run_graph(team, graph, use);
}

}  // namespace cholesky
