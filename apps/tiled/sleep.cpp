// SPDX-License-Identifier: BSD-3-Clause
#include "sleep.hpp"

#include <sys/prctl.h>

#include <cerrno>
#include <cmath>
#include <ctime>

namespace tiled {

void sleep_precisely(const double seconds) noexcept {
  // The kernel rounds an ordinary thread's wake-ups up to 50 us otherwise.
  (void)prctl(PR_SET_TIMERSLACK, 1UL);
  timespec until{};
  clock_gettime(CLOCK_MONOTONIC, &until);
  const auto nanoseconds = until.tv_nsec + std::llround(seconds * 1e9);
  until.tv_sec += nanoseconds / 1'000'000'000;
  until.tv_nsec = nanoseconds % 1'000'000'000;
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

}  // namespace tiled
