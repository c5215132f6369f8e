// SPDX-License-Identifier: BSD-3-Clause
// The version without a message in the program: every rank inserts the same sequence of tasks,
// which name the tiles that they read and write (tiled/owned.hpp, also for what becomes of a potrf
// that fails).
#include "../owned.hpp"
#include "factor.hpp"

namespace cholesky {
namespace {

using imbrex::View;

// The visitor of in_program_order() that inserts a task for each operation.
class Insertion {
 public:
  Insertion(const Team& team, TiledMatrix& matrix, const Kernels& kernels,
            const TaskOptions& options)
      : layout_(matrix.layout()),
        kernels_(kernels),
        space_(team.all(), {.tasks_ahead = options.window, .name = "cholesky"}),
        tile_(space_, matrix),
        insert_(options.trim),
        panel_(options.priorities == Priorities::panel ? 1 : 0) {}

  std::int64_t finish(const Team& team) { return finish_inserted(team, space_, bad_minor_); }
  [[nodiscard]] TaskUse use() const { return use_of(space_, layout_); }

  void potrf(int k) {
    insert_(space_.task("potrf").inout(tile_(k, k)).priority(panel_), [this, k](View<double> a) {
      const int info = kernels_.potrf(tile_of(a));
      if (info == 0) return;
      bad_minor_ = layout_.first(k) + info;
      throw BadMinor("a leading minor is not positive");
    });
  }

  void trsm(int i, int k) {
    insert_(space_.task("trsm").in(tile_(k, k)).inout(tile_(i, k)).priority(panel_),
            [this](View<const double> diagonal, View<double> a) {
              kernels_.trsm(tile_of(diagonal), tile_of(a));
            });
  }

  void syrk(int j, int k) {
    insert_(space_.task("syrk").in(tile_(j, k)).inout(tile_(j, j)),
            [this](View<const double> a, View<double> c) {
              kernels_.syrk(tile_of(a), tile_of(c));
            });
  }

  void gemm(int i, int j, int k) {
    insert_(space_.task("gemm").in(tile_(i, k), tile_(j, k)).inout(tile_(i, j)),
            [this](View<const double> a, View<const double> b, View<double> c) {
              kernels_.gemm(tile_of(a), tile_of(b), tile_of(c));
            });
  }

  void factored(int, int) noexcept {}
  void step_done(int) noexcept {}

 private:
  const Layout& layout_;
  const Kernels& kernels_;
  std::int64_t bad_minor_ = 0;  // the one potrf that fails here; read when nothing runs
  imbrex::Space space_;  // waits, at its end, for bodies that use what stands above
  const OwnedTiles tile_;
  const Inserter insert_;
  const int panel_;  // priority
};

}  // namespace

std::int64_t factor_inserted(const Team& team, TiledMatrix& matrix, const Kernels& kernels,
                             const TaskOptions& options, TaskUse& use) {
  Insertion insertion(team, matrix, kernels, options);
  in_program_order(matrix.layout().tiles(), insertion);
  const std::int64_t minor = insertion.finish(team);
  use = insertion.use();
  return minor;
}

}  // namespace cholesky
