// SPDX-License-Identifier: BSD-3-Clause
// What this processor has. processor_x86.cpp or processor_other.cpp, as CMakeLists.txt picks.
#pragma once

namespace smith_waterman {

// Returns whether the processor has all instructions of x86-64-v3.
[[nodiscard]] bool processor_has_v3() noexcept;

}  // namespace smith_waterman
