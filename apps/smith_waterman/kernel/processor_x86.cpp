// SPDX-License-Identifier: BSD-3-Clause
#include "processor.hpp"

namespace smith_waterman {

bool processor_has_v3() noexcept {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi") != 0 &&
         __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("fma") != 0;
}

}  // namespace smith_waterman
