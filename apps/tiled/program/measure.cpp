// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include <fmt/format.h>
#include <imbrex/detail/observation.hpp>
#include <imbrex/imbrex.hpp>

#include <algorithm>
#include <cstdint>

#include "../../harness/activity.hpp"

namespace tiled {

Stopwatch::Stopwatch(const Team& team, const Options& options, Algorithm& algorithm)
    : team_(team), options_(options), algorithm_(algorithm) {
  if (sleeps()) return;
  for (int i = 0; i < imbrex::worker_count(); ++i) meters_.emplace_back(options.rate_size);
}

apps::Run Stopwatch::run(Variant variant) {
  algorithm_.fill();
  const double rate_before = measure_rate();

  MPI_Barrier(team_.all());
  const imbrex::detail::Totals totals = imbrex::detail::totals();
  const double start = MPI_Wtime();
  TaskUse use;
  const std::int64_t bad_minor = algorithm_.run(variant, use);
  const double mine = MPI_Wtime() - start;
  const apps::Activity activity = apps::activity_since(team_.all(), totals);

  double most[3] = {mine, static_cast<double>(use.tiles_peak),
                    static_cast<double>(std::max(use.bytes_sent, use.bytes_received))};
  MPI_Allreduce(MPI_IN_PLACE, most, 3, MPI_DOUBLE, MPI_MAX, team_.all());
  broadcasts_ = sum_over_ranks(team_, use.broadcasts);
  const double rate = 0.5 * (rate_before + measure_rate());
  if (bad_minor != 0) throw InputError(algorithm_.describe_minor(bad_minor));
  const double gflops = 1e-9 * algorithm_.operations() / most[0];
  apps::Run run{.seconds = most[0],
                .text = fmt::format(" {:8.1f} Gflop/s", gflops),
                .figures = {{"gflops", gflops},
                            {"received_tiles_peak", most[1]},
                            {"port_bytes", most[2]}}};
  apps::add_to(run.figures, activity);
  if (variant == Variant::inserted) add_to(run.figures, broadcasts_);
  if (!sleeps()) add_result(variant, rate, run);
  return run;
}

void Stopwatch::add_result(Variant variant, double rate, apps::Run& run) {
  const double share = rate > 0 ? run.figures["gflops"].get<double>() / rate : 0;
  const Residual residual = algorithm_.residual();
  run.right = residual.value <= algorithm_.residual_limit();  // not NaN either
  run.text += fmt::format(" {:6.1f} % of DGEMM   residual {:.4f}", 100 * share, residual.value);
  run.figures.update({{"dgemm_gflops", rate},
                      {"share", share},
                      {"residual", residual.value},
                      {"residual_method", residual.method}});
  uses_[variant].clear();
  for (const auto& [name, value] : algorithm_.use_result()) {
    run.figures[name] = value;
    uses_[variant] += fmt::format(" {} {:.8g}", name, value);
  }
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
