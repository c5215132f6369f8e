// SPDX-License-Identifier: BSD-3-Clause
// Which copies on open lists lead to a version that another rank writes (docs/design/policies.md,
// "The copies of a broadcast"). Used by the space of data and by its simulation, which have lists
// of their own. Knows no task.
//
// Thread safety: as List.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "distributed/data/trees.hpp"
#include "imbrex/detail/plug_ins.hpp"

namespace imbrex::distributed {

// The copies from one rank, on open lists, that lead to a version which another rank writes: the
// reader of the copy writes it, or a later task of that rank does. If the version is sent, all of
// them lead to a send. A List is counted by retain() and release(); is_open() is a hint.
template <typename List>
class Leads {
 public:
  Leads() = default;
  Leads(const Leads& other) : leads_(other.leads_) {
    for (const Lead& one : leads_) one.list->retain();
  }
  Leads(Leads&& other) noexcept : leads_(std::exchange(other.leads_, {})) {}
  Leads& operator=(Leads other) noexcept {
    leads_.swap(other.leads_);
    return *this;
  }
  ~Leads() { clear(); }

  // The copy for `rank` of MPI_COMM_WORLD is read by the task that writes the version.
  void add(List& list, const int rank) { add(list, rank, 1); }
  // That task also reads a version with these leads.
  void add(const Leads& earlier) {
    for (const Lead& one : earlier.leads_) add(*one.list, one.rank, one.steps + 1);
  }
  void clear() noexcept {
    for (const Lead& one : leads_) one.list->release();
    leads_.clear();
  }
  // Whether raise() may have an effect.
  [[nodiscard]] bool is_open() const noexcept {
    return std::ranges::any_of(leads_, [](const Lead& one) { return one.list->is_open(); });
  }
  // The version is sent to `rank` of MPI_COMM_WORLD: raises the copies by the worth of that send
  // under the policy, minus the steps to it. `worth_of_sending_to(rank)` returns a SendWorth.
  template <typename Worth>
  void raise(const int rank, const Worth& worth_of_sending_to) const {
    if (leads_.empty()) return;
    const detail::SendWorth send = worth_of_sending_to(rank);
    for (const Lead& one : leads_) {
      const int its = worth_of_sending_to(one.rank).of_rank;
      one.list->raise(one.rank, send.any + send.of_rank + its - one.steps * send.step);
    }
  }

 private:
  // A task that follows from more copies than this knows the nearest ones.
  static constexpr std::size_t most = 8;
  struct Lead {
    List* list;  // a reference
    int rank;
    int steps;   // from the reader of the copy to the send of the version
  };

  void add(List& list, const int rank, const int steps) {
    if (!list.is_open()) return;
    list.retain();
    const auto known = std::ranges::find_if(leads_, [&](const Lead& one) {
      return one.list == &list && one.rank == rank;
    });
    const int nearest = known == leads_.end() ? steps : std::min(steps, known->steps);
    if (known != leads_.end()) {
      list.release();
      leads_.erase(known);
    }
    leads_.insert(std::ranges::upper_bound(leads_, nearest, {}, &Lead::steps),
                  {&list, rank, nearest});
    if (leads_.size() <= most) return;
    leads_.back().list->release();
    leads_.pop_back();
  }

  std::vector<Lead> leads_;  // the nearest first
};

// The copy for this rank of MPI_COMM_WORLD has at least this urgency, if it is on the list.
inline void raise(std::vector<Recipient>& list, const int rank, const std::int32_t urgency) {
  const auto found = std::ranges::find(list, rank, &Recipient::rank);
  if (found != list.end()) found->urgency = std::max(found->urgency, urgency);
}

}  // namespace imbrex::distributed
