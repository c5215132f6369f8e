// SPDX-License-Identifier: BSD-3-Clause
#include "base/arch.hpp"

namespace imbrex::base {

// Registered before main() and before any thread of ours: every later thread is covered.
const bool membarrier_works =
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;

}  // namespace imbrex::base
