// SPDX-License-Identifier: BSD-3-Clause
// Conjugate gradients without preconditioner over sub-blocks, in the ways that are compared. An
// iteration has one exchange of the layer around the brick, and two sums over ranks.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "../sparse/halo.hpp"
#include "../sparse/program.hpp"
#include "../tiled/timed.hpp"
#include "assemble.hpp"

namespace minife {

inline const std::vector<std::string> kernel_names{"matvec", "waxpby", "dot"};

using sparse::Variant;

// What one iteration calls on a sub-block.
// Thread safety: any number of tasks, of different sub-blocks.
class Kernels {
 public:
  // `times` of all points of a rank, on one worker; empty: kernels compute. Kernels that sleep
  // leave all vectors as they are.
  Kernels(const sparse::Brick& brick, const System& system, tiled::KernelTimes times);

  [[nodiscard]] bool sleep() const noexcept { return !times_.empty(); }
  // How often a task's body calls each kernel.
  struct Calls {
    int matvec, waxpby, dot;
  };
  // True if it has slept for them.
  [[nodiscard]] bool slept(std::size_t block, const Calls& calls) const noexcept;

  [[nodiscard]] const sparse::Brick& brick() const noexcept { return brick_; }
  [[nodiscard]] const System& system() const noexcept { return system_; }

 private:
  const sparse::Brick& brick_;
  const System& system_;
  const tiled::KernelTimes times_;
};

struct Vectors {
  std::vector<double> x, r, p, ap;  // solution, residual, direction, and A p
};

// Of this rank.
struct Outcome {
  double seconds = 0;      // from a barrier to its end
  double kernel_s = 0;     // in kernels, over all workers
  double in_task_s = 0;    // in tasks and main, over all workers
  double mpi_s = 0;        // blocking: of main in MPI
  int iterations = 0;      // until the residual was as small as it gets; the same on all ranks
  double residual = 0;     // the norm of r; the same on all ranks
  std::int64_t tests = 0;  // of requests, by test_each
};

// Exactly `iterations` of them: those after the end, where the residual is below the precision of
// a double, are carried out and change nothing. Collective over `communicator`. Suspends. All
// variants give the same bits.
[[nodiscard]] Outcome solve(const Kernels& kernels, MPI_Comm communicator, Variant variant,
                            int iterations, Vectors& vectors);

// On `points` points in each dimension, of a rank alone, in proportion for `of` points: seconds of
// each of kernel_names by the calling thread. Suspends.
[[nodiscard]] tiled::KernelTimes measure_kernels(int points, std::int64_t of);

}  // namespace minife
