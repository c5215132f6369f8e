// SPDX-License-Identifier: BSD-3-Clause
// Sleeping as long as something would compute. Knows nothing of what.
#pragma once

namespace tiled {

// Blocks the calling thread, to within what the system needs to wake it.
void sleep_precisely(double seconds) noexcept;

}  // namespace tiled
