// SPDX-License-Identifier: BSD-3-Clause
// Who gets a processor that its rank does not need. Pure: the runtime (lending.cpp) and the
// simulator share it. Knows neither shared memory nor clocks.
#pragma once

#include <algorithm>
#include <cstdint>

namespace imbrex::sched::lend::rule {

// A rank's tasks that are ready and that none of its processors runs yet.
struct Need {
  std::int64_t ready = 0;
  std::uint64_t ns_each = 0;  // time in which the rank begins one more task, with the processors
                              // that it has
};

// A wake-up of another process takes 5 us, and up to 50 us where processors sleep. A loan that
// saves less makes both ranks slower.
inline constexpr std::uint64_t worth_ns = 20'000;

[[nodiscard]] constexpr std::int64_t wanted_processors(const Need& need) noexcept {
  const auto ready = static_cast<std::uint64_t>(std::max<std::int64_t>(need.ready, 0));
  return ready * need.ns_each >= worth_ns ? need.ready : 0;
}

// The rank that gets a processor: the one that wants most. `wanted(rank)` is the number for a rank
// that may get it, and 0 for the others. Returns -1 if no rank wants one. The first rank after
// `from` is preferred among equals, so that equal needs take turns.
template <class Wanted>
[[nodiscard]] int neediest(const int ranks, const int from, const Wanted wanted) {
  int best = -1;
  std::int64_t most = 0;
  for (int step = 1; step <= ranks; ++step) {
    const int rank = (from + step) % ranks;
    const std::int64_t number = wanted(rank);
    if (number <= most) continue;
    most = number;
    best = rank;
  }
  return best;
}

// ---- when an idle worker lends its processor -------------------------------------------------

// How long a worker has been idle, and why it is still awake.
struct Idle {
  std::uint64_t ns = 0;
  bool polls = false;         // it polls for all workers of its rank: its processor is lent last
  bool wanted = false;        // another rank wants a processor
};
inline constexpr std::uint64_t soon_ns = 5'000;

// True if the worker does not wait for the end of its usual idle phase (`spin_ns`).
[[nodiscard]] constexpr bool lends_now(const Idle& idle, const std::uint64_t spin_ns) noexcept {
  return idle.wanted && idle.ns >= (idle.polls ? std::max(soon_ns, spin_ns) : soon_ns);
}

// The pause between two polls of a worker without a processor, after `silence_us` without a
// completion. A message waits at most a 16th longer than it has already been waited for; a poll
// takes about 10 us of the borrower's processor, so at most a fifth at first and 1 % later.
[[nodiscard]] constexpr std::uint64_t poll_pause_us(const std::uint64_t silence_us) noexcept {
  return std::clamp<std::uint64_t>(silence_us / 16, 50, 1000);
}

}  // namespace imbrex::sched::lend::rule
