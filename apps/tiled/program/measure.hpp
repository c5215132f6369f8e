// SPDX-License-Identifier: BSD-3-Clause
// One timed run between two measurements of the DGEMM rate.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "../activity.hpp"
#include "algorithm.hpp"

namespace tiled {

struct Run {
  Variant variant;
  std::int64_t bad_minor;  // if not 0, the rest says nothing
  double seconds;          // from a barrier to the last rank's end
  double gflops;           // Gflop/s
  // Kernels that sleep make no result and have no rate.
  double rate;  // Gflop/s of DGEMM on all workers of all ranks: before and after, mean; or 0
  Activity activity;
  // The next three are known for tasks only; 0 for fork-join.
  double received_peak;    // received tiles in memory at once, the rank with most
  double port_bytes;       // sent or received, whichever is more, by the rank with most
  Broadcasts broadcasts;   // of inserted tasks, over all ranks
  std::optional<Residual> residual;
  Figures figures;  // of what the result was used for

  [[nodiscard]] double share() const noexcept { return rate > 0 ? gflops / rate : 0; }
};

// Collective calls of main.
class Stopwatch {
 public:
  Stopwatch(const Team& team, const Options& options, Algorithm& algorithm);

  [[nodiscard]] Run run(Variant variant);

 private:
  [[nodiscard]] bool sleeps() const noexcept { return !algorithm_.times().empty(); }
  // The sum of what all workers of all ranks reach when all multiply at once; 0 if kernels sleep.
  [[nodiscard]] double measure_rate();

  const Team& team_;
  const Options& options_;
  Algorithm& algorithm_;
  std::vector<GemmMeter> meters_;  // one for each worker; none if kernels sleep
};

}  // namespace tiled
