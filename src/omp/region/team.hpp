// SPDX-License-Identifier: BSD-3-Clause
// Parallel regions and barriers.
//
// Why a barrier waits for all tasks of the team, as it must: each member first waits for its own
// descendants, then comes to the meeting. When all have come, no code is left that could create a
// task, because every task is a descendant of a member.
#pragma once

#include "omp/region/context.hpp"
#include "omp/tools/events.hpp"

namespace imbrex::omp {

// The arguments of GOMP_parallel and its variants. `first`: a worksharing construct in which every
// member begins, or null; owned.
struct Region {
  Function function;
  void* data;
  unsigned threads;  // the clause; 0: none
  unsigned flags = 0;
  Share* first = nullptr;
};

// Suspends until the region has ended.
void parallel(const Region& region);
// parallel() in two parts: between them the caller itself executes the part of member 0.
void begin_parallel(const Region& region);
void end_parallel();
// parallel(); calls `prepare` with the team before any member begins.
using Prepare = void (*)(Team& team, void* argument);
int parallel_prepared(const Region& region, Prepare prepare, void* argument);

// The initial variables of members of a region inside `context`.
[[nodiscard]] Variables inner_variables(const Context& context, unsigned flags);

// Sets the numbers of threads for regions inside of `team`, before its members begin.
// REQUIRES: there is one at least.
void list_threads(Team& team, std::vector<int> inside);

// Subtracts one from the present members; the last one frees the team.
void let_go(Team& team) noexcept;

// Called on a thread of the pool: executes the part of member `number` of `team`.
void run_member(Team& team, int number);

// Suspends until all members have come and all tasks are complete.
void barrier(Context& context);
// barrier() of which a tool hears, as of one of this kind.
void barrier_told(Context& context, tools::Sync kind);
// barrier_told() for the function of a face that this is inlined into.
[[gnu::cold]] void barrier_heard(tools::Sync kind, tools::Call call);
[[gnu::always_inline]] inline void barrier_here(const tools::Sync kind) {
  if (tools::on()) [[unlikely]] return barrier_heard(kind, tools::this_call());
  barrier(current());
}
// barrier_told(); true, perhaps early, if the region has been cancelled.
[[nodiscard]] bool barrier_or_cancelled(Context& context, tools::Sync kind);
void cancel_region(Context& context) noexcept;

}  // namespace imbrex::omp
