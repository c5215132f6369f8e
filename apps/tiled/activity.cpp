// SPDX-License-Identifier: BSD-3-Clause
#include "activity.hpp"

namespace tiled {

Activity activity_since(const Team& team, const imbrex::detail::Totals& start) {
  const imbrex::detail::Totals now = imbrex::detail::totals();
  const double mine[6] = {now.in_task_s - start.in_task_s,     now.idle_s - start.idle_s,
                          now.overhead_s - start.overhead_s,   now.tasks - start.tasks,
                          now.suspensions - start.suspensions, now.steals - start.steals};
  double sum[6];
  MPI_Allreduce(mine, sum, 6, MPI_DOUBLE, MPI_SUM, team.all());
  return {sum[0], sum[1], sum[2], sum[3], sum[4], sum[5]};
}

}  // namespace tiled
