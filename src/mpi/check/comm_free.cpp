// SPDX-License-Identifier: BSD-3-Clause
// MPI_Comm_free and MPI_Comm_disconnect of a communicator that a task waits on: refused, since the
// task's call would go on with an invalid handle. Requests in flight are no obstacle if no task
// waits for them in a call that names the communicator: MPI completes them.
#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>

#include <chrono>
#include <cstdio>
#include <string>

#include "imbrex/detail/observation.hpp"
#include "mpi/check/comm_free.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/lifetime.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/report/waits/mpi_waits.hpp"

namespace imbrex::mpi::check {

namespace {

std::string describe_obstacle(MPI_Comm comm) {
  std::string text;
  const auto visit = [&](const Operation& operation) {
    if (!text.empty() || operation.call.comm != comm || operation.call.at_once) return;
    text = report::describe(report::wait_of(operation.call, operation.task));
  };
  engine().hold_still(visit, [](bool) {});
  return text;
}

// A lasting obstacle. A send whose receiver has told the caller that the message has arrived is
// over, as far as the program can know, and MPI has only not been polled yet: that is no mistake.
std::string describe_lasting_obstacle(MPI_Comm comm) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  std::string text = describe_obstacle(comm);
  while (!text.empty() && Clock::now() - begin < std::chrono::seconds(1)) {
    engine().poll();
    sched_yield();
    text = describe_obstacle(comm);
  }
  return text;
}

}  // namespace

int refuse_to_free(const char* const call, MPI_Comm comm) {
  // MPI calls back: the calling thread may hold what the engine waits for.
  if (!in_service() || comm == MPI_COMM_NULL || engine().polling_here()) return MPI_SUCCESS;
  const std::string obstacle = describe_lasting_obstacle(comm);
  if (obstacle.empty()) return MPI_SUCCESS;
  std::fprintf(stderr,
               "imbrex: %s in task %s: another task still waits on this communicator: %s. The "
               "communicator is not freed; wait for that task first, by its future, a dependency, "
               "or finish.\n",
               call, detail::describe_current_task().c_str(), obstacle.c_str());
  return raise_error({.name = call, .comm = comm}, MPI_ERR_COMM);
}

}  // namespace imbrex::mpi::check
