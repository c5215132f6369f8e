// SPDX-License-Identifier: BSD-3-Clause
// MPI_Comm_free and MPI_Comm_disconnect of a communicator that a task waits on: refused, since the
// task's call would go on with a handle that means nothing. Requests that are under way, and that
// nobody waits for in a call which names the communicator, are no obstacle: MPI completes them.
#include <fmt/format.h>
#include <mpi.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "check/comm_free.hpp"
#include "engine.hpp"
#include "errors.hpp"
#include "report/look.hpp"
#include "world.hpp"

namespace imbrex::mpi::check {

namespace {

// A call that returns when the operation is complete: its task waits.
bool blocks(const Operation& operation) noexcept {
  const std::string_view name = operation.call.name;
  return name.starts_with("MPI_") && !name.starts_with("MPI_I") && !name.starts_with("MPI_Start");
}

std::string describe_obstacle(MPI_Comm comm) {
  std::string text;
  const auto visit = [&](const Operation& operation) {
    if (!text.empty() || operation.call.comm != comm || !blocks(operation)) return;
    text = report::describe(report::wait_of(operation.call, operation.task));
  };
  engine().hold_still(visit, [](bool) {});
  return text;
}

}  // namespace

int refuse_to_free(const char* const call, MPI_Comm comm) {
  if (!active() || comm == MPI_COMM_NULL) return MPI_SUCCESS;
  const std::string obstacle = describe_obstacle(comm);
  if (obstacle.empty()) return MPI_SUCCESS;
  std::fprintf(stderr,
               "imbrex: %s in task %s: another task still waits on this communicator: %s. It "
               "stays; wait for that task first, by its future, a dependency, or finish.\n",
               call, detail::describe_current_task().c_str(), obstacle.c_str());
  return raise_error({.name = call, .comm = comm}, MPI_ERR_COMM);
}

}  // namespace imbrex::mpi::check
