// SPDX-License-Identifier: BSD-3-Clause
// Worksharing loops and single, apart from the form in which a compiler calls them.
//
// Thread safety: a member calls the functions for itself.
#pragma once

#include <cstdint>

#include "omp/region/share.hpp"

namespace imbrex::omp {

// How a loop is cut. `chunk`: as Share::chunk.
struct Plan {
  Schedule schedule;
  std::uint64_t chunk = 0;
};
// The plan of a loop whose clause gives this schedule and this chunk (0: none); runtime and
// automatic are resolved.
[[nodiscard]] Plan plan_of(Schedule schedule, std::uint64_t chunk);

[[nodiscard]] Share& make_share(const Iterations& iterations, Plan plan);
// Makes the loop the member's present construct. share.hpp gives the chunks.
void begin_loop(Implicit& member, const Iterations& iterations, Plan plan);
// Waits until all iterations before the member's ordered chunk are done. Suspends.
void wait_for_turn(const Implicit& member);

// True for the member that executes the next single.
[[nodiscard]] bool take_single(Context& context) noexcept;

}  // namespace imbrex::omp
