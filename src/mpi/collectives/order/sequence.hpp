// SPDX-License-Identifier: BSD-3-Clause
// The order in which the collectives of one communicator that have keys are started on one rank.
// One rank decides it: there the order is that of arrival. The others learn it, and a start waits
// until it is the next. Knows no MPI and no task: answers whose turn it is. Used by order.cpp;
// docs/design/ordered.md argues why all ranks start the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/guarded.hpp"

namespace imbrex::mpi::order {

// The start of a collective. It stays where it is from enter() until its turn has come; the
// sequence does not touch it afterwards.
struct Start {
  std::uint64_t key = 0;
};

// Thread safety: every member, any thread.
// Invariants, under the lock: (1) `slots_` are the starts that are decided and not over, in their
// order; if `is_starting_`, the first of them has been told that it is its turn, and else it has no
// start here. (2) A key has slots without a start, or starts without a slot, or neither. (3) A
// start that has a slot got the first free one of its key: so the n-th start of a key here is the
// n-th on the rank that decides.
class Sequence {
 public:
  explicit Sequence(bool decides) noexcept : decides_(decides) {}

  // True: it is its turn, and leave() must follow. Else another call returns it once it is.
  [[nodiscard]] bool enter(Start& start);
  // The start whose turn it was is over. Whose turn it is now; null: nobody's here.
  [[nodiscard]] Start* leave() noexcept;
  // What was decided elsewhere, in that order. Whose turn it is now; null: nobody's more.
  [[nodiscard]] Start* learn(std::span<const std::uint64_t> keys);

  // What has been decided here and not been taken yet, the oldest first; how many.
  [[nodiscard]] std::size_t take_decisions(std::span<std::uint64_t> keys);
  // True if a start waits here that the other rank has not decided, as far as this one knows.
  [[nodiscard]] bool lacks_decisions();

  // It can go on no more: returns those that wait, and from now on every start has its turn at
  // once.
  [[nodiscard]] std::vector<Start*> give_up();

  // For reports.
  struct View {
    const Start* start = nullptr;
    bool is_decided = false;
    std::uint64_t decided = 0;    // how many starts are, here or elsewhere
    std::uint64_t last_key = 0;   // of these, if there are any
    std::uint64_t ahead = 0;      // decided ones that are not over, and must be before this
    bool first_is_here = false;   // the next of them has a start here, which goes on just now
    std::uint64_t first_key = 0;  // its key
  };
  // Calls visit(view) for each start that waits, under the lock.
  void for_each_waiting(const std::function<void(const View&)>& visit);

 private:
  struct Slot {
    std::uint64_t key;
    Start* start;  // null: nobody has come for it here
  };
  void decide(std::uint64_t key, Start* start) IMBREX_REQUIRES(lock_);
  [[nodiscard]] Start* next() noexcept IMBREX_REQUIRES(lock_);

  const bool decides_;
  std::mutex lock_;
  // No bound of its own, as the three after it: a slot for each start that another rank is ahead,
  // a start for each task that waits.
  std::deque<Slot> slots_ IMBREX_GUARDED_BY(lock_);
  std::unordered_map<std::uint64_t, std::deque<std::uint64_t>> free_
      IMBREX_GUARDED_BY(lock_);  // by key: the numbers of slots without a start
  std::unordered_map<std::uint64_t, std::deque<Start*>> undecided_
      IMBREX_GUARDED_BY(lock_);  // by key: starts without a slot
  std::deque<std::uint64_t> untold_ IMBREX_GUARDED_BY(lock_);
  std::uint64_t over_ IMBREX_GUARDED_BY(lock_) = 0;  // starts; so many are in front of `slots_`
  std::uint64_t last_key_ IMBREX_GUARDED_BY(lock_) = 0;
  bool is_starting_ IMBREX_GUARDED_BY(lock_) = false;
  bool given_up_ IMBREX_GUARDED_BY(lock_) = false;
};

}  // namespace imbrex::mpi::order
