// SPDX-License-Identifier: BSD-3-Clause
// What becomes of exceptions that no call can throw: their texts go to other ranks, or nobody waits
// for what has failed.
#pragma once

#include <exception>
#include <source_location>
#include <string>

#include "imbrex/future.hpp"

namespace imbrex::dist {

[[nodiscard]] inline std::string said_by(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    const char* const text = thrown.what();
    return text != nullptr ? text : "a std::exception without a text";
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

// Prints it at the end of the program, which fails.
inline void leave_untold(const std::exception_ptr& error) {
  Promise<void>("untold", std::source_location()).set_exception(error);
}

}  // namespace imbrex::dist
