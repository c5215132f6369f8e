// SPDX-License-Identifier: BSD-3-Clause
// The threads that become members of teams. Each thread of the program keeps the threads of its
// outermost regions, in their order, so that threadprivate variables and thread numbers stay
// together. Nested regions borrow threads, which come back when they have left the team.
//
// Thread safety: any thread calls the functions. The owner of a PoolThread writes its team and
// number, before `assigned`; the thread reads them after it has seen that.
#pragma once

#include <atomic>
#include <vector>

namespace imbrex::omp {

struct Team;
class Waking;  // gate.hpp

struct PoolThread {
  std::atomic<unsigned> assigned{0};  // grows by one with each region
  Team* team = nullptr;
  int number = 0;
  bool borrowed = false;              // goes back by itself after the region
  int place = -1;                     // place that it is bound to; only itself uses it
  PoolThread* next = nullptr;         // link in the list of free threads
};

// Gives a free thread, or a new one. Ends the program if the system gives no more.
[[nodiscard]] PoolThread& take_thread();
// Ends these threads, as soon as they have left their teams.
void end_threads(std::vector<PoolThread*>& threads) noexcept;
// In a child of fork: none of the threads exists.
void forget_threads() noexcept;
void give_back(const std::vector<PoolThread*>& threads) noexcept;
// Makes `thread` member `number` of `team`, as soon as it has left its last team, and `waking` has
// ended.
void assign(PoolThread& thread, Team& team, int number, Waking& waking) noexcept;

}  // namespace imbrex::omp
