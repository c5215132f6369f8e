// SPDX-License-Identifier: BSD-3-Clause
// The factorisation. Messages, and what becomes of a getrf that fails: tiled/exchange.hpp.
#include <imbrex/imbrex.hpp>

#include <algorithm>

#include "factor.hpp"

namespace lu {

using imbrex::at;  // tiles are named by their handles, which are pointers
namespace {

class TaskGraph {
 public:
  TaskGraph(const Team& team, TiledMatrix& matrix, const Kernels& kernels,
            const TaskOptions& options)
      : matrix_(matrix),
        layout_(matrix.layout()),
        tiles_(layout_.tiles()),
        kernels_(kernels),
        exchange_(team, matrix,
                  {.lookahead = options.lookahead,
                   .send_priority = options.priorities == Priorities::sends ? 1 : 0,
                   .receive_priority = 0}) {}

  // Creates the tasks in program order; the tiles of the next panel come first.
  void create() {
    for (int k = 0; k < tiles_; ++k) {
      create_getrf(k);
      pass_on(k, k);
      for (int i = k + 1; i < tiles_; ++i) {
        create_solve(i, k);
        pass_on(i, k);
        create_solve(k, i);
        pass_on(k, i);
      }
      for (int j = k + 1; j < tiles_; ++j) {
        for (int i = k + 1; i < tiles_; ++i) create_gemm(i, j, k);
      }
      for (int i = k; i < tiles_; ++i) {
        exchange_.release(i, k, readers(i, k));
        if (i != k) exchange_.release(k, i, readers(k, i));
      }
    }
  }
  [[nodiscard]] std::int64_t bad_minor() const noexcept { return bad_minor_; }
  [[nodiscard]] TaskUse use() const noexcept { return exchange_.use(); }

 private:
  void create_getrf(int k) {
    if (!matrix_.is_mine(k, k)) return;
    double*& a = matrix_.handle(k, k);
    imbrex::task("getrf").inout(at(&a)).launch([this, &a, k] {
      if (exchange_.has_failed()) return;
      const int info = kernels_.getrf(target(a, k, k));
      if (info == 0) return;
      bad_minor_ = layout_.first(k) + info;
      exchange_.fail();
    });
  }

  // Tile (i, j) of the panel of step min(i, j).
  void create_solve(int i, int j) {
    if (!matrix_.is_mine(i, j)) return;
    const int k = std::min(i, j);
    double*& diagonal = exchange_.operand(k, k);
    double*& a = matrix_.handle(i, j);
    imbrex::task("trsm").in(at(&diagonal)).inout(at(&a)).launch([this, &diagonal, &a, i, j, k] {
      if (exchange_.has_failed()) return;
      if (i > j) {
        kernels_.solve_upper(tile(diagonal, k, k), target(a, i, j));
      } else {
        kernels_.solve_lower(tile(diagonal, k, k), target(a, i, j));
      }
    });
  }

  void create_gemm(int i, int j, int k) {
    if (!matrix_.is_mine(i, j)) return;
    double*& a = exchange_.operand(i, k);
    double*& b = exchange_.operand(k, j);
    double*& c = matrix_.handle(i, j);
    imbrex::task("gemm").in(at(&a), at(&b)).inout(at(&c)).launch([this, &a, &b, &c, i, j, k] {
      if (!exchange_.has_failed()) kernels_.gemm(tile(a, i, k), tile(b, k, j), target(c, i, j));
    });
  }

  void pass_on(int i, int j) { exchange_.pass_on(i, j, readers(i, j)); }

  // A tile of L is read along its row, one of U along its column, a diagonal one along both.
  [[nodiscard]] std::vector<int> readers(int i, int j) const {
    std::vector<int> ranks;
    const auto [rows, columns] = layout_.grid;
    const int k = std::min(i, j);
    if (i >= j) {
      for (int m = k + 1; m < std::min(tiles_, k + 1 + columns); ++m) {
        ranks.push_back(layout_.owner(i, m));
      }
    }
    if (j >= i) {
      for (int m = k + 1; m < std::min(tiles_, k + 1 + rows); ++m) {
        ranks.push_back(layout_.owner(m, j));
      }
    }
    std::sort(ranks.begin(), ranks.end());
    ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    std::erase(ranks, layout_.owner(i, j));
    return ranks;
  }

  [[nodiscard]] ConstTile tile(const double* data, int i, int j) const noexcept {
    return {data, layout_.extent(i), layout_.extent(j)};
  }
  [[nodiscard]] Tile target(double* data, int i, int j) const noexcept {
    return {data, layout_.extent(i), layout_.extent(j)};
  }

  TiledMatrix& matrix_;
  const Layout& layout_;
  const int tiles_;
  const Kernels& kernels_;
  Exchange exchange_;
  std::int64_t bad_minor_ = 0;  // the one getrf that fails here; read when nothing runs
};

}  // namespace

std::int64_t factor(const Team& team, TiledMatrix& matrix, const Kernels& kernels,
                    const TaskOptions& options, TaskUse& use) {
  TaskGraph graph(team, matrix, kernels, options);
  return run_graph(team, graph, use);
}

KernelTimes measure_kernels(const int order) {
  const auto rows = static_cast<std::size_t>(order);
  std::vector<double> diagonal(rows * rows, 1e-3);
  for (std::size_t i = 0; i < rows; ++i) diagonal[i * rows + i] = static_cast<double>(order);
  const ConstTile a{diagonal.data(), order, order};
  std::vector<double> result;
  const auto fresh = [&] { result = diagonal; };
  const auto target = [&] { return Tile{result.data(), order, order}; };
  return {least_time(fresh, [&] { (void)getrf(target()); }),
          least_time(fresh, [&] { solve_upper(a, target()); }),
          least_time(fresh, [&] { subtract_product(a, a, target()); })};
}

}  // namespace lu
