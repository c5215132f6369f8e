// SPDX-License-Identifier: BSD-3-Clause
// A parallel region in a function that MPI calls. The function stands in no task, may hold locks of
// MPI's, and must not be suspended: so the region is a team of one, which is no group of the
// runtime's and creates no task there. Its tasks are calls. Used by team.cpp.
//
// Thread safety: a region is its thread's.
#pragma once

#include "omp/region/team.hpp"

namespace imbrex::omp {

// Begins such a region; the calling code is its only member until end_alone(). REQUIRES:
// detail::in_callback().
void begin_alone(const Region& region, Prepare prepare, void* argument);
// Ends the innermost one.
void end_alone(Context& context);

}  // namespace imbrex::omp
