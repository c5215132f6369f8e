// SPDX-License-Identifier: BSD-3-Clause
#include "base/arch.hpp"

namespace imbrex::base {

namespace {
// Registered before main() and before any thread of ours: every later thread is covered.
const bool registered =
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}  // namespace

bool membarrier_works() noexcept { return registered; }

}  // namespace imbrex::base
