// SPDX-License-Identifier: BSD-3-Clause
// The steps of this rank for what is no task: combinations of reductions, flushes, moves, discards,
// and the decisions by which a task ends the loop on all ranks.
#include <algorithm>
#include <memory>
#include <utility>

#include "distributed/data/loop/data_loop.hpp"

namespace imbrex::distributed {

using detail::AccessKind;

void Loop::merge(const Entry& entry, const Merging& merging) {
  LoopStep& step = add(std::make_unique<MergeStep>(entry.place(), merging));
  const bool leaves = merging.takes || merging.renews;
  step.accesses.emplace_back(merging.from, leaves ? AccessKind::inout : AccessKind::in);
  step.accesses.emplace_back(
      merging.to, merging.reduction != nullptr ? AccessKind::inout : AccessKind::out);
}

// ---- reductions ------------------------------------------------------------------------------

// A reduction that goes on from one period into the next has other members in the first one. A
// value that is there in later periods only is the identity in the first one.
void Loop::make_combination(const Entry& entry, LoopDatum& datum) {
  const std::vector<int>& reducers = datum.now.reducers;
  const bool adds_first = entry.adds || entry.adds_first;
  if (entry.first_reducers == reducers && adds_first == entry.adds) {
    return combine(entry, datum, {reducers, entry.adds, Rounds::all});
  }
  combine(entry, datum, {entry.first_reducers, adds_first, Rounds::first});
  combine(entry, datum, {reducers, entry.adds, Rounds::later});
}

namespace {
[[nodiscard]] bool has(const std::vector<int>& ranks, const int rank) noexcept {
  return std::ranges::find(ranks, rank) != ranks.end();
}
}  // namespace

// The tree is that of DataSpace::combine().
void Loop::combine(const Entry& entry, LoopDatum& datum, const Combination& combination) {
  const int me = space_.rank();
  const std::vector<int>& reducers = combination.reducers;
  if (reducers.empty() || (me != entry.rank && !has(reducers, me))) return;
  std::vector<int> members{entry.rank};
  for (const int rank : reducers) {
    if (rank != entry.rank) members.push_back(rank);
  }
  const auto place = std::ranges::find(members, me) - members.begin();
  rounds_ = combination.rounds;
  combine_here(entry, datum, members, static_cast<std::size_t>(place), combination);
  rounds_ = Rounds::all;
}

void Loop::combine_here(const Entry& entry, LoopDatum& datum, const std::span<const int> members,
                        const std::size_t place, const Combination& combination) {
  const detail::DataReduction* const reduction = entry.accesses.front().reduction;
  const bool reduces = has(combination.reducers, space_.rank());
  const bool adds = place == 0 && combination.adds;
  Slot& into = adds ? mine(datum) : partial(datum);
  if (adds && reduces) {
    merge(entry, {.to = &into, .from = &partial(datum), .reduction = reduction, .renews = true});
  } else if (!adds && !reduces) {  // the root of later periods
    add(std::make_unique<DropStep>(entry.place(), into, reduction))
        .accesses.emplace_back(&into, AccessKind::inout);
  }
  for (std::size_t step = 1; (place & step) == 0 && place + step < members.size(); step *= 2) {
    Slot& other = make_slot(*datum.datum);
    receive(entry, members[place + step], other);
    merge(entry, {.to = &into, .from = &other, .reduction = reduction});
  }
  if (place != 0) {
    const LoopReader parent{members[place & (place - 1)], entry.priority};
    send(entry, into, {&parent, 1}).renew();
  } else if (!adds) {
    merge(entry, {.to = &mine(datum), .from = &into, .takes = true, .renews = true});
  }
}

void LoopDatum::clear_start() {
  at_start->copy->trouble = nullptr;
  if (first_reduction != nullptr) clear(*at_start->copy, *first_reduction);
}

// ---- movement --------------------------------------------------------------------------------

void Loop::make_flush(const Entry& entry, LoopDatum& datum) {
  const bool is_at_home = datum.here == &mine(datum) || datum.datum->home == nullptr;
  if (entry.rank != space_.rank() || is_at_home) return;
  merge(entry, {.to = datum.mine, .from = datum.here});
  datum.here = datum.mine;
}

void Loop::make_move(const Entry& entry, LoopDatum& datum) {
  if (entry.rank != space_.rank() || datum.now.source < 0 || datum.now.source == entry.rank ||
      datum.here == &mine(datum)) {
    return;
  }
  merge(entry, {.to = datum.mine, .from = datum.here, .takes = true});
}

// Elements that were added are dropped, too.
void Loop::make_discard(const Entry& entry, LoopDatum& datum) {
  const int me = space_.rank();
  if (!has(datum.now.reducers, me) && !has(entry.first_reducers, me)) return;
  add(std::make_unique<DropStep>(entry.place(), partial(datum), nullptr))
      .accesses.emplace_back(datum.partial, AccessKind::inout);
}

// ---- decisions -------------------------------------------------------------------------------

// All ranks learn it in the iteration of the task, as if a task on each of them read it.
void Loop::make_decision(const Entry& entry) {
  if (decision_ == nullptr) return;
  if (entry.rank != space_.rank()) {
    receive(entry, entry.rank, *decision_);
    add(std::make_unique<DecisionStep>(entry.place(), *decision_, end_))
        .accesses.emplace_back(decision_, AccessKind::in);
    return;
  }
  std::vector<LoopReader> others;
  for (int rank = 0; rank < space_.ranks(); ++rank) {
    if (rank != entry.rank) others.push_back({rank, entry.priority});
  }
  (void)send(entry, *decision_, others);
}

}  // namespace imbrex::distributed
