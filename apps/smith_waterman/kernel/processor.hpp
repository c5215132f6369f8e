// SPDX-License-Identifier: BSD-3-Clause
// What this processor has. processor_x86.cpp or processor_other.cpp, as CMakeLists.txt picks.
#pragma once

namespace smith_waterman {

// What x86-64-v3 asks for.
[[nodiscard]] bool processor_has_v3() noexcept;

}  // namespace smith_waterman
