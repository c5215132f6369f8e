// SPDX-License-Identifier: BSD-3-Clause
// The time on processors that the control groups of this process may use: `cpu.max` of version 2,
// `cpu.cfs_quota_us` of version 1. Containers and batch systems limit processes in this way, and
// the affinity mask does not show the limit.
#pragma once

#include <string>

namespace imbrex::base {

// Returns the smallest quota of the process's group and the groups around it, in processors; 0 if
// there is no limit. A file that is absent or malformed sets no limit. All files are looked for
// below `root`, which is empty outside of tests.
[[nodiscard]] double processor_quota(const std::string& root);

// The number of threads that use the time of a quota above 0: rounded up, at least 1.
[[nodiscard]] int threads_for(double quota) noexcept;
// The part of `threads` for one of `count` processes that divide them, by its index; at least 1.
[[nodiscard]] int part_of(int threads, int index, int count) noexcept;

}  // namespace imbrex::base
