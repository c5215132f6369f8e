// SPDX-License-Identifier: BSD-3-Clause
// Division: which workers belong to which place (imbrex/values/place.hpp), as IMBREX_PLACES says.
// Knows no threads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/topology.hpp"
#include "imbrex/values/place.hpp"

namespace imbrex::sched {

struct PlannedPlace {
  std::string name;
  std::vector<int> workers;  // in the order of their names; none twice
  PlaceKind kind = PlaceKind::memory;
  int parent = -1;           // position of the parent place; -1: all workers
  int level = 1;             // 0 is all workers
};

struct Division {
  std::vector<PlannedPlace> places;
  // Two places have no worker in common, or one is part of the other. A place has a higher level,
  // and so a lower position, than its parent. A worker prefers near places of the tree.
  bool tree = false;
};

inline constexpr std::size_t places_max = 1024;

// `processors`: the processor of each worker. Places of the machine have workers, and are in the
// order of their first workers. A list names workers, and each of them must exist; but a single
// worker is all places, so that a program can be debugged in one thread. Throws Error.
[[nodiscard]] Division divide(std::string_view text, const std::vector<int>& processors,
                              base::Topology& topology);

// Adds the workers from `first` on to the places of `division` that are parts of the machine with
// their processors. They belong to no place of a list, of a tree, or of another part.
void add_spare_workers(Division& division, std::string_view text,
                       const std::vector<int>& processors, std::size_t first,
                       base::Topology& topology);

}  // namespace imbrex::sched
