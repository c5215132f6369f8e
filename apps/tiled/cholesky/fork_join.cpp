// SPDX-License-Identifier: BSD-3-Clause
// The fork-join version: phases, with a barrier of the threads after each, and blocking broadcasts
// by main between them.
#include <imbrex/imbrex.hpp>

#include <vector>

#include "factor.hpp"

namespace cholesky {
namespace {

class ForkJoin {
 public:
  ForkJoin(const Team& team, TiledMatrix& matrix, const Kernels& kernels)
      : team_(team),
        matrix_(matrix),
        kernels_(kernels),
        layout_(matrix.layout()),
        panel_(static_cast<std::size_t>(layout_.tiles()), nullptr),
        received_(static_cast<std::size_t>(layout_.tiles())) {}

  std::int64_t run() {
    for (int k = 0; k < layout_.tiles(); ++k) {
      if (const std::int64_t minor = factor_diagonal(k); minor != 0) return minor;
      broadcast_diagonal(k);
      solve_panel(k);
      broadcast_panel(k);
      update(k);
    }
    return 0;
  }

 private:
  std::int64_t factor_diagonal(int k) {
    std::int64_t minor = 0;
    if (matrix_.is_mine(k, k)) {
      const int info =
          kernels_.potrf({matrix_.handle(k, k), layout_.extent(k), layout_.extent(k)});
      if (info != 0) minor = layout_.first(k) + info;
    }
    MPI_Bcast(&minor, 1, MPI_INT64_T, layout_.owner(k, k), team_.all());
    return minor;
  }

  // Sends the tile to the ranks of its column of the grid, which own the panel.
  void broadcast_diagonal(int k) {
    const bool owner = matrix_.is_mine(k, k);
    if (team_.column() != k % layout_.grid.columns) return;
    panel_[index(k)] = owner ? matrix_.handle(k, k) : buffer(k);
    broadcast(k, k, k % layout_.grid.rows, team_.my_column());
  }

  void solve_panel(int k) {
    if (team_.column() != k % layout_.grid.columns) return;
    imbrex::finish([&] {
      for (int i = k + 1; i < layout_.tiles(); ++i) {
        if (!matrix_.is_mine(i, k)) continue;
        imbrex::task("trsm").launch([this, i, k] {
          kernels_.trsm(panel(k, k), {matrix_.handle(i, k), layout_.extent(i), layout_.extent(k)});
        });
      }
    });
  }

  // Each tile along the row of the grid that owns row i of the matrix; from there, because the
  // matrix is symmetric, along the column of the grid that owns column i.
  void broadcast_panel(int k) {
    const auto [rows, columns] = layout_.grid;
    for (int i = k + 1; i < layout_.tiles(); ++i) {
      const bool in_row = team_.row() == i % rows;
      const bool in_column = team_.column() == i % columns;
      if (!in_row && !in_column) continue;
      panel_[index(i)] = matrix_.is_mine(i, k) ? matrix_.handle(i, k) : buffer(i);
      if (in_row) broadcast(i, k, k % columns, team_.my_row());
      if (in_column) broadcast(i, k, i % rows, team_.my_column());
    }
  }

  void update(int k) {
    imbrex::finish([&] {
      for (int j = k + 1; j < layout_.tiles(); ++j) {
        for (int i = j; i < layout_.tiles(); ++i) {
          if (!matrix_.is_mine(i, j)) continue;
          imbrex::task("update").launch([this, i, j, k] {
            const Tile c{matrix_.handle(i, j), layout_.extent(i), layout_.extent(j)};
            if (i == j) {
              kernels_.syrk(panel(i, k), c);
            } else {
              kernels_.gemm(panel(i, k), panel(j, k), c);
            }
          });
        }
      }
    });
  }

  void broadcast(int i, int k, int root, MPI_Comm communicator) {
    MPI_Bcast(panel_[index(i)], layout_.extent(i) * layout_.extent(k), MPI_DOUBLE, root,
              communicator);
  }

  static std::size_t index(int i) noexcept { return static_cast<std::size_t>(i); }
  ConstTile panel(int i, int k) const noexcept {
    return {panel_[index(i)], layout_.extent(i), layout_.extent(k)};
  }
  double* buffer(int i) {
    Doubles& memory = received_[index(i)];
    if (!memory) {
      memory = allocate_doubles(static_cast<std::size_t>(layout_.tile) * layout_.tile);
    }
    return memory.get();
  }

  const Team& team_;
  TiledMatrix& matrix_;
  const Kernels& kernels_;
  const Layout& layout_;
  std::vector<double*> panel_;     // tile i of the present panel, where this rank uses it
  std::vector<Doubles> received_;  // for those that other ranks own
};

}  // namespace

std::int64_t factor_fork_join(const Team& team, TiledMatrix& matrix, const Kernels& kernels) {
  return ForkJoin(team, matrix, kernels).run();
}

}  // namespace cholesky
