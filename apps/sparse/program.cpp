// SPDX-License-Identifier: BSD-3-Clause
#include "program.hpp"

#include <fmt/format.h>
#include <imbrex/mpi.hpp>

#include <algorithm>

namespace sparse {

const std::map<std::string, std::vector<NamedVariant>>& variants() {
  static const std::map<std::string, std::vector<NamedVariant>> all{
      {"blocking", {{"blocking", Variant::blocking}}},
      {"tasks", {{"tasks", Variant::tasks}}},
      {"test-each", {{"test-each", Variant::test_each}}},
      {"all",
       {{"blocking", Variant::blocking}, {"tasks", Variant::tasks},
        {"test-each", Variant::test_each}}}};
  return all;
}

void print_run(const Figures& run, const int number) {
  fmt::print("run {:<3} {:<9} {:9.3f} s   kernels {:.1f} %, in MPI {:.1f} %", number, run.variant,
             run.seconds, 100 * run.kernel_share, 100 * run.mpi_share);
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
          {"tests", run.tests}};
}

void add_progress(nlohmann::json& document) {
  const imbrex::ProgressReport progress = imbrex::progress_report();
  document["progress_polls"] = progress.polls;
  document["progress_s"] = progress.seconds;
  document["progress_notices"] = progress.notices;
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

void for_each_gain(const std::map<std::string, std::vector<double>>& seconds,
                   const std::function<void(const std::string& variant, double percent)>& say) {
  const auto median = [&seconds](const std::string& variant) {
    std::vector<double> values = seconds.at(variant);
    std::ranges::sort(values);
    return values[values.size() / 2];
  };
  if (!seconds.contains("blocking")) return;
  for (const auto& [variant, values] : seconds) {
    if (variant != "blocking") say(variant, 100 * (median("blocking") / median(variant) - 1));
  }
}

}  // namespace sparse
