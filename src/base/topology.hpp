// SPDX-License-Identifier: BSD-3-Clause
// Which processors this process may use, and which are near to each other; from hwloc.
#pragma once

#include <vector>

namespace imbrex::base {

// Operating-system numbers of the processors in this process's affinity mask, neighbours first.
[[nodiscard]] std::vector<int> allowed_processors();

// For each of `processors` the positions of the others, nearest first (sharing a core, then a
// cache, then a package, then the machine).
[[nodiscard]] std::vector<std::vector<int>> nearest_first(const std::vector<int>& processors);

// Binds the calling thread; false if the system refuses.
bool bind_thread(int processor) noexcept;

}  // namespace imbrex::base
