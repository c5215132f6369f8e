// SPDX-License-Identifier: BSD-3-Clause
// Finds OpenMP runtimes beside ours in the process, and says so: what was compiled for them does
// not run on imbrex, and nobody would see why. And whether anybody else here uses imbrex.
//
// Thread safety: any thread.
#pragma once

#include <atomic>

namespace imbrex::omp {

// Called at load. Also tells of a program whose calls do not reach us. Returns whether the program,
// or a library that it has loaded by now, was linked with libgomp.
[[nodiscard]] bool look_for_others();
// Looks again, for libraries that came by dlopen(). This costs next to nothing if none did.
void look_for_new_others();

// True unless something beside this library uses imbrex (its MPI library, a program that calls it),
// as seen when one of the above looked last: then tasks wait for each other only as OpenMP's own
// constructs let them.
extern std::atomic<bool> openmp_alone;
[[nodiscard]] inline bool only_openmp_waits() noexcept {
  return openmp_alone.load(std::memory_order_relaxed);
}

}  // namespace imbrex::omp
