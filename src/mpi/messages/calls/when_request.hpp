// SPDX-License-Identifier: BSD-3-Clause
// A request that is handed over to imbrex: the base of imbrex::when() and release_after(), for
// interfaces with other names for them.
#pragma once

#include "imbrex/mpi.hpp"

namespace imbrex::mpi {

// The place for the status of a request. It is written once the request is complete, before waiting
// tasks resume.
struct StatusPlace {
  // `code`: of MPI, for the request. Called once, by any thread, in no task.
  void (*write)(void* to, const MPI_Status& status, int code) noexcept = nullptr;  // null: nowhere
  void* to = nullptr;
};

// imbrex::when() for a call of that name, a literal.
[[nodiscard]] Future<MPI_Status> take_over(const char* call, MPI_Request& request,
                                           const StatusPlace& place);

}  // namespace imbrex::mpi
