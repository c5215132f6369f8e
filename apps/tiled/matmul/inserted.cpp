// SPDX-License-Identifier: BSD-3-Clause
// The version without a message in the program. In one slice, a task that multiplies runs on the
// owner of its tile of C; in several, the inner index is dealt to as many groups of ranks, and each
// group adds to all of C by a reduction.
#include "../owned.hpp"
#include "multiply.hpp"

namespace matmul {
namespace {

using imbrex::View;

class Insertion {
 public:
  Insertion(const Team& team, Matrices& matrices, const Kernels& kernels,
            const TaskOptions& options)
      : layout_(matrices.c.layout()),
        kernels_(kernels),
        slices_(options.slices),
        group_(team.size() / options.slices),
        group_grid_(nearly_square(group_)),
        space_(team.all(), {.name = "matmul"}),
        a_(space_, matrices.a),
        b_(space_, matrices.b),
        c_(space_, matrices.c),
        insert_(options.trim) {}

  void insert() {
    const int tiles = layout_.tiles();
    for (int k = 0; k < tiles; ++k) {
      for (int j = 0; j < tiles; ++j) {
        for (int i = 0; i < tiles; ++i) insert_gemm(i, j, k);
      }
    }
    // flush() puts the sums where the program looks for them.
    if (slices_ > 1) space_.flush();
  }
  void finish() { space_.finish(); }
  [[nodiscard]] TaskUse use() const { return use_of(space_, layout_); }

 private:
  void insert_gemm(int i, int j, int k) {
    const auto gemm = [this](View<const double> a, View<const double> b, View<double> c) {
      kernels_.gemm(tile_of(a), tile_of(b), tile_of(c));
    };
    if (slices_ == 1) {
      insert_(space_.task("gemm").in(a_(i, k), b_(k, j)).inout(c_(i, j)), gemm);
    } else {
      const int rank = k % slices_ * group_ + i % group_grid_.rows * group_grid_.columns +
                       j % group_grid_.columns;
      auto& c = c_(i, j);
      insert_(space_.task("gemm").in(a_(i, k), b_(k, j)).reduce(c, imbrex::op::sum).on(rank),
              gemm);
    }
  }

  const Layout& layout_;
  const Kernels& kernels_;
  const int slices_;
  const int group_;  // ranks
  const Grid group_grid_;
  imbrex::Space space_;  // waits, at its end, for bodies that use what stands above
  const OwnedTiles a_, b_, c_;
  const Inserter insert_;
};

}  // namespace

void multiply_inserted(const Team& team, Matrices& matrices, const Kernels& kernels,
                       const TaskOptions& options, TaskUse& use) {
  Insertion insertion(team, matrices, kernels, options);
  insertion.insert();
  insertion.finish();
  use = insertion.use();
}

}  // namespace matmul
