// SPDX-License-Identifier: BSD-3-Clause
// Finds other OpenMP runtimes in the process, and reports them: code that was compiled for them
// does not run on imbrex. Also tells whether other code of the process uses imbrex.
//
// Thread safety: any thread.
#pragma once

#include <atomic>

namespace imbrex::omp {

// Called at load. Also reports a program whose calls do not reach this library. Returns whether the
// program, or a library that it has loaded by now, was linked with libgomp or libomp.
[[nodiscard]] bool look_for_others();
// Checks again, for libraries that came by dlopen(). This costs next to nothing if none came.
void look_for_new_others();
// In a child of fork: another thread of the parent may just have been looking.
void forget_look() noexcept;

// True unless other code uses imbrex (its MPI library, a program that calls it), as of the last
// check above: tasks then wait for each other only through OpenMP's own constructs.
extern std::atomic<bool> openmp_only;
[[nodiscard]] inline bool only_openmp_waits() noexcept {
  return openmp_only.load(std::memory_order_relaxed);
}

}  // namespace imbrex::omp
