// SPDX-License-Identifier: BSD-3-Clause
// Locks of windows (MPI_Win_lock) that a rank waits for, and another one holds while it waits, too.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "diagnosis/survey.hpp"

namespace imbrex::diagnosis {

namespace {

// The wait of the lock's task in a call on a window; null: there is none.
const Wait* wait_of(const RankFacts& facts, const WindowLock& lock) {
  const auto found = std::ranges::find_if(facts.waits, [&](const Wait& wait) {
    return wait.task == lock.task && wait.call.starts_with("MPI_Win_");
  });
  return found == facts.waits.end() ? nullptr : &*found;
}

// Whether that wait is for this lock. MPI_Win_lock asks for the last one. Some MPIs
// ask later, in any call on the window: then it may be any of them.
bool is_wanted(const RankFacts& facts, const WindowLock& lock) {
  const Wait* const wait = wait_of(facts, lock);
  if (wait == nullptr) return false;
  return !wait->call.starts_with("MPI_Win_lock") || &lock == &facts.locks.back();
}

bool is_in_the_way(const WindowLock& held, const WindowLock& wanted) {
  const bool overlap = held.target == wanted.target || held.target == any || wanted.target == any;
  return overlap && (held.is_exclusive || wanted.is_exclusive) && is_same(held.window,
                                                                         wanted.window);
}

std::string part_of(const WindowLock& lock) {
  const std::string of = lock.window.is_named ? fmt::format("window \"{}\"", lock.window.name)
                                              : "a " + lock.window.name;
  return lock.target == any ? of : fmt::format("rank {}'s part of {}", lock.target, of);
}

// A lock of another rank.
struct Held {
  const RankFacts* holder;
  const WindowLock* lock;
};

// The locks in the way of a wait.
std::vector<Held> find_in_the_way(const Survey& survey, const RankFacts& waiting) {
  std::vector<Held> found;
  for (const RankFacts& holder : survey.all()) {
    if (&holder == &waiting) continue;
    for (const WindowLock& lock : holder.locks) {
      const bool hinders = std::ranges::any_of(waiting.locks, [&](const WindowLock& wanted) {
        return is_wanted(waiting, wanted) && is_in_the_way(lock, wanted);
      });
      if (hinders && !is_wanted(holder, lock)) found.push_back({&holder, &lock});
    }
  }
  return found;
}

}  // namespace

void find_window_locks(const Survey& survey, Findings& findings) {
  for (const RankFacts& waiting : survey.all()) {
    const auto wanted = std::ranges::find_if(waiting.locks, [&](const WindowLock& lock) {
      return is_wanted(waiting, lock);
    });
    if (wanted == waiting.locks.end()) continue;
    const std::vector<Held> held = find_in_the_way(survey, waiting);
    if (held.empty()) continue;
    const auto& [holder, lock] = held.front();
    std::vector<int> ranks{waiting.rank, holder->rank};
    std::ranges::sort(ranks);
    // Unnamed windows of the same ranks cannot be told apart; nor need they where one lock is held.
    const bool is_known = held.size() == 1 || is_certain(lock->window);
    findings.push_back(
        {Cause::held_lock, survey.all_stopped() && is_known,
         fmt::format("rank {} {}, and needs the lock of {}, which rank {} keeps since its {} in "
                     "{}: {}",
                     waiting.rank, phrase(*wait_of(waiting, *wanted)), part_of(*lock),
                     holder->rank, lock->target == any ? "MPI_Win_lock_all" : "MPI_Win_lock",
                     lock->task_text, survey.state_of(holder->rank)),
         "Give the lock back (MPI_Win_unlock) before a wait for other ranks, or let the other rank "
         "ask for it after that wait",
         ranks});
  }
}

}  // namespace imbrex::diagnosis
