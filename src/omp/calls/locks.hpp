// SPDX-License-Identifier: BSD-3-Clause
// The lock of critical regions and of omp_set_lock(), a word in the program's memory that is 0
// while it is free. locks.cpp says how it works.
//
// Thread safety: any thread.
#pragma once

namespace imbrex::omp {

// Takes the lock. `what`, a literal, names the wait in reports. Suspends.
void take(int& lock, const char* what);
[[nodiscard]] bool try_take(int& lock) noexcept;
// Frees the lock. REQUIRES: the caller has taken it.
void put(int& lock) noexcept;

}  // namespace imbrex::omp
