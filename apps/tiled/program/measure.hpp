// SPDX-License-Identifier: BSD-3-Clause
// Timed runs, each between two measurements of the DGEMM rate.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../../harness/runs.hpp"
#include "algorithm.hpp"

namespace tiled {

// Collective calls of main.
class Stopwatch {
 public:
  Stopwatch(const Team& team, const Options& options, Algorithm& algorithm);

  // The figures of a run: Gflop/s and what the workers did; received_tiles_peak and port_bytes of
  // the rank with most, 0 for fork-join. Kernels that compute add `dgemm_gflops`, the rate of DGEMM
  // on all workers of all ranks, as the mean of before and after, and the residual.
  // Throws InputError if the matrix cannot be factored.
  [[nodiscard]] apps::Run run(Variant variant);

  // The broadcasts of the last run, over all ranks.
  [[nodiscard]] const Broadcasts& broadcasts() const noexcept { return broadcasts_; }
  // What the result of each variant's last run was used for, in words.
  [[nodiscard]] const std::map<Variant, std::string>& uses() const noexcept { return uses_; }

 private:
  [[nodiscard]] bool sleeps() const noexcept { return !algorithm_.times().empty(); }
  // The sum of what all workers of all ranks reach when all multiply at once; 0 if kernels sleep.
  [[nodiscard]] double measure_rate();
  void add_result(Variant variant, double rate, apps::Run& run);

  const Team& team_;
  const Options& options_;
  Algorithm& algorithm_;
  std::vector<GemmMeter> meters_;  // one for each worker; none if kernels sleep
  Broadcasts broadcasts_;
  std::map<Variant, std::string> uses_;
};

}  // namespace tiled
