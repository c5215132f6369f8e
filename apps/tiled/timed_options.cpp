// SPDX-License-Identifier: BSD-3-Clause
#include "timed_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <utility>

namespace tiled {
namespace {

SlowRank parse_slow(const std::string& text) {
  SlowRank slow;
  const char* const end = text.data() + text.size();
  const auto rank = std::from_chars(text.data(), end, slow.rank);
  if (rank.ec == std::errc() && rank.ptr != end && *rank.ptr == ':') {
    const auto factor = std::from_chars(rank.ptr + 1, end, slow.factor);
    if (factor.ec == std::errc() && factor.ptr == end && slow.rank >= 0 && slow.factor >= 0.01 &&
        slow.factor <= 100) {
      return slow;
    }
  }
  throw InputError("--slow " + text + ": expected RANK:FACTOR with a factor from 0.01 to 100, for "
                   "example 0:2");
}

}  // namespace

void add_timed(CLI::App& app, const std::vector<std::string>& names, TimedText& text) {
  app.add_option("--kernels", text.kernels,
                 "real, or timed: each sleeps as long as it would compute, so that ranks may share "
                 "processors; there is no result then, and nothing is checked")
      ->check(CLI::IsMember({"real", "timed"}))
      ->capture_default_str();
  apps::add_list(app, "--kernel-us", text.kernel_us,
                 fmt::format("Timed: microseconds of {} on a whole tile; measured if not given",
                             fmt::join(names, ",")))
      ->check(CLI::Range(0.0, 1e8));
  app.add_option("--slow", text.slow,
                 "Timed: RANK:FACTOR, that rank's kernels take so many times as long");
}

TimedOptions read_timed(const std::vector<std::string>& names, const TimedText& text) {
  TimedOptions options;
  options.names = names;
  options.timed = text.kernels == "timed";
  for (const auto& [name, given] : {std::pair{"--kernel-us", !text.kernel_us.empty()},
                                    std::pair{"--slow", !text.slow.empty()}}) {
    if (given && !options.timed) throw InputError(fmt::format("{}: needs --kernels timed", name));
  }
  if (!text.kernel_us.empty()) {
    if (text.kernel_us.size() != names.size()) {
      throw InputError(fmt::format("--kernel-us: needs {} times, of {}; there are {}", names.size(),
                                   fmt::join(names, ","), text.kernel_us.size()));
    }
    options.times = text.kernel_us;
    for (double& time : *options.times) time *= 1e-6;
  }
  if (!text.slow.empty()) options.slow = parse_slow(text.slow);
  return options;
}

}  // namespace tiled
