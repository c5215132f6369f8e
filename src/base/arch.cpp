// SPDX-License-Identifier: BSD-3-Clause
#include "base/arch.hpp"

namespace imbrex::base {

const std::size_t page_bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

// Registered before main() and before imbrex starts a thread, so every later thread is covered.
const bool membarrier_works =
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;

Moment read_clocks(const clockid_t clock) noexcept {
  Moment moment{};
  std::uint64_t closest = UINT64_MAX;
  for (int reading = 0; reading < 5; ++reading) {
    const std::uint64_t before = ticks();
    const std::uint64_t ns = clock_ns(clock);
    const std::uint64_t took = ticks() - before;
    if (took >= closest) continue;
    closest = took;
    moment = {.ticks = before + took / 2, .ns = ns};
  }
  return moment;
}

double measure_ticks_per_microsecond() noexcept {
  const Moment begin = read_clocks(CLOCK_MONOTONIC);
  while (monotonic_ns() - begin.ns < 200'000) {
  }
  const Moment end = read_clocks(CLOCK_MONOTONIC);
  return static_cast<double>(end.ticks - begin.ticks) /
         (static_cast<double>(end.ns - begin.ns) * 1e-3);
}

double ticks_per_microsecond() noexcept {
  static const double rate = measure_ticks_per_microsecond();
  return rate;
}

}  // namespace imbrex::base
