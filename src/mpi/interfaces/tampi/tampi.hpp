// SPDX-License-Identifier: BSD-3-Clause
// Shared by the files of TAMPI's interface: the modes (modes.cpp) and the binding of a request to
// the running task (iwait.cpp).
#pragma once

#include <mpi.h>

#include <string>

#include "mpi/messages/calls/when_request.hpp"

namespace imbrex::mpi::tampi {

// The level that MPI_Init_thread and MPI_Query_thread return. It is the requested one, as in MPI
// libraries, although imbrex has another one from MPI; programs compare with ==. `given`: the level
// from MPI.
[[nodiscard]] int level_for(int required, int given) noexcept;  // remembered
[[nodiscard]] int level_of_query(int given) noexcept;

// True from MPI_Init to MPI_Finalize, unless the program starts TAMPI itself and has not done so.
[[nodiscard]] bool is_enabled() noexcept;

// Reports on standard error that `call` is refused, in which task, and why. Returns `code`.
int refuse(const char* call, const std::string& why, int code) noexcept;

// The place for `status`; none if it is MPI_STATUS_IGNORE.
[[nodiscard]] StatusPlace place_of(MPI_Status* status) noexcept;

// TAMPI_Iwait for `call`, a literal.
[[nodiscard]] int bind(const char* call, MPI_Request* request, const StatusPlace& place) noexcept;
// bind() after a call that was to start the request and returned `code`.
[[nodiscard]] inline int bind_started(const char* call, int code, MPI_Request* request,
                                      const StatusPlace& place) noexcept {
  return code == MPI_SUCCESS ? bind(call, request, place) : code;
}

// TAMPI_Wait while TAMPI is enabled: outside of tasks, waits for the requests that this thread has
// bound. Returns the code of the first that failed. Suspends main.
[[nodiscard]] int wait_for_bound(const char* call) noexcept;

}  // namespace imbrex::mpi::tampi
