// SPDX-License-Identifier: BSD-3-Clause
// What the workers of all ranks did during a run, and its figures. In a header, since programs that
// are not linked with imbrex use the harness, too.
#pragma once

#include <imbrex/detail/observation.hpp>
#include <mpi.h>

#include <nlohmann/json.hpp>

namespace apps {

// Seconds and counts.
struct Activity {
  double in_task_s, idle_s, overhead_s;
  double tasks, suspensions, steals;
};

// Collective over `comm`. `start` is what imbrex::detail::totals() returned on this rank before.
[[nodiscard]] inline Activity activity_since(const MPI_Comm comm,
                                             const imbrex::detail::Totals& start) {
  const imbrex::detail::Totals now = imbrex::detail::totals();
  const double mine[6] = {now.in_task_s - start.in_task_s,     now.idle_s - start.idle_s,
                          now.overhead_s - start.overhead_s,   now.tasks - start.tasks,
                          now.suspensions - start.suspensions, now.steals - start.steals};
  double sum[6];
  MPI_Allreduce(mine, sum, 6, MPI_DOUBLE, MPI_SUM, comm);
  return {sum[0], sum[1], sum[2], sum[3], sum[4], sum[5]};
}

// Adds the activity to the figures of a run.
inline void add_to(nlohmann::json& figures, const Activity& activity) {
  figures.update({{"in_task_s", activity.in_task_s},
                  {"idle_s", activity.idle_s},
                  {"overhead_s", activity.overhead_s},
                  {"tasks", activity.tasks},
                  {"suspensions", activity.suspensions},
                  {"steals", activity.steals}});
}

}  // namespace apps
