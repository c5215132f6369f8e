// SPDX-License-Identifier: BSD-3-Clause
// cancel: a request that members and tasks see at their next cancellation point.
#include "omp/tasks/tasks.hpp"
#include "omp/region/team.hpp"

namespace imbrex::omp {

namespace {
constexpr int loop = 2, sections = 4, taskgroup = 8;
}  // namespace

bool cancel(const int which) {
  if (!settings().cancellation) return false;
  if (tools::on()) [[unlikely]] tools::cancel(told_cancel(which) | tools::cancel_flag::activated);
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

bool is_cancelled_at(const int which) {
  if (!settings().cancellation) return false;
  const Context& context = current();
  bool cancelled = false;
  if ((which & (loop | sections)) != 0) {
    cancelled = context.team->work_cancelled.load(std::memory_order_acquire);
  } else if ((which & taskgroup) != 0) {
    cancelled = is_cancelled(context);
  } else {
    cancelled = context.team->cancelled.load(std::memory_order_acquire);
  }
  if (cancelled && tools::on()) [[unlikely]] {
    tools::cancel(told_cancel(which) | tools::cancel_flag::detected);
  }
  return cancelled;
}

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

bool GOMP_cancellation_point(int which) {
  imbrex::omp::tools::entered();
  return imbrex::omp::is_cancelled_at(which);
}

bool GOMP_cancel(int which, bool active) {
  imbrex::omp::tools::entered();
  return active ? imbrex::omp::cancel(which) : imbrex::omp::is_cancelled_at(which);
}

}
#pragma GCC visibility pop
