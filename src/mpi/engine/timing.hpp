// SPDX-License-Identifier: BSD-3-Clause
// The number and duration of polls and callbacks, from the first request for them on. Used by
// progress.cpp, notice.cpp and init_and_finalize.cpp; knows neither polls nor callbacks.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/arch.hpp"

namespace imbrex::mpi::progress {

inline std::atomic<bool> timing{false};  // any thread; relaxed: a late reader misses one

// Thread safety: any thread. The two may be read a moment apart.
struct Spent {
  std::atomic<std::uint64_t> count{0};  // relaxed, as all statistics are
  std::atomic<std::uint64_t> ns{0};

  [[nodiscard]] double seconds() const noexcept {
    return 1e-9 * static_cast<double>(ns.load(std::memory_order_relaxed));
  }
};
inline Spent polls_spent;      // of the engine, by any thread
inline Spent callbacks_spent;  // of MPI, for completions

// Counts and times its own life; costs one load if timing is off.
class Timed {
 public:
  explicit Timed(Spent& spent) noexcept
      : spent_(timing.load(std::memory_order_relaxed) ? &spent : nullptr),
        begin_ns_(spent_ == nullptr ? 0 : base::monotonic_ns()) {}
  ~Timed() {
    if (spent_ == nullptr) return;
    spent_->count.fetch_add(1, std::memory_order_relaxed);
    spent_->ns.fetch_add(base::monotonic_ns() - begin_ns_, std::memory_order_relaxed);
  }
  Timed(const Timed&) = delete;
  Timed& operator=(const Timed&) = delete;

 private:
  Spent* const spent_;
  const std::uint64_t begin_ns_;
};

}  // namespace imbrex::mpi::progress
