// SPDX-License-Identifier: BSD-3-Clause
// The options --kernels, --kernel-us and --slow.
#pragma once

#include <string>
#include <vector>

#include "../command_line.hpp"
#include "timed.hpp"

namespace tiled {

// The text of the command line before it is checked.
struct TimedText {
  std::string kernels = "real";
  std::vector<double> kernel_us;
  std::string slow;
};

// `text` outlives the parsing.
void add_timed(CLI::App& app, const std::vector<std::string>& names, TimedText& text);
// Throws InputError.
[[nodiscard]] TimedOptions read_timed(const std::vector<std::string>& names,
                                      const TimedText& text);

}  // namespace tiled
