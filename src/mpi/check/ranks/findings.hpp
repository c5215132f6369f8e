// SPDX-License-Identifier: BSD-3-Clause
// What IMBREX_CHECK=1 has found, printed. Thread safety: any thread.
#pragma once

#include <string>

#include "mpi/abi/switches.hpp"

namespace imbrex::mpi::check {

[[nodiscard]] inline bool on() noexcept { return switches.checks; }
// Prints it, unless it was said before or is empty, or 20 have been printed.
void say_finding(const std::string& finding);
// Prints how many were found beside those, if any.
void count_findings() noexcept;

}  // namespace imbrex::mpi::check
