// SPDX-License-Identifier: BSD-3-Clause
// The options --kernels, --kernel-us and --slow.
#pragma once

#include <string>
#include <vector>

#include "../harness/command_line.hpp"
#include "timed.hpp"

namespace tiled {

// `unit` is what the times of --kernel-us are for. `options` outlives the parsing.
void add_timed(apps::CommandLine& line, const std::string& kernels, const std::string& unit,
               TimedOptions& options);
// After the parsing, for a program with these kernels. Throws InputError.
void check_timed(const apps::CommandLine& line, const std::vector<std::string>& kernels,
                 TimedOptions& options);

}  // namespace tiled
