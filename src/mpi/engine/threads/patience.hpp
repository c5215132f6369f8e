// SPDX-License-Identifier: BSD-3-Clause
// When the thread of mode auto polls beside computing workers. Pure: knows neither clock nor
// thread.
#pragma once

#include <cstdint>

namespace imbrex::mpi::threads {

// A wake-up costs the worker on this processor far more than a poll (some 30 microseconds on a
// virtual machine), so there are few. Where tasks are short, workers poll themselves, and the
// thread only checks now and then that they still do.
class Patience {
 public:
  struct Polls {
    std::uint64_t age_ns;    // since the last poll by any thread
    std::uint64_t apart_ns;  // between two polls of a busy worker, the longest of late
  };

  // Called when the thread has slept. An operation that has just begun may need a response, which
  // among long tasks no worker gives soon.
  void begin(const Polls& polls, std::uint64_t gap_ns) noexcept;

  // How long the thread shall nap; 0: poll now. Call it after each nap and each poll.
  [[nodiscard]] std::uint64_t nap_ns(const Polls& polls, std::uint64_t gap_ns) noexcept;

  static constexpr std::uint64_t rests = 4;  // gaps

 private:
  std::uint64_t patience_ns_ = 0;  // time without a poll until the thread polls; 0: not begun
  bool looked_ = false;            // has read the age of the last poll, since it polled or slept
};

}  // namespace imbrex::mpi::threads
