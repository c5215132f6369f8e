// SPDX-License-Identifier: BSD-3-Clause
// The version without a message in the program; a getrf that fails throws (tiled/owned.hpp).
#include "../owned.hpp"
#include "factor.hpp"

namespace lu {
namespace {

using imbrex::View;

class Insertion {
 public:
  Insertion(const Team& team, TiledMatrix& matrix, const Kernels& kernels,
            const TaskOptions& options)
      : layout_(matrix.layout()),
        kernels_(kernels),
        space_(team.all(), {.name = "lu"}),
        tile_(space_, matrix),
        insert_(options.trim) {}

  // Inserts the tasks in the order of tasks.cpp.
  void insert() {
    const int tiles = layout_.tiles();
    for (int k = 0; k < tiles; ++k) {
      insert_getrf(k);
      for (int i = k + 1; i < tiles; ++i) {
        insert_solve(i, k, k);
        insert_solve(k, i, k);
      }
      for (int j = k + 1; j < tiles; ++j) {
        for (int i = k + 1; i < tiles; ++i) insert_gemm(i, j, k);
      }
    }
  }
  std::int64_t finish(const Team& team) { return finish_inserted(team, space_, bad_minor_); }
  [[nodiscard]] TaskUse use() const { return use_of(space_, layout_); }

 private:
  void insert_getrf(int k) {
    insert_(space_.task("getrf").inout(tile_(k, k)), [this, k](View<double> a) {
      const int info = kernels_.getrf(tile_of(a));
      if (info == 0) return;
      bad_minor_ = layout_.first(k) + info;
      throw BadMinor("a leading minor is zero");
    });
  }

  // Tile (i, j) of the panel of step k.
  void insert_solve(int i, int j, int k) {
    insert_(space_.task("trsm").in(tile_(k, k)).inout(tile_(i, j)),
            [this, lower = i > j](View<const double> diagonal, View<double> a) {
              if (lower) {
                kernels_.solve_upper(tile_of(diagonal), tile_of(a));
              } else {
                kernels_.solve_lower(tile_of(diagonal), tile_of(a));
              }
            });
  }

  void insert_gemm(int i, int j, int k) {
    insert_(space_.task("gemm").in(tile_(i, k), tile_(k, j)).inout(tile_(i, j)),
            [this](View<const double> a, View<const double> b, View<double> c) {
              kernels_.gemm(tile_of(a), tile_of(b), tile_of(c));
            });
  }

  const Layout& layout_;
  const Kernels& kernels_;
  std::int64_t bad_minor_ = 0;  // the one getrf that fails here; read when nothing runs
  imbrex::Space space_;  // waits, at its end, for bodies that use what stands above
  const OwnedTiles tile_;
  const Inserter insert_;
};

}  // namespace

std::int64_t factor_inserted(const Team& team, TiledMatrix& matrix, const Kernels& kernels,
                             const TaskOptions& options, TaskUse& use) {
  Insertion insertion(team, matrix, kernels, options);
  insertion.insert();
  const std::int64_t minor = insertion.finish(team);
  use = insertion.use();
  return minor;
}

}  // namespace lu
