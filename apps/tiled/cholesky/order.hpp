// SPDX-License-Identifier: BSD-3-Clause
// The operations of the factorisation in program order, and which ranks read a tile of the factor.
// Knows nothing of tasks; of MPI only the numbers of ranks. Also for `imbrex simulate`.
#pragma once

#include <cstdint>
#include <vector>

#include "../layout.hpp"

namespace cholesky {

using namespace tiled;

// The ranks other than its owner whose updates read tile (i, k) of the factor: for i == k the
// owners of the panel below it; else the owners of the tiles in row i and column i right of k.
[[nodiscard]] std::vector<int> readers(const Layout& layout, int i, int k);

// Calls `visit` for each operation of step k in program order: see in_program_order().
template <class Visit>
void in_step(const int tiles, const int k, Visit& visit) {
  visit.potrf(k);
  visit.factored(k, k);
  for (int i = k + 1; i < tiles; ++i) {
    visit.trsm(i, k);
    visit.factored(i, k);
  }
  for (int j = k + 1; j < tiles; ++j) {
    visit.syrk(j, k);
    for (int i = j + 1; i < tiles; ++i) visit.gemm(i, j, k);
  }
  visit.step_done(k);
}

// Calls `visit` for each operation of the factorisation in program order: potrf(k), trsm(i, k),
// syrk(j, k), gemm(i, j, k); factored(i, k) once a tile of the factor is there, for its messages;
// and step_done(k). Column by column: what the next panel needs comes, and in program order runs,
// first.
template <class Visit>
void in_program_order(const int tiles, Visit& visit) {
  for (int k = 0; k < tiles; ++k) in_step(tiles, k, visit);
}

// The number of tasks of each kind in the task version, over all ranks.
struct TaskCount {
  std::int64_t potrf = 0;
  std::int64_t trsm = 0;
  std::int64_t syrk = 0;
  std::int64_t gemm = 0;
  std::int64_t send = 0;
  std::int64_t receive = 0;
  // Pereira et al. 2021 add up these sums in Tables 2 and 4.
  [[nodiscard]] std::int64_t computation() const noexcept { return potrf + trsm + syrk + gemm; }
  [[nodiscard]] std::int64_t communication() const noexcept { return send + receive; }
};
// Counts by a walk through the operations. The time is at least tiles^2 times the number of readers
// of a tile.
[[nodiscard]] TaskCount count_tasks(const Layout& layout);

}  // namespace cholesky
