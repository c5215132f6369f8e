// SPDX-License-Identifier: BSD-3-Clause
// The command line: --kernels, --kernel-us and --slow, and how it is read.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "timed.hpp"

namespace tiled {

// The text of the command line before it is checked.
struct TimedText {
  std::string kernels = "real";
  std::vector<double> kernel_us;
  std::string slow;
};

// False if --help is all that was asked for; then `help` is what it says. Throws InputError.
[[nodiscard]] bool parse(CLI::App& app, int argc, char** argv, std::string& help);

// `text` outlives the parsing.
void add_timed(CLI::App& app, const std::vector<std::string>& names, TimedText& text);
// Throws InputError.
[[nodiscard]] TimedOptions read_timed(const std::vector<std::string>& names,
                                      const TimedText& text);

}  // namespace tiled
