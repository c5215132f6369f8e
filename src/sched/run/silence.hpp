// SPDX-License-Identifier: BSD-3-Clause
// When an idle thread that polls may nap between two polls, and for how long. Pure: knows neither
// clock nor thread. The times are those of base::ticks().
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "sched/lend/rule.hpp"

namespace imbrex::sched {

struct NapLimits {
  std::uint64_t us = 1;       // ticks of a microsecond
  std::uint64_t most_us = 0;  // the longest nap; 0: none
};

// The time in which polls have brought nothing. A nap takes at most a 512th of it, so that an
// operation that completes meanwhile waits only 0.2 % longer.
//
// The steps of a long message complete no operation, but a poll that moves data takes longer than
// one that finds nothing. Such polls end the silence when they make up a 16th of it. An interrupt
// also makes a poll longer, but takes far less than a 16th of the time; and a poll that takes more
// than half a millisecond has lost the processor. A poll after a nap finds cold caches, and counts
// only if it is much longer; two such polls in a row bring the naps back to the shortest one.
class Silence {
 public:
  Silence(const NapLimits limits, const std::uint64_t now) noexcept
      : limits_(limits), since_(now) {}

  // A poll has completed an operation, or the thread was woken.
  void end(const std::uint64_t now) noexcept {
    since_ = now;
    moved_ = 0;
  }

  // True if the time of each poll is to be noted.
  [[nodiscard]] bool is_long(const std::uint64_t now) const noexcept {
    return lasts(now) > noted_after_us * limits_.us;
  }

  struct Poll {
    std::uint64_t spent;
    std::uint64_t usual;  // takes a poll that finds nothing
    bool after_nap;
  };
  // A poll that found nothing has ended at `now`.
  void note_poll(const std::uint64_t now, const Poll& poll) noexcept {
    const std::uint64_t moves = 4 * poll.usual + (poll.after_nap ? 20 : 2) * limits_.us;
    const bool is_slow = poll.spent >= moves && poll.spent < displaced_us * limits_.us;
    const bool was_slow = std::exchange(was_slow_, is_slow);
    if (!is_slow) return;
    moved_ += poll.spent;
    if (moved_ >= lasts(now) / 16) return end(now);
    if (poll.after_nap && was_slow && lasts(now) > 2 * before_naps()) {
      since_ = now - before_naps();
      moved_ = poll.spent;
    }
  }

  // The microseconds that the thread may nap now; 0: none.
  [[nodiscard]] std::uint64_t nap_us(const std::uint64_t now) const noexcept {
    if (limits_.most_us == 0 || lasts(now) < before_naps()) return 0;
    return std::min(lasts(now) / limits_.us / share, limits_.most_us);
  }

  // For a worker that lends its processor meanwhile: the microseconds until its next poll. 0: it
  // does not lend yet, because a message within `spin_ticks` shall not wait for a nap.
  [[nodiscard]] std::uint64_t pause_us(const std::uint64_t now,
                                       const std::uint64_t spin_ticks) const noexcept {
    if (limits_.most_us == 0 || lasts(now) < spin_ticks) return 0;
    return lend::rule::poll_pause_us(lasts(now) / limits_.us);
  }

 private:
  static constexpr std::uint64_t share = 512;
  static constexpr std::uint64_t first_nap_us = 50;  // a shorter one is not worth its system call
  static constexpr std::uint64_t noted_after_us = 500;
  static constexpr std::uint64_t displaced_us = 500;

  [[nodiscard]] std::uint64_t before_naps() const noexcept {
    return std::min(first_nap_us, limits_.most_us) * share * limits_.us;
  }

  // `now` may be a little earlier than the last end().
  [[nodiscard]] std::uint64_t lasts(const std::uint64_t now) const noexcept {
    return now > since_ ? now - since_ : 0;
  }

  NapLimits limits_;
  std::uint64_t since_;
  bool was_slow_ = false;    // the last poll seems to have moved data
  std::uint64_t moved_ = 0;  // ticks of polls that seem to have moved data, since then
};

}  // namespace imbrex::sched
