// SPDX-License-Identifier: BSD-3-Clause
#include "order.hpp"

#include <algorithm>

namespace cholesky {

std::vector<int> readers(const Layout& layout, int i, int k) {
  std::vector<int> ranks;
  const auto [rows, columns] = layout.grid;
  const int last = layout.tiles() - 1;
  if (i == k) {
    for (int m = k + 1; m <= std::min(last, k + rows); ++m) ranks.push_back(layout.owner(m, k));
  } else {
    for (int j = k + 1; j <= std::min(i, k + columns); ++j) ranks.push_back(layout.owner(i, j));
    for (int m = i; m <= std::min(last, i + rows - 1); ++m) ranks.push_back(layout.owner(m, i));
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::erase(ranks, layout.owner(i, k));
  return ranks;
}

TaskCount count_tasks(const Layout& layout) {
  struct Counter {
    const Layout& layout;
    TaskCount count{};
    void potrf(int) noexcept { ++count.potrf; }
    void trsm(int, int) noexcept { ++count.trsm; }
    void syrk(int, int) noexcept { ++count.syrk; }
    void gemm(int, int, int) noexcept { ++count.gemm; }
    void factored(int i, int k) {
      const auto messages = static_cast<std::int64_t>(readers(layout, i, k).size());
      count.send += messages;
      count.receive += messages;
    }
    void step_done(int) noexcept {}
  };
  Counter counter{layout};
  in_program_order(layout.tiles(), counter);
  return counter.count;
}

}  // namespace cholesky
