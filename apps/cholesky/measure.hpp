// SPDX-License-Identifier: BSD-3-Clause
// One timed factorisation between two measurements of the DGEMM rate.
#pragma once

#include <imbrex/detail/waist.hpp>

#include <cstdint>
#include <optional>
#include <vector>

#include "geo/kriging.hpp"
#include "kernels.hpp"
#include "matrix.hpp"
#include "options.hpp"
#include "solve.hpp"
#include "team.hpp"

namespace cholesky {

// What the workers of all ranks did during a run, seconds and counts.
struct Activity {
  double in_task_s, idle_s, overhead_s;
  double tasks, suspensions, steals;
};

struct Run {
  Variant variant;
  std::int64_t bad_minor;  // if not 0, the rest says nothing
  double seconds;          // from a barrier to the last rank's end
  double gflops;           // Gflop/s: n^3/3 + n^2/2 + n/6 operations
  double rate;             // Gflop/s of DGEMM on all workers of all ranks: before and after, mean
  Activity activity;
  double received_peak;    // tasks: received tiles in memory at once, the rank with most
  Residual residual;
  std::optional<Kriging> kriging;

  [[nodiscard]] double share() const noexcept { return gflops / rate; }
};

// Collective calls of main.
class Stopwatch {
 public:
  Stopwatch(const Team& team, const Options& options);

  // Fills `matrix`, factors it, and measures.
  [[nodiscard]] Run run(Variant variant, TiledMatrix& matrix, const Source& source);

 private:
  // The sum of what all workers of all ranks reach when all multiply at once.
  [[nodiscard]] double measure_rate();
  [[nodiscard]] Activity activity_since(const imbrex::detail::Totals& start) const;

  const Team& team_;
  const Options& options_;
  std::vector<GemmMeter> meters_;  // one for each worker
};

}  // namespace cholesky
