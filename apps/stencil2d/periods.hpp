// SPDX-License-Identifier: BSD-3-Clause
// The time that the tasks of each block take, by periods of steps, and what follows for the balance
// of the ranks. Knows no tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "run.hpp"

namespace stencil2d {

class Periods {
 public:
  Periods(const tiled::Team& team, const Problem& problem, int every);

  // Thread safety: the tasks of one block call this one after the other.
  void add(const int block, const int step, const std::int64_t ns) noexcept {
    took_ns_[static_cast<std::size_t>(step / every_ * problem_.count() + block)] += ns;
  }
  // Ends the next period, in which blocks were on `owners`. Returns the time of each block, on
  // whichever rank it was. Collective.
  std::vector<std::int64_t> end(const std::vector<int>& owners);
  [[nodiscard]] Period& last() noexcept { return periods_.back(); }

  // Ends the periods that are left. The outcome lacks its seconds. `bytes_sent` and `right` are
  // those of this rank. Collective.
  [[nodiscard]] Outcome outcome(const std::vector<int>& owners, std::int64_t bytes_sent,
                                bool right);

 private:
  const tiled::Team& team_;
  const Problem& problem_;
  const int every_;
  const std::size_t count_;             // of periods
  std::vector<std::int64_t> took_ns_;   // indexed by period and block
  std::vector<Period> periods_;
  double longest_ = 0;  // of ranks, of all periods, times the number of ranks
  double mean_ = 0;
};

// True if each block of this rank is as in `expected`, or this is empty. cells_of(block) is null
// where the block is missing.
[[nodiscard]] bool is_right(const tiled::Team& team, const Problem& problem,
                            const std::vector<int>& owners, const std::vector<double>& expected,
                            const std::function<const double*(int block)>& cells_of);

}  // namespace stencil2d
