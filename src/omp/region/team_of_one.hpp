// SPDX-License-Identifier: BSD-3-Clause
// A parallel region in a function that MPI calls, or after the end of the runtime. The function
// belongs to no task, may hold locks of MPI, and must not be suspended. The region is therefore a
// team of one, which has no group of the runtime and creates no task there. Its tasks are calls.
// Used by team.cpp.
//
// Thread safety: only its thread uses a region.
#pragma once

#include "omp/region/team.hpp"

namespace imbrex::omp {

// Begins such a region; the calling code is its only member until end_team_of_one(). REQUIRES:
// the code stands in no task of the runtime.
void begin_team_of_one(const Region& region, Prepare prepare, void* argument);
// Ends the innermost such region.
void end_team_of_one(Context& context);

}  // namespace imbrex::omp
