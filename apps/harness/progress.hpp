// SPDX-License-Identifier: BSD-3-Clause
// Says on standard error, every so many seconds, how far the first rank's part of a run is.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

namespace apps {

// Thread safety: add() may be called by any number of tasks at once.
class Progress {
 public:
  // The work has `total` units, which lines call `units`; 0: nobody knows how many. If `interval_s`
  // is 0, there are no lines.
  Progress(const std::int64_t total, const char* const units, const double interval_s)
      : total_(total), units_(units), interval_s_(interval_s) {}

  // The next run, by its name.
  void begin(std::string name) {
    name_ = std::move(name);
    done_.store(0, std::memory_order_relaxed);
    reports_.store(0, std::memory_order_relaxed);
    start_ = std::chrono::steady_clock::now();
  }

  void add(const std::int64_t count) {
    if (interval_s_ <= 0) return;
    // Relaxed: counts that nothing else depends on.
    const std::int64_t done = done_.fetch_add(count, std::memory_order_relaxed) + count;
    const double passed_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    int reports = reports_.load(std::memory_order_relaxed);
    const int due = static_cast<int>(passed_s / interval_s_);
    if (due <= reports) return;
    if (!reports_.compare_exchange_strong(reports, due, std::memory_order_relaxed)) return;
    if (total_ == 0) {
      fmt::print(stderr, "{}: {:.1f} million of this rank's {} after {:.0f} s\n", name_,
                 1e-6 * static_cast<double>(done), units_, passed_s);
      return;
    }
    const double share = static_cast<double>(done) / static_cast<double>(total_);
    fmt::print(stderr, "{}: {:.1f} % of this rank's {} after {:.0f} s, about {:.0f} s to go\n",
               name_, 100 * share, units_, passed_s, passed_s * (1 - share) / share);
  }

 private:
  const std::int64_t total_;
  const char* const units_;
  const double interval_s_;
  std::string name_;
  std::chrono::steady_clock::time_point start_;
  std::atomic<std::int64_t> done_ = 0;
  std::atomic<int> reports_ = 0;  // how often; who raises it speaks
};

}  // namespace apps
