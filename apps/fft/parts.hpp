// SPDX-License-Identifier: BSD-3-Clause
// How lines are cut into parts, and what pieces of a line cost. Knows no MPI and no library of
// transforms. Also for `imbrex simulate`.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace fft {

struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;  // the one behind

  [[nodiscard]] std::int64_t size() const noexcept { return last - first; }
  friend bool operator==(const Range&, const Range&) = default;
};

// `count` things in at most `parts` ranges of nearly equal length, none empty.
[[nodiscard]] inline std::vector<Range> cut(std::int64_t count, int parts) {
  std::vector<Range> ranges;
  const std::int64_t number = std::min<std::int64_t>(count, parts);
  for (std::int64_t i = 0; i < number; ++i) {
    ranges.push_back({count * i / number, count * (i + 1) / number});
  }
  return ranges;
}

// The share of a line's time that joins its `pieces`: the butterflies over pieces, and a pass over
// all `n` points.
[[nodiscard]] inline double joined_share(std::int64_t n, int pieces) noexcept {
  if (pieces == 1) return 0;
  return std::min(1.0, (1 + std::log2(pieces)) / std::log2(static_cast<double>(n)));
}

}  // namespace fft
