// SPDX-License-Identifier: BSD-3-Clause
// Errors of MPI: what the C++ calls throw.
#pragma once

#include <string>

#include "imbrex/mpi.hpp"

namespace imbrex::mpi {

// `place` is what detail::describe_current_task() said where the operation was begun.
[[nodiscard]] MpiError make_error(const char* call, int code, const std::string& place);

}  // namespace imbrex::mpi
