// SPDX-License-Identifier: BSD-3-Clause
// The data of one worker of a pool: its stack, its times and its pace.
//
// Thread safety: one task uses it, and others when that has ended.
#pragma once

#include <cstdint>
#include <utility>

#include "base/arch.hpp"
#include "distributed/pool/pace.hpp"
#include "distributed/pool/rank_pool.hpp"

namespace imbrex::distributed {

struct Pool::Worker {
  detail::ItemStack stack;
  Pace pace;

  Worker(const int index, const Options& options)
      : pace(options.item_bytes, options.chunk, options.interval) {
    stack.worker = index;
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
    if (items != 0) pace.adapt(items, ns);
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
  std::uint64_t items_ = 0, work_ns_ = 0, overhead_ns_ = 0, search_ns_ = 0, idle_ns_ = 0;
  std::uint64_t last_ns_ = 0;
  bool has_worked_ = false;
};

}  // namespace imbrex::distributed
