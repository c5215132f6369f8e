// SPDX-License-Identifier: BSD-3-Clause
// The modes of floating-point arithmetic that follow a fiber: rounding, flush to zero, traps. The
// switch of Boost.Context keeps them on x86-64 and not on AArch64. Knows no fiber.
#pragma once

#include <cfenv>
#include <cstdint>

namespace imbrex::fiber {

#if defined(__aarch64__)

inline void save_modes(std::uint32_t& modes) noexcept {
  std::uint64_t present;
  asm volatile("mrs %0, fpcr" : "=r"(present));
  modes = static_cast<std::uint32_t>(present);
}
inline void restore_modes(const std::uint32_t modes) noexcept {
  std::uint32_t present;
  save_modes(present);
  if (present == modes) [[likely]] return;  // a write waits for earlier arithmetic
  asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{modes}));
}
[[nodiscard]] inline std::uint32_t modes_of(const std::fenv_t& floating_point) noexcept {
  return floating_point.__fpcr;
}

#else

inline void save_modes(std::uint32_t&) noexcept {}
inline void restore_modes(std::uint32_t) noexcept {}
[[nodiscard]] inline std::uint32_t modes_of(const std::fenv_t&) noexcept { return 0; }

#endif

}  // namespace imbrex::fiber
