// SPDX-License-Identifier: BSD-3-Clause
#include "periods.hpp"

#include <mpi.h>

#include <numeric>

#include "balance.hpp"

namespace stencil2d {

Periods::Periods(const tiled::Team& team, const Problem& problem, const int every)
    : team_(team), problem_(problem), every_(every),
      count_(static_cast<std::size_t>((problem.steps + every - 1) / every)),
      took_ns_(count_ * static_cast<std::size_t>(problem.count())) {}

std::vector<std::int64_t> Periods::end(const std::vector<int>& owners) {
  const auto count = static_cast<std::size_t>(problem_.count());
  std::vector<std::int64_t> times(count);
  MPI_Allreduce(took_ns_.data() + periods_.size() * count, times.data(), problem_.count(),
                MPI_INT64_T, MPI_SUM, team_.all());
  const double found = imbalance(owners, times, team_.size());
  const auto sum = static_cast<double>(std::accumulate(times.begin(), times.end(),
                                                       std::int64_t{0}));
  longest_ += found * sum;
  mean_ += sum;
  periods_.push_back({found, found, 0});
  return times;
}

Outcome Periods::outcome(const std::vector<int>& owners, std::int64_t bytes_sent,
                         const bool right) {
  while (periods_.size() < count_) (void)end(owners);
  int all_right = right ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all_right, 1, MPI_INT, MPI_MIN, team_.all());
  MPI_Allreduce(MPI_IN_PLACE, &bytes_sent, 1, MPI_INT64_T, MPI_SUM, team_.all());
  return {0, std::move(periods_), mean_ > 0 ? longest_ / mean_ : 1, bytes_sent, all_right != 0};
}

bool is_right(const tiled::Team& team, const Problem& problem, const std::vector<int>& owners,
              const std::vector<double>& expected,
              const std::function<const double*(int block)>& cells_of) {
  for (int block = 0; !expected.empty() && block < problem.count(); ++block) {
    if (owners[static_cast<std::size_t>(block)] != team.rank()) continue;
    const double* const cells = cells_of(block);
    if (cells == nullptr || !is_part(problem, expected, block, cells)) return false;
  }
  return true;
}

}  // namespace stencil2d
