// SPDX-License-Identifier: BSD-3-Clause
// A request that is handed over to imbrex: what imbrex::when() and release_after() stand on, for
// the interfaces that do the same under another name.
#pragma once

#include "imbrex/mpi.hpp"

namespace imbrex::mpi {

// The place for the status of a request. It is written once the request is complete, before those
// who wait for it go on.
struct StatusPlace {
  // `code`: MPI's, for the request. Called once, by any thread, in no task.
  void (*write)(void* to, const MPI_Status& status, int code) noexcept = nullptr;  // null: nowhere
  void* to = nullptr;
};

// As imbrex::when(), for a call of that name, a literal.
[[nodiscard]] Future<MPI_Status> take_over(const char* call, MPI_Request& request,
                                           const StatusPlace& place);

}  // namespace imbrex::mpi
