// SPDX-License-Identifier: BSD-3-Clause
// Worksharing loops and single, apart from the form in which a compiler calls them.
//
// Thread safety: a member calls the functions for itself.
#pragma once

#include <cstdint>

#include "omp/region/share.hpp"
#include "omp/tools/events.hpp"

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
void begin_sections(Implicit& member, std::uint64_t count);
// The member's loop or sections end at a barrier, of which a tool hears.
[[gnu::cold]] void end_loop_heard(tools::Call call);
// Waits until all iterations before the member's ordered chunk are done. Suspends.
void wait_for_turn(const Implicit& member);
// The running member's ordered region ends. Only a tool hears of it.
void end_turn();

// True for the member that executes the next single.
[[nodiscard]] bool take_single(Context& context) noexcept;

}  // namespace imbrex::omp
