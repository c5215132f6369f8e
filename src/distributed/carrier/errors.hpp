// SPDX-License-Identifier: BSD-3-Clause
// The exceptions that no call can throw: their texts go to other ranks, or no task waits for the
// failed operation.
#pragma once

#include <exception>
#include <source_location>

#include "imbrex/detail/observation.hpp"
#include "imbrex/future.hpp"

namespace imbrex::distributed {

// Prints it at the end of the program, which fails.
inline void leave_untold(const std::exception_ptr& error) {
  Promise<void>("untold", std::source_location()).set_exception(error);
}

}  // namespace imbrex::distributed
