// SPDX-License-Identifier: BSD-3-Clause
// What a person reads, and the same as JSON. Called on rank 0 alone; no MPI.
#pragma once

#include "measure.hpp"

namespace tiled {

void print_problem(const Options& options, const Algorithm& algorithm);
void print_comparison(const apps::Runs& runs, const Stopwatch& stopwatch, const Layout& layout);

// Throws std::runtime_error with the system's reason.
void write_json(const Options& options, const Algorithm& algorithm, const apps::Runs& runs);

}  // namespace tiled
