// SPDX-License-Identifier: BSD-3-Clause
#include "sched/policy.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "imbrex/error.hpp"

namespace imbrex::sched {

std::unique_ptr<Policy> make_policy(const std::string& name, const PolicySetup& setup) {
  constexpr std::string_view seeded = "seeded:";
  if (name == "default") return make_stealing(setup, true);
  if (name == "steal") return make_stealing(setup, false);
  if (name == "fifo") return make_ordered(false);
  if (name == "priority") return make_ordered(true);
  if (name.starts_with(seeded)) {
    std::uint64_t seed = 0;
    const char* const end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + seeded.size(), end, seed);
    if (parsed.ec == std::errc() && parsed.ptr == end) return make_seeded(setup, seed);
  }
  throw Error(fmt::format(
      "imbrex: policy \"{}\": valid: default, steal, fifo, priority, seeded:<number>", name));
}

}  // namespace imbrex::sched
