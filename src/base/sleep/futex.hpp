// SPDX-License-Identifier: BSD-3-Clause
// The futex calls of Linux, for words of one process, or in memory that processes of a node share.
// A futex has 32 bits, of which each sleeper names some; a call wakes those that name one of its
// own.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

#include "base/arch.hpp"

namespace imbrex::base {

constexpr std::uint32_t any_bit = FUTEX_BITSET_MATCH_ANY;

// Which threads may use a futex.
enum class Reach : std::uint8_t { process, node };

// The end of a time that begins now, on the monotonic clock; 0: no limit.
[[nodiscard]] inline std::uint64_t time_after(const std::uint64_t ns) noexcept {
  return ns == 0 ? 0 : monotonic_ns() + ns;
}

// Waits while `word` has `value`, for a call that wakes one of `bits`, until a time of the
// monotonic clock (0: no limit). May return early.
template <Reach reach = Reach::process>
void futex_wait(std::atomic<std::uint32_t>& word, const std::uint32_t value,
                const std::uint64_t until_ns, const std::uint32_t bits) noexcept {
  constexpr int call = reach == Reach::process ? FUTEX_WAIT_BITSET_PRIVATE : FUTEX_WAIT_BITSET;
  const timespec time{static_cast<time_t>(until_ns / 1'000'000'000),
                      static_cast<long>(until_ns % 1'000'000'000)};
  syscall(SYS_futex, &word, call, value, until_ns == 0 ? nullptr : &time, nullptr, bits);
}

template <Reach reach = Reach::process>
void futex_wake(std::atomic<std::uint32_t>& word, const std::uint32_t bits) noexcept {
  constexpr int call = reach == Reach::process ? FUTEX_WAKE_BITSET_PRIVATE : FUTEX_WAKE_BITSET;
  syscall(SYS_futex, &word, call, INT_MAX, nullptr, nullptr, bits);
}

}  // namespace imbrex::base
