// SPDX-License-Identifier: BSD-3-Clause
#include "program.hpp"

#include <fmt/format.h>
#include <imbrex/imbrex.hpp>

#include <algorithm>
#include <cstdio>

#include "options.hpp"

namespace sparse {

Variant variant_of(const std::string& name) {
  return std::ranges::find(variants, name, &apps::Choice<Variant>::word)->value;
}

namespace {

Progress between(const tiled::Team& team, const imbrex::ProgressReport& start,
                 const imbrex::ProgressReport& now) {
  const auto count = [](const std::uint64_t later, const std::uint64_t earlier) {
    return static_cast<double>(later - earlier);
  };
  double sum[7] = {count(now.timed_polls, start.timed_polls),
                   now.timed_polls_s - start.timed_polls_s,
                   count(now.timed_callbacks, start.timed_callbacks),
                   now.timed_callbacks_s - start.timed_callbacks_s,
                   count(now.notices, start.notices),
                   count(now.polls, start.polls),
                   now.seconds - start.seconds};
  MPI_Allreduce(MPI_IN_PLACE, sum, 7, MPI_DOUBLE, MPI_SUM, team.all());
  return {sum[0], sum[1], sum[2], sum[3], sum[4], sum[5], sum[6]};
}

}  // namespace

Meter::Meter() : totals_(imbrex::detail::totals()) {
  imbrex::time_progress();
  progress_ = imbrex::progress_report();
}

Measured Meter::measured(const tiled::Team& team, const Variant variant,
                         const Outcome& mine) const {
  const imbrex::ProgressReport now = imbrex::progress_report();  // before there is more of it
  const double workers = std::max(1, imbrex::worker_count());
  double sum[7] = {mine.kernel_s, mine.mpi_s, mine.seconds, workers * mine.seconds,
                   imbrex::detail::totals().polls - totals_.polls,
                   static_cast<double>(mine.tests), mine.in_task_s};
  const apps::Activity activity = apps::activity_since(team.all(), totals_);
  double seconds = mine.seconds;
  MPI_Allreduce(MPI_IN_PLACE, sum, 7, MPI_DOUBLE, MPI_SUM, team.all());
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, team.all());
  const double kernel_share = sum[0] / sum[3];
  const double mpi_share = variant == Variant::blocking ? sum[1] / sum[2]
                                                        : std::max(0.0, sum[6] - sum[0]) / sum[3];
  const Progress progress = between(team, progress_, now);
  Measured measured;
  measured.run = {.seconds = seconds,
                  .text = fmt::format("   kernels {:.1f} %, in MPI {:.1f} %", 100 * kernel_share,
                                      100 * mpi_share),
                  .figures = {{"kernel_share", kernel_share},
                              {"mpi_share", mpi_share},
                              {"kernel_s", sum[0]},
                              {"polls", sum[4]},
                              {"tests", sum[5]},
                              {"timed_polls", progress.polls},
                              {"timed_polls_s", progress.polls_s},
                              {"timed_callbacks", progress.callbacks},
                              {"timed_callbacks_s", progress.callbacks_s},
                              {"progress_notices", progress.notices},
                              {"progress_polls", progress.thread_polls},
                              {"progress_s", progress.thread_s}}};
  apps::add_to(measured.run.figures, activity);
  measured.progress = fmt::format(
      "\n        polls {:.0f} in {:.2f} ms (by a thread of progress {:.0f}), callbacks {:.0f} in "
      "{:.2f} ms", progress.polls, 1e3 * progress.polls_s, progress.thread_polls,
      progress.callbacks, 1e3 * progress.callbacks_s);
  return measured;
}

void print_gains(const apps::Runs& runs) {
  if (runs.variants().front() != "blocking") return;
  for (std::size_t i = 1; i < runs.variants().size(); ++i) {
    fmt::print("t(blocking) / t({}) - 1 = {:.1f} % (medians)\n", runs.variants()[i],
               100 * (runs.median(0) / runs.median(i) - 1));
  }
}

void print_head(const tiled::Team& team, const Point& size, const char* const of_what,
                const Brick& brick) {
  fmt::print("{} x {} x {} {} on {} ranks, {} each, {} sub-blocks a rank; progress {}\n", size[0],
             size[1], size[2], of_what, team.size(),
             apps::counted(imbrex::worker_count(), "worker"), brick.blocks().size(),
             imbrex::progress_report().runs);
  std::fflush(stdout);
}

nlohmann::json document_of(const char* const program, const tiled::Team& team,
                           const Options& options, const tiled::KernelTimes& times) {
  return {{"benchmark", program},
          {"ranks", team.size()},
          {"workers", imbrex::worker_count()},
          {"n", options.n},
          {"blocks", options.blocks},
          {"iterations", options.iterations},
          {"kernels", options.timed.timed ? "timed" : "real"},
          {"kernel_s", times},
          {"progress", imbrex::progress_report().runs}};
}

}  // namespace sparse
