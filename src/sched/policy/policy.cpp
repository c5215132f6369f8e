// SPDX-License-Identifier: BSD-3-Clause
#include "sched/policy/policy.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "imbrex/error.hpp"

namespace imbrex::sched {

namespace {

// The priority of a task that sends. A task before it has one less for each edge between the two,
// so that even the first one of the longest path of live tasks stays above tasks that lead to no
// send.
constexpr int highest = 1'000'000'000;
// The same where something is added for the urgency of a send. Each degree adds `urgent`, which is
// more than any path takes away.
constexpr int without_urgency = 500'000'000;
constexpr int urgent = 50'000'000;
// A task of an untried kind has this times the rounds, of which there are 64: less than a task that
// sends.
constexpr int untried = 1'000'000;

struct Named {
  std::string_view name;
  Order order;
};
constexpr Named ordered[] = {
    {"fifo", {}},
    {"priority", {.by_priority = true, .resumed_first = true}},
    {"ma1", {.by_priority = true, .flow = {.marked = 1}}},
    {"ma2", {.by_priority = true, .flow = {.marked = 1, .upward = true}}},
    {"ma3", {.by_priority = true, .flow = {.marked = highest, .upward = true, .step = 1}}},
    {"sa",
     {.by_priority = true,
      .flow = {.marked = highest, .upward = true, .step = 1, .control = true}}},
    {"fa",
     {.by_priority = true,
      .flow = {.marked = highest,
               .upward = true,
               .step = 1,
               .control = true,
               .learns = true,
               .untried = untried}}},
    {"ga",
     {.by_priority = true,
      .flow = {.marked = without_urgency,
               .upward = true,
               .step = 1,
               .control = true,
               .learns = true,
               .urgent = urgent,
               .untried = untried}}},
};

}  // namespace

std::unique_ptr<Policy> make_policy(const std::string& name, const PolicySetup& setup) {
  constexpr std::string_view seeded = "seeded:";
  if (name == "default") return make_stealing(setup, true);
  if (name == "steal") return make_stealing(setup, false);
  for (const Named& named : ordered) {
    if (name == named.name) return make_ordered(setup, named.order);
  }
  if (name.starts_with(seeded)) {
    std::uint64_t seed = 0;
    const char* const end = name.data() + name.size();
    const auto parsed = std::from_chars(name.data() + seeded.size(), end, seed);
    if (parsed.ec == std::errc() && parsed.ptr == end) return make_seeded(setup, seed);
  }
  throw Error(fmt::format("imbrex: policy \"{}\": valid: default, steal, fifo, priority, ma1, ma2, "
                          "ma3, sa, fa, ga, seeded:<number>",
                          name));
}

}  // namespace imbrex::sched
