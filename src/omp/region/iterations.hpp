// SPDX-License-Identifier: BSD-3-Clause
// The iterations of a loop, of `long` or `unsigned long long`, for worksharing and for taskloop.
#pragma once

#include <cstdint>

namespace imbrex::omp {

using Ull = unsigned long long;

// Iterations are numbered from 0, whatever the loop's variable is: chunks are ranges of these
// numbers.
struct Iterations {
  std::uint64_t start = 0;  // the variable's first value, as bits
  std::uint64_t end = 0;    // its bound
  std::uint64_t step = 1;   // its increment, as bits: wraps around
  std::uint64_t count = 0;
  [[nodiscard]] std::uint64_t value(const std::uint64_t number) const noexcept {
    return number == count ? end : start + number * step;
  }
};

// The number of steps of size `step` in `distance`, both unsigned.
[[nodiscard]] inline std::uint64_t steps_across(const std::uint64_t distance,
                                                const std::uint64_t step) noexcept {
  return distance == 0 ? 0 : (distance - 1) / step + 1;
}

[[nodiscard]] inline Iterations iterations_of(const long start, const long end,
                                              const long step) noexcept {
  const auto from = static_cast<std::uint64_t>(start);
  const auto to = static_cast<std::uint64_t>(end);
  const auto by = static_cast<std::uint64_t>(step);
  std::uint64_t count = 0;
  if (step > 0 && start < end) count = steps_across(to - from, by);
  if (step < 0 && start > end) count = steps_across(from - to, -by);
  return {from, to, by, count};
}

[[nodiscard]] inline Iterations iterations_of(const bool up, const Ull start, const Ull end,
                                              const Ull step) noexcept {
  std::uint64_t count = 0;
  if (up && start < end) count = steps_across(end - start, step);
  if (!up && start > end) count = steps_across(start - end, -step);
  return {start, end, step, count};
}

}  // namespace imbrex::omp
