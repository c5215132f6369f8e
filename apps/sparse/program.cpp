// SPDX-License-Identifier: BSD-3-Clause
#include "program.hpp"

#include <fmt/format.h>
#include <imbrex/imbrex.hpp>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "options.hpp"

namespace sparse {

const std::map<std::string, std::vector<NamedVariant>>& variants() {
  static const std::map<std::string, std::vector<NamedVariant>> all{
      {"blocking", {{"blocking", Variant::blocking}}},
      {"tasks", {{"tasks", Variant::tasks}}},
      {"test-each", {{"test-each", Variant::test_each}}},
      {"blocking-tasks", {{"blocking-tasks", Variant::blocking_tasks}}},
      {"all",
       {{"blocking", Variant::blocking}, {"tasks", Variant::tasks},
        {"test-each", Variant::test_each}, {"blocking-tasks", Variant::blocking_tasks}}}};
  return all;
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

Figures Meter::figures(const tiled::Team& team, const NamedVariant& variant,
                       const Outcome& mine) const {
  const imbrex::ProgressReport now = imbrex::progress_report();  // before there is more of it
  const double workers = std::max(1, imbrex::worker_count());
  double sum[7] = {mine.kernel_s, mine.mpi_s, mine.seconds, workers * mine.seconds,
                   imbrex::detail::totals().polls - totals_.polls,
                   static_cast<double>(mine.tests), mine.in_task_s};
  const tiled::Activity activity = activity_since(team, totals_);
  double seconds = mine.seconds;
  MPI_Allreduce(MPI_IN_PLACE, sum, 7, MPI_DOUBLE, MPI_SUM, team.all());
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, team.all());
  const double in_mpi = variant.second == Variant::blocking
                            ? sum[1] / sum[2]
                            : std::max(0.0, sum[6] - sum[0]) / sum[3];
  return {variant.first, seconds, sum[0] / sum[3], in_mpi, sum[0], activity, sum[4], sum[5],
          between(team, progress_, now)};
}

void print_run(const Figures& run, const int number, const std::string& more) {
  fmt::print("run {:<3} {:<14} {:9.3f} s   kernels {:.1f} %, in MPI {:.1f} %{}\n", number,
             run.variant, run.seconds, 100 * run.kernel_share, 100 * run.mpi_share, more);
  const Progress& progress = run.progress;
  fmt::print("        polls {:.0f} in {:.2f} ms (by a thread of progress {:.0f}), callbacks {:.0f} "
             "in {:.2f} ms\n", progress.polls, 1e3 * progress.polls_s, progress.thread_polls,
             progress.callbacks, 1e3 * progress.callbacks_s);
  std::fflush(stdout);
}

nlohmann::json to_json(const Figures& run) {
  return {{"variant", run.variant},
          {"seconds", run.seconds},
          {"kernel_share", run.kernel_share},
          {"mpi_share", run.mpi_share},
          {"kernel_s", run.kernel_s},
          {"in_task_s", run.activity.in_task_s},
          {"idle_s", run.activity.idle_s},
          {"overhead_s", run.activity.overhead_s},
          {"tasks", run.activity.tasks},
          {"suspensions", run.activity.suspensions},
          {"polls", run.polls},
          {"tests", run.tests},
          {"timed_polls", run.progress.polls},
          {"timed_polls_s", run.progress.polls_s},
          {"timed_callbacks", run.progress.callbacks},
          {"timed_callbacks_s", run.progress.callbacks_s},
          {"progress_notices", run.progress.notices},
          {"progress_polls", run.progress.thread_polls},
          {"progress_s", run.progress.thread_s}};
}

void print_sleep(const std::vector<std::string>& kernel_names, const tiled::TimedOptions& options,
                 const tiled::KernelTimes& times) {
  fmt::print("kernels sleep, as {}; one worker alone takes, on all points of a rank:",
             options.times ? "given" : "measured on rank 0");
  for (std::size_t i = 0; i < times.size(); ++i) {
    fmt::print(" {} {:.0f} us", kernel_names[i], 1e6 * times[i]);
  }
  fmt::print("; nothing is computed that could be checked\n");
  if (options.slow.rank >= 0) {
    fmt::print("on rank {} they take {} times as long\n", options.slow.rank, options.slow.factor);
  }
}

void print_gains(const std::map<std::string, std::vector<double>>& seconds) {
  if (!seconds.contains("blocking")) return;
  const double blocking = tiled::median_of(seconds.at("blocking"));
  for (const auto& [variant, values] : seconds) {
    if (variant == "blocking") continue;
    fmt::print("t(blocking) / t({}) - 1 = {:.1f} % (medians)\n", variant,
               100 * (blocking / tiled::median_of(values) - 1));
  }
}

void print_head(const tiled::Team& team, const Point& size, const char* const of_what,
                const Brick& brick) {
  const int workers = imbrex::worker_count();
  fmt::print("{} x {} x {} {} on {} ranks, {} worker{} each, {} sub-blocks a rank; progress {}\n",
             size[0], size[1], size[2], of_what, team.size(), workers, workers == 1 ? "" : "s",
             brick.blocks().size(), imbrex::progress_report().runs);
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
          {"progress", imbrex::progress_report().runs},
          {"runs", nlohmann::json::array()}};
}

void write(const nlohmann::json& document, const tiled::Team& team, const Options& options) {
  if (team.rank() == 0 && !options.json.empty()) {
    std::ofstream(options.json) << document.dump(2) << "\n";
  }
}

}  // namespace sparse
