// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/life/at_exit.hpp"

#include <sched.h>

#include <chrono>
#include <cstdlib>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/active/post/post.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/life/parts.hpp"
#include "mpi/report/look.hpp"

namespace imbrex::mpi {

namespace {

using Clock = std::chrono::steady_clock;

// At exit(0) in main the core waits for all tasks. Tasks that wait in MPI may wait for ever, since
// this rank sends no more: once nothing has moved for a moment, they are left.
void leave_tasks_at_exit(const int status) {
  constexpr std::chrono::milliseconds patience{200};
  if (!switches.is_active.load(std::memory_order_relaxed)) return;
  if (status != EXIT_SUCCESS || !detail::in_main()) return;
  report::Mark last;
  Clock::time_point since = Clock::now();
  while (!detail::main_is_last()) {
    detail::yield();
    sched_yield();
    const report::Mark now = report::mark();
    if (!(now == last)) {
      last = now;
      since = Clock::now();
    } else if (Clock::now() - since > patience) {
      if (!detail::situation().at_rest) continue;  // a long task
      if (now.open == 0) return;                   // other ranks could end it
      print("the program ends without MPI_Finalize, which would have waited for tasks that wait in "
            "MPI:" + describe_open());
      detail::leave_tasks();
      return;
    }
  }
}

}  // namespace

void leave_at_exit(const int status) {
  leave_tasks_at_exit(status);
  if (active::post().is_open()) active::post().abandon();
}

}  // namespace imbrex::mpi
