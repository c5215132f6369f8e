// SPDX-License-Identifier: BSD-3-Clause
// Finds OpenMP runtimes beside ours in the process, and says so: what was compiled for them does
// not run on imbrex, and nobody would see why.
//
// Thread safety: any thread.
#pragma once

namespace imbrex::omp {

// At load: also a program that our functions do not reach.
void look_for_others();
// Again, for libraries that came by dlopen(): next to nothing if none did.
void look_for_new_others();

}  // namespace imbrex::omp
