// SPDX-License-Identifier: BSD-3-Clause
#include "timed.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace tiled {

KernelTimes times_here(const Team& team, const TimedOptions& options, KernelTimes times) {
  if (options.slow.rank == team.rank()) {
    for (double& time : times) time *= options.slow.factor;
  }
  return times;
}

void check_slow_rank(const Team& team, const SlowRank& slow) {
  if (slow.rank < team.size()) return;
  throw InputError(fmt::format("--slow {}:{}: there are {} ranks, numbered from 0", slow.rank,
                               slow.factor, team.size()));
}

void print_times(const TimedOptions& options, const KernelTimes& times, const char* const unit) {
  fmt::print("Kernels   sleep, as long as they would compute, {}:\n         ",
             options.kernel_us.empty() ? "measured on rank 0" : "as given");
  for (std::size_t i = 0; i < times.size(); ++i) {
    fmt::print("{} {} {:.0f} us", i == 0 ? "" : ",", options.names[i], 1e6 * times[i]);
  }
  fmt::print(" on {}\n", unit);
  if (options.slow.rank >= 0) {
    fmt::print("          on rank {} they take {} times as long\n", options.slow.rank,
               options.slow.factor);
  }
  fmt::print("          nothing is computed, and no result is checked\n\n");
  std::fflush(stdout);
}

}  // namespace tiled
