// SPDX-License-Identifier: BSD-3-Clause
#include "base/arch.hpp"

namespace imbrex::base {

// Registered before main() and before any thread of ours: every later thread is covered.
const bool membarrier_works =
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;

double ticks_per_microsecond() noexcept {
  static const double rate = [] {
    const std::uint64_t begin_ns = monotonic_ns();
    const std::uint64_t begin = ticks();
    while (monotonic_ns() - begin_ns < 200'000) {
    }
    return static_cast<double>(ticks() - begin) /
           (static_cast<double>(monotonic_ns() - begin_ns) * 1e-3);
  }();
  return rate;
}

}  // namespace imbrex::base
