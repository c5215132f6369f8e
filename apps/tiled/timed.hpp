// SPDX-License-Identifier: BSD-3-Clause
// Kernels that sleep instead of computing: a sleeping kernel takes the time of the computation and
// no processor, so that ranks that share processors do not hide each other's idle time. The
// worker's thread sleeps as it would compute: it runs no other task meanwhile.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "kernels.hpp"
#include "sleep.hpp"
#include "team.hpp"

namespace tiled {

// Seconds on whole tiles, in the order in which a program names its kernels.
using KernelTimes = std::vector<double>;

// The rank that is slower than the others, by the factor; -1: none.
struct SlowRank {
  int rank = -1;
  double factor = 1;
};

// The way in which kernels run, by the command line.
struct TimedOptions {
  std::vector<std::string> names;    // of the program's kernels
  bool timed = false;
  std::vector<double> kernel_us;     // empty: measured
  std::string slow_text;             // of the command line
  SlowRank slow;
};

// The times for which a program's kernels sleep.
// Thread safety: any number of tasks may call at once.
class TimedKernels {
 public:
  TimedKernels() = default;  // kernels compute
  // `times` on tiles of order `tile`, less on smaller ones in proportion to the work.
  TimedKernels(KernelTimes times, int tile) : times_(std::move(times)), tile_(tile) {}

  [[nodiscard]] bool sleep() const noexcept { return !times_.empty(); }

 protected:
  // False if kernels compute. The work is the product of the three.
  bool slept(std::size_t kernel, double m, double n, double k) const noexcept {
    if (!sleep()) return false;
    const double whole = static_cast<double>(tile_) * tile_ * tile_;
    sleep_precisely(times_[kernel] * (m * n * k / whole));
    return true;
  }

 private:
  KernelTimes times_;
  int tile_ = 0;
};

// Returns the times that kernels sleep on all ranks except the slow one: as given, or as `measure`,
// called on rank 0, says; empty if they compute. Collective. Throws InputError for a slow rank that
// is not there.
template <class Measure>
[[nodiscard]] KernelTimes find_times(const Team& team, const TimedOptions& options,
                                     Measure&& measure);
// Returns the times that the kernels of this rank sleep.
[[nodiscard]] KernelTimes times_here(const Team& team, const TimedOptions& options,
                                     KernelTimes times);

// Says to people how long the kernels sleep on a `unit`.
void print_times(const TimedOptions& options, const KernelTimes& times, const char* unit);

// Seconds of the fastest of several calls; `prepare` is not part of them.
template <class Prepare, class Run>
[[nodiscard]] double least_time(Prepare&& prepare, Run&& run) {
  constexpr int calls = 7;  // the first touches memory
  double least = HUGE_VAL;
  for (int call = 0; call < calls; ++call) {
    prepare();
    const auto start = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    least = std::min(least, took.count());
  }
  return least;
}

void check_slow_rank(const Team& team, const SlowRank& slow);

template <class Measure>
KernelTimes find_times(const Team& team, const TimedOptions& options, Measure&& measure) {
  if (!options.timed) return {};
  check_slow_rank(team, options.slow);
  KernelTimes times(options.names.size());
  for (std::size_t i = 0; i < options.kernel_us.size(); ++i) times[i] = 1e-6 * options.kernel_us[i];
  if (!options.kernel_us.empty()) return times;
  if (team.rank() == 0) times = measure();
  MPI_Bcast(times.data(), static_cast<int>(times.size()), MPI_DOUBLE, 0, team.all());
  return times;
}

}  // namespace tiled
