// SPDX-License-Identifier: BSD-3-Clause
// Prints the findings of IMBREX_CHECK=1. Thread safety: any thread.
#pragma once

#include <string>

#include "imbrex/detail/observation.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/report/waits/mpi_waits.hpp"

namespace imbrex::mpi::check {

[[nodiscard]] inline bool on() noexcept { return switches.checks; }
// The call and its task, for a finding. Only here the name of a task of OpenMP is read, from the
// debug information.
[[nodiscard]] std::string describe(report::Wait wait, const detail::TaskLabel& task);
// Prints the finding, unless it was printed before or is empty, or 20 have been printed.
void report_finding(const std::string& finding);
// Prints the number of findings beyond those, if any.
void count_findings() noexcept;

}  // namespace imbrex::mpi::check
