// SPDX-License-Identifier: BSD-3-Clause
// The pace of a worker of a pool: the length of its slices, and the number of items that it gives
// or takes at a time. Used by the workers of pools and by the simulator. Knows no clock.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace imbrex::distributed {

class Pace {
 public:
  std::uint64_t slice = 1;  // items
  std::size_t chunk = 1;

  // `chunk_given`, `slice_given`: by the program; 0: adapted.
  Pace(const std::size_t item_bytes, const std::uint32_t chunk_given,
       const std::uint32_t slice_given) noexcept
      : chunk_most_(std::clamp<std::size_t>(chunk_bytes_max / item_bytes, 1, chunk_max)),
        adapts_chunk_(chunk_given == 0),
        adapts_slice_(slice_given == 0) {
    if (slice_given != 0) slice = slice_given;
    if (chunk_given != 0) chunk = chunk_given;
  }

  // A slice of so many items has taken so long. A slice grows slowly, since the next items may cost
  // more, and shrinks at once. REQUIRES: items is not 0.
  void adapt(const std::uint64_t items, const std::uint64_t ns) noexcept {
    const double item_ns =
        static_cast<double>(std::max<std::uint64_t>(ns, 1)) / static_cast<double>(items);
    if (adapts_slice_) {
      const auto right = static_cast<std::uint64_t>(static_cast<double>(slice_ns) / item_ns);
      slice = std::clamp<std::uint64_t>(right, 1, 2 * slice);
    }
    if (adapts_chunk_) {
      chunk = std::clamp<std::size_t>(static_cast<std::size_t>(chunk_ns / item_ns), 1, chunk_most_);
    }
  }

 private:
  static constexpr std::uint64_t slice_ns = 100'000;
  static constexpr double chunk_ns = 2'000;
  static constexpr std::size_t chunk_max = 64;
  static constexpr std::size_t chunk_bytes_max = 16'384;  // copied under a lock

  std::size_t chunk_most_;
  bool adapts_chunk_;
  bool adapts_slice_;
};

}  // namespace imbrex::distributed
