// SPDX-License-Identifier: BSD-3-Clause
// The data of one worker of a pool: its stack, its times, and from these the length of its slices
// and the number of items that it gives at a time.
//
// Thread safety: one task uses it, and others when that has ended.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/arch.hpp"
#include "distributed/pool/rank_pool.hpp"

namespace imbrex::distributed {

struct Pool::Worker {
  static constexpr std::uint64_t slice_ns = 100'000;
  static constexpr double chunk_ns = 2'000;
  static constexpr std::size_t chunk_max = 64;
  static constexpr std::size_t chunk_bytes_max = 16'384;  // copied under a lock

  detail::ItemStack stack;
  std::uint64_t slice = 1;  // items
  std::size_t chunk = 1;

  Worker(const int index, const Options& options)
      : options_(options),
        chunk_most_(std::clamp<std::size_t>(chunk_bytes_max / options.item_bytes, 1, chunk_max)) {
    stack.worker = index;
    if (options.interval != 0) slice = options.interval;
    if (options.chunk != 0) chunk = options.chunk;
  }

  void begin(const std::uint64_t now_ns) noexcept {
    items_ = work_ns_ = overhead_ns_ = search_ns_ = idle_ns_ = 0;
    last_ns_ = now_ns;
    has_worked_ = false;
  }
  // The time since the last call counts as overhead, work, overhead, and idle or search, in this
  // order of functions.
  void slice_begins() noexcept { overhead_ns_ += passed(); }
  void slice_ended(const std::uint64_t items) noexcept {
    const std::uint64_t ns = passed();
    work_ns_ += ns;
    items_ += items;
    if (items != 0) adapt(items, std::max<std::uint64_t>(ns, 1));
  }
  void search_begins() noexcept {
    if (has_worked_) overhead_ns_ += passed();
  }
  void search_ended(const bool found) noexcept {
    (found && has_worked_ ? search_ns_ : idle_ns_) += passed();
    has_worked_ = has_worked_ || found;
  }
  [[nodiscard]] WorkPoolTally tally() const noexcept {
    return {items_, seconds(work_ns_), seconds(overhead_ns_), seconds(search_ns_),
            seconds(idle_ns_)};
  }

 private:
  [[nodiscard]] static double seconds(const std::uint64_t ns) noexcept {
    return static_cast<double>(ns) * 1e-9;
  }
  [[nodiscard]] std::uint64_t passed() noexcept {
    const std::uint64_t now = base::monotonic_ns();
    return now - std::exchange(last_ns_, now);
  }
  // A slice grows slowly, since the next items may cost more, and shrinks at once.
  void adapt(const std::uint64_t items, const std::uint64_t ns) noexcept {
    const double item_ns = static_cast<double>(ns) / static_cast<double>(items);
    if (options_.interval == 0) {
      const auto right = static_cast<std::uint64_t>(static_cast<double>(slice_ns) / item_ns);
      slice = std::clamp<std::uint64_t>(right, 1, 2 * slice);
    }
    if (options_.chunk == 0) {
      chunk = std::clamp<std::size_t>(static_cast<std::size_t>(chunk_ns / item_ns), 1, chunk_most_);
    }
  }

  const Options& options_;
  const std::size_t chunk_most_;
  std::uint64_t items_ = 0, work_ns_ = 0, overhead_ns_ = 0, search_ns_ = 0, idle_ns_ = 0;
  std::uint64_t last_ns_ = 0;
  bool has_worked_ = false;
};

}  // namespace imbrex::distributed
