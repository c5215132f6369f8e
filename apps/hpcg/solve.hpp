// SPDX-License-Identifier: BSD-3-Clause
// Conjugate gradients, preconditioned by a V-cycle of multigrid, over sub-blocks, in the ways that
// are compared (Castillo et al., ICS 2019; the reference benchmark HPCG). An iteration has 11
// exchanges - two smoothings and one residual on each of three levels, one smoothing on the
// coarsest, and A p - and three sums over ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../sparse/runner.hpp"
#include "algorithm.hpp"

namespace hpcg {

using sparse::Outcome;  // its residual: relative to the right side
using sparse::Variant;

// "transfer": between levels, and setting to 0.
inline const std::vector<std::string> kernel_names{"smooth", "multiply", "add", "dot", "transfer"};

// A rank's part of the problem, and the communicators of its messages: one for each level and for
// each sum, since tasks may have messages of several levels and sums in flight at once.
class Problem {
 public:
  // `times` of all points of a rank's finest level, on one worker, in proportion on the coarser
  // ones; empty: kernels compute. Kernels that sleep leave all vectors as they are. Collective.
  // REQUIRES: shape.points is a multiple of 8 times shape.ranks.
  Problem(const sparse::BrickShape& shape, MPI_Comm communicator, tiled::KernelTimes times);
  ~Problem();  // collective; before MPI_Finalize
  Problem(const Problem&) = delete;
  Problem& operator=(const Problem&) = delete;

  [[nodiscard]] const std::vector<std::unique_ptr<Level>>& levels() const noexcept {
    return levels_;
  }
  [[nodiscard]] Level& finest() noexcept { return *levels_.front(); }
  [[nodiscard]] const Level& finest() const noexcept { return *levels_.front(); }
  [[nodiscard]] const tiled::KernelTimes& times() const noexcept { return times_; }
  [[nodiscard]] bool sleep() const noexcept { return !times_.empty(); }
  [[nodiscard]] MPI_Comm of_level(std::size_t level) const { return communicators_[level]; }
  [[nodiscard]] sparse::Network network() const;

 private:
  const tiled::KernelTimes times_;
  const std::vector<std::unique_ptr<Level>> levels_;
  std::vector<MPI_Comm> communicators_;  // of the levels, then of the sums
};

struct Limits {
  int iterations = 0;
  double tolerance = 0;  // of the residual, relative to the right side's; 0: none
  bool preconditioned = true;
};

// Solves, with 0 as the first guess; all variants give the same bits. Without a tolerance the tasks
// of all iterations exist at once; with a tolerance the iterations come one after the other. In
// Variant::iterate they overlap without a tolerance, and each waits for the test of the one before.
// Thread safety: one call at a time, on all ranks. The calls suspend.
class Solver {
 public:
  Solver(const Problem& problem, Variant variant);

  [[nodiscard]] Outcome solve(const std::vector<double>& right_side, const Limits& limits,
                              std::vector<double>& solution);
  // y = A x.
  void multiply(const std::vector<double>& x, std::vector<double>& y);
  // z = M r, the V-cycle.
  void precondition(const std::vector<double>& r, std::vector<double>& z);
  // Over the owned points of all ranks.
  [[nodiscard]] double dot(const std::vector<double>& a, const std::vector<double>& b);

 private:
  const MPI_Comm communicator_;
  sparse::Network network_;
  const std::unique_ptr<sparse::MeasuredRunner> runner_;
  Algorithm algorithm_;
};

// Bytes that a rank sends in an iteration.
[[nodiscard]] std::int64_t bytes_sent(const Problem& problem);
// Operations of the reference's count: of all ranks, in so many preconditioned iterations.
[[nodiscard]] double operations_of(const sparse::Point& points, int iterations) noexcept;

// On a rank alone with `points` points in each dimension, in proportion for `of` points: seconds of
// each of kernel_names by the calling thread. REQUIRES: points is a multiple of 8.
[[nodiscard]] tiled::KernelTimes measure_kernels(int points, std::int64_t of);

}  // namespace hpcg
