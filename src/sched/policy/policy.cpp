// SPDX-License-Identifier: BSD-3-Clause
#include "sched/policy/policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/tables/policies.hpp"
#include "base/text/brief.hpp"
#include "imbrex/error.hpp"

namespace imbrex::sched {

namespace {

// The priority of a task that sends. Each edge before it takes one away, so that even the first
// task of the longest path of live tasks stays above tasks that lead to no send.
constexpr int highest = 1'000'000'000;
// `highest` for a policy that adds something for the urgency of a send. Each degree adds `urgent`,
// which is more than any path takes away.
constexpr int without_urgency = 500'000'000;
constexpr int urgent = 50'000'000;
// A task of an untried kind has this value times the rounds, of which there are 64: less than a
// task that sends.
constexpr int untried = 1'000'000;

using Make = std::unique_ptr<Policy>(const PolicySetup& setup, std::uint64_t seed);

template <bool graph_order>
std::unique_ptr<Policy> make_from_deques(const PolicySetup& setup, std::uint64_t) {
  return make_stealing(setup, graph_order);
}
template <Order order>
std::unique_ptr<Policy> make_from_queue(const PolicySetup& setup, std::uint64_t) {
  return make_ordered(setup, order);
}

// One function for each name of policies.def; seeded has its own file.
constexpr Make* make_default = &make_from_deques<true>;
constexpr Make* make_steal = &make_from_deques<false>;
constexpr Make* make_fifo = &make_from_queue<Order{}>;
constexpr Make* make_priority = &make_from_queue<Order{.by_priority = true, .resumed_first = true}>;
constexpr Make* make_ma1 = &make_from_queue<Order{.by_priority = true, .flow = {.marked = 1}}>;
constexpr Make* make_ma2 =
    &make_from_queue<Order{.by_priority = true, .flow = {.marked = 1, .upward = true}}>;
constexpr Make* make_ma3 = &make_from_queue<Order{
    .by_priority = true, .flow = {.marked = highest, .upward = true, .step = 1}}>;
constexpr Make* make_sa = &make_from_queue<Order{
    .by_priority = true,
    .flow = {.marked = highest, .upward = true, .step = 1, .control = true}}>;
constexpr Make* make_fa = &make_from_queue<Order{.by_priority = true,
                                                 .flow = {.marked = highest,
                                                          .upward = true,
                                                          .step = 1,
                                                          .control = true,
                                                          .learns = true,
                                                          .untried = untried}}>;
constexpr Make* make_ga = &make_from_queue<Order{.by_priority = true,
                                                 .flow = {.marked = without_urgency,
                                                          .upward = true,
                                                          .step = 1,
                                                          .control = true,
                                                          .learns = true,
                                                          .urgent = urgent,
                                                          .untried = untried}}>;

struct Named {
  std::string_view name;
  Make* make;
  std::string_view rest;
};
constexpr Named policies[] = {
#define IMBREX_POLICY(name, rest) {#name, make_##name, rest},
#include "base/tables/policies.def"
#undef IMBREX_POLICY
};

}  // namespace

std::unique_ptr<Policy> make_policy(const std::string& name, const PolicySetup& setup) {
  const std::string_view text = name;
  const std::size_t colon = std::min(text.find(':'), text.size());
  for (const Named& named : policies) {
    if (text.substr(0, colon) != named.name || (colon == text.size()) != named.rest.empty()) {
      continue;
    }
    std::uint64_t seed = 0;
    const char* const end = text.data() + text.size();
    if (colon != text.size()) {
      const auto parsed = std::from_chars(text.data() + colon + 1, end, seed);
      if (parsed.ec != std::errc() || parsed.ptr != end) break;
    }
    return named.make(setup, seed);
  }
  throw Error(fmt::format("imbrex: policy \"{}\": valid: {}", base::text::brief(name),
                          base::valid_policies));
}

}  // namespace imbrex::sched
