// SPDX-License-Identifier: BSD-3-Clause
// cancel: a request that members and tasks see at their next cancellation point.
#include "omp/tasks/tasks.hpp"
#include "omp/region/team.hpp"

extern "C" {

bool GOMP_cancellation_point(int which);

[[gnu::visibility("default")]] bool GOMP_cancel(int which, bool active) {
  using namespace imbrex::omp;
  if (!settings().cancellation) return false;
  if (!active) return GOMP_cancellation_point(which);
  constexpr int loop = 2, sections = 4, taskgroup = 8;
  Context& context = current();
  if ((which & (loop | sections)) != 0) {
    context.team->work_cancelled.store(true, std::memory_order_release);
  } else if ((which & taskgroup) != 0) {
    Taskgroup* group = context.taskgroup;
    if (group != nullptr && group->of_work && group->outer != nullptr) group = group->outer;
    if (group != nullptr) group->cancelled.store(true, std::memory_order_release);
  } else {
    cancel_region(context);
  }
  return true;
}

}
