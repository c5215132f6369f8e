// SPDX-License-Identifier: BSD-3-Clause
// When the thread of mode auto polls beside workers that compute. Pure: knows neither clock nor
// thread.
#pragma once

#include <cstdint>

namespace imbrex::mpi::threads {

// A wake-up costs the worker on this processor far more than a poll (some 30 microseconds on a
// virtual machine), so there are few. Where tasks are short, workers poll themselves, and the
// thread only looks now and then whether they still do.
class Patience {
 public:
  struct Polls {
    std::uint64_t age_ns;    // since the last poll of anybody
    std::uint64_t apart_ns;  // between two of a busy worker, the longest of late
  };

  // Called when the thread has slept. An operation that has just begun may need an answer, and
  // among long tasks nobody else will give it soon.
  void begin(const Polls& polls, std::uint64_t gap_ns) noexcept;

  // How long the thread shall nap; 0: poll now. To be asked after each nap and each poll.
  [[nodiscard]] std::uint64_t nap_ns(const Polls& polls, std::uint64_t gap_ns) noexcept;

  static constexpr std::uint64_t rests = 4;  // gaps

 private:
  std::uint64_t patience_ns_ = 0;  // without a poll, until it polls; 0: has not begun
  bool looked_ = false;            // at the age of the last poll, since it polled or slept
};

}  // namespace imbrex::mpi::threads
