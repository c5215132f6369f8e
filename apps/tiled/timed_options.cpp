// SPDX-License-Identifier: BSD-3-Clause
#include "timed_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

namespace tiled {
namespace {

SlowRank parse_slow(const std::string& text) {
  SlowRank slow;
  char colon = 0;
  std::istringstream stream(text);
  if (stream >> slow.rank >> colon >> slow.factor && stream.peek() == EOF && colon == ':' &&
      slow.rank >= 0 && slow.factor >= 0.01 && slow.factor <= 100) {
    return slow;
  }
  throw InputError("--slow " + text + ": expected RANK:FACTOR with a factor from 0.01 to 100, for "
                   "example 0:2");
}

}  // namespace

void add_timed(apps::CommandLine& line, const std::string& kernels, const std::string& unit,
               TimedOptions& options) {
  line.choice("--kernels", options.timed, {{"real", false}, {"timed", true}},
              "real, or timed: each sleeps as long as it would compute, so that ranks may share "
              "processors; there is no result then, and nothing is checked");
  line.numbers("--kernel-us", options.kernel_us, {0, 1e8},
               fmt::format("Timed: microseconds of {}{}; measured if not given", kernels, unit));
  line.text("--slow", options.slow_text,
            "Timed: RANK:FACTOR, that rank's kernels take so many times as long");
}

void check_timed(const apps::CommandLine& line, const std::vector<std::string>& kernels,
                 TimedOptions& options) {
  options.names = kernels;
  line.needs({"--kernel-us", "--slow"}, options.timed, "--kernels timed");
  if (!options.kernel_us.empty() && options.kernel_us.size() != kernels.size()) {
    throw InputError(fmt::format("--kernel-us: needs {} times, of {}; there are {}",
                                 kernels.size(), fmt::join(kernels, ","),
                                 options.kernel_us.size()));
  }
  if (!options.slow_text.empty()) options.slow = parse_slow(options.slow_text);
}

}  // namespace tiled
