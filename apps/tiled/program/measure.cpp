// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include <imbrex/detail/observation.hpp>
#include <imbrex/imbrex.hpp>

#include <algorithm>

namespace tiled {

Stopwatch::Stopwatch(const Team& team, const Options& options, Algorithm& algorithm)
    : team_(team), options_(options), algorithm_(algorithm) {
  if (sleeps()) return;
  for (int i = 0; i < imbrex::worker_count(); ++i) meters_.emplace_back(options.rate_size);
}

Run Stopwatch::run(Variant variant) {
  Run run{};
  run.variant = variant;
  algorithm_.fill();
  const double rate_before = measure_rate();

  MPI_Barrier(team_.all());
  const imbrex::detail::Totals totals = imbrex::detail::totals();
  const double start = MPI_Wtime();
  TaskUse use;
  run.bad_minor = algorithm_.run(variant, use);
  const double mine = MPI_Wtime() - start;
  run.activity = activity_since(team_, totals);

  const double most[3] = {mine, static_cast<double>(use.tiles_peak),
                          static_cast<double>(std::max(use.bytes_sent, use.bytes_received))};
  double of_all[3];
  MPI_Allreduce(most, of_all, 3, MPI_DOUBLE, MPI_MAX, team_.all());
  run.seconds = of_all[0];
  run.received_peak = of_all[1];
  run.port_bytes = of_all[2];
  run.broadcasts = sum_over_ranks(team_, use.broadcasts);
  run.gflops = 1e-9 * algorithm_.operations() / run.seconds;
  run.rate = 0.5 * (rate_before + measure_rate());
  if (run.bad_minor == 0 && !sleeps()) {
    run.residual = algorithm_.residual();
    run.figures = algorithm_.use_result();
  }
  return run;
}

double Stopwatch::measure_rate() {
  if (sleeps()) return 0;
  std::vector<double> rates(meters_.size(), 0.0);
  MPI_Barrier(team_.all());
  const double deadline = MPI_Wtime() + options_.rate_s;
  imbrex::finish([&] {
    for (std::size_t i = 0; i < meters_.size(); ++i) {
      // A meter that starts after the deadline, because a worker was not there, counts nothing.
      imbrex::task("dgemm rate").launch([this, &rates, i, deadline] {
        rates[i] = meters_[i].measure(deadline, &MPI_Wtime);
      });
    }
  });
  double mine = 0;
  for (const double rate : rates) mine += rate;
  double sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, team_.all());
  return sum;
}

}  // namespace tiled
