// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/threads/patience.hpp"

#include <algorithm>

namespace imbrex::mpi::threads {

void Patience::begin(const Polls& polls, const std::uint64_t gap_ns) noexcept {
  patience_ns_ = polls.apart_ns < gap_ns ? gap_ns : gap_ns / 8;
  looked_ = false;
}

std::uint64_t Patience::nap_ns(const Polls& polls, const std::uint64_t gap_ns) noexcept {
  if (patience_ns_ == 0) begin(polls, gap_ns);  // it has not slept: something was outstanding
  if (looked_ && polls.age_ns < patience_ns_) {  // a worker has polled since
    begin(polls, gap_ns);
    if (polls.apart_ns < gap_ns) {
      looked_ = true;
      return rests * gap_ns;
    }
  }
  looked_ = polls.age_ns < patience_ns_;
  if (looked_) return patience_ns_ - polls.age_ns;
  patience_ns_ = std::min(4 * patience_ns_, gap_ns);
  return 0;
}

}  // namespace imbrex::mpi::threads
