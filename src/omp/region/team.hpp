// SPDX-License-Identifier: BSD-3-Clause
// Parallel regions and barriers.
//
// Why a barrier waits for all tasks of the team, as it must: each member first waits for what
// descends from itself, then comes to the meeting. When all have come, nobody is left who could
// create a task: every task is a descendant of a member.
#pragma once

#include "omp/region/context.hpp"

namespace imbrex::omp {

// The arguments of GOMP_parallel and its variants. `first`: a worksharing construct that every
// member begins in, or null; owned.
struct Region {
  Function function;
  void* data;
  unsigned threads;  // the clause; 0: none
  unsigned flags = 0;
  Share* first = nullptr;
};

// Suspends until the region has ended.
void parallel(const Region& region);
// The same in two parts: the caller itself executes what member 0 does between them.
void begin_parallel(const Region& region);
void end_parallel();
// As `parallel`; `prepare` is called with the team before any member begins.
using Prepare = void (*)(Team& team, void* argument);
int parallel_prepared(const Region& region, Prepare prepare, void* argument);

// The variables that members of a region inside `context` begin with.
[[nodiscard]] Variables inner_variables(const Context& context, unsigned flags);

// Takes one from those who count as present; the last one frees the team.
void let_go(Team& team) noexcept;

// Called on a thread of the pool: does what member `number` of `team` does.
void run_member(Team& team, int number);

// Suspends until all members have come and all tasks are complete.
void barrier(Context& context);
// The same; true, perhaps early, if the region has been cancelled.
[[nodiscard]] bool barrier_or_cancelled(Context& context);
void cancel_region(Context& context) noexcept;

}  // namespace imbrex::omp
