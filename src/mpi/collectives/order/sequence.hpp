// SPDX-License-Identifier: BSD-3-Clause
// The order in which the keyed collectives of one communicator are started on one rank. One rank
// decides it: there it is the order of arrival. The other ranks learn it, and a start waits until
// it is the next. Knows no MPI and no task: returns the start that has the turn. Used by order.cpp;
// docs/design/ordered.md argues why all ranks have one order.
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

// The start of a collective. It does not move from enter() until its turn has come; the sequence
// does not use it afterwards.
struct Start {
  std::uint64_t key = 0;
};

// Thread safety: any thread uses every member.
// Invariants, under the lock:
//   (1) `slots_` are the decided starts that are not over, in their order. If `is_starting_`, the
//       first of them has been given its turn; otherwise it has no start here.
//   (2) A key has slots without a start, or starts without a slot, or neither.
//   (3) A start that has a slot got the first free one of its key: so the n-th start of a key here
//       is the n-th on the deciding rank.
class Sequence {
 public:
  explicit Sequence(bool decides) noexcept : decides_(decides) {}

  // True: it has the turn, and leave() must follow. Otherwise another call returns it once it has.
  [[nodiscard]] bool enter(Start& start);
  // The start that had the turn is over. Returns the start that has it now; null: none here.
  [[nodiscard]] Start* leave() noexcept;
  // Adds the decisions of the other rank, in their order. Returns the start that has the turn now;
  // null: no change.
  [[nodiscard]] Start* learn(std::span<const std::uint64_t> keys);

  // Takes the oldest decisions of this rank that were not taken yet; returns their number.
  [[nodiscard]] std::size_t take_decisions(std::span<std::uint64_t> keys);
  // True if a start waits here that the other rank has not decided, as far as this rank knows.
  [[nodiscard]] bool lacks_decisions();

  // The order has failed: returns the waiting starts; from now on every start has its turn at once.
  [[nodiscard]] std::vector<Start*> give_up();

  // For reports.
  struct View {
    const Start* start = nullptr;
    bool is_decided = false;
    std::uint64_t decided = 0;    // number of decided starts, here or on the other rank
    std::uint64_t last_key = 0;   // key of the last decided start, if any
    std::uint64_t ahead = 0;      // decided starts that are not over, and must come before this one
    bool first_is_here = false;   // the next one has a start here, which goes on now
    std::uint64_t first_key = 0;  // its key
  };
  // Calls visit(view) for each start that waits, under the lock.
  void for_each_waiting(const std::function<void(const View&)>& visit);

 private:
  struct Slot {
    std::uint64_t key;
    Start* start;  // null: no task has come for it here
  };
  void decide(std::uint64_t key, Start* start) IMBREX_REQUIRES(lock_);
  [[nodiscard]] Start* next() noexcept IMBREX_REQUIRES(lock_);

  const bool decides_;
  std::mutex lock_;
  // No bound of its own, as the next three: a slot for each start that another rank is ahead, a
  // start for each waiting task.
  std::deque<Slot> slots_ IMBREX_GUARDED_BY(lock_);
  std::unordered_map<std::uint64_t, std::deque<std::uint64_t>> free_
      IMBREX_GUARDED_BY(lock_);  // by key: the numbers of slots without a start
  std::unordered_map<std::uint64_t, std::deque<Start*>> undecided_
      IMBREX_GUARDED_BY(lock_);  // by key: starts without a slot
  std::deque<std::uint64_t> untaken_ IMBREX_GUARDED_BY(lock_);
  std::uint64_t over_ IMBREX_GUARDED_BY(lock_) = 0;  // number of starts; so many slots before the
                                                     // first of `slots_`
  std::uint64_t last_key_ IMBREX_GUARDED_BY(lock_) = 0;
  bool is_starting_ IMBREX_GUARDED_BY(lock_) = false;
  bool given_up_ IMBREX_GUARDED_BY(lock_) = false;
};

}  // namespace imbrex::mpi::order
