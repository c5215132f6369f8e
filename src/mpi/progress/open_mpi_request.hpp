// SPDX-License-Identifier: BSD-3-Clause
// The completion callback inside the requests of Open MPI 4.1 and 5.0: an internal interface of
// theirs, used only if asked for (IMBREX_REQUEST_CALLBACK) and after a check at start.
#pragma once

#include <mpi.h>

#include <string>

namespace imbrex::mpi::progress {

// Empty if requests have such a callback where it is expected; else why not. From then on
// call_back_when_complete() uses `notice`, which is called inside MPI.
[[nodiscard]] std::string check_request_callback(void (*notice)() noexcept);

// REQUIRES: check_request_callback() has succeeded; nobody completes or frees `request` meanwhile.
void call_back_when_complete(MPI_Request request) noexcept;

}  // namespace imbrex::mpi::progress
