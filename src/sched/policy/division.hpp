// SPDX-License-Identifier: BSD-3-Clause
// Division: which workers belong to which place (imbrex/detail/place.hpp), as IMBREX_PLACES says.
// Knows no threads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/topology.hpp"
#include "imbrex/detail/place.hpp"

namespace imbrex::sched {

struct PlannedPlace {
  std::string name;
  std::vector<int> workers;  // in the order in which they were named; none twice
  PlaceKind kind = PlaceKind::memory;
  int parent = -1;           // the position of that place; -1: all workers
  int level = 1;             // 0 is all workers
};

struct Division {
  std::vector<PlannedPlace> places;
  // Two places have no worker in common, or one is part of the other; each has a higher level, and
  // so a lower position, than its parent. A worker keeps to what is near in the tree.
  bool tree = false;
};

inline constexpr std::size_t places_max = 1024;

// `processors`: that of each worker. Places of the machine have workers, and come in the order of
// their first ones. A list names workers, and each of them must be there; but where there is one
// worker alone, it is all places: then a program may be looked at in one thread. Throws Error.
[[nodiscard]] Division divide(std::string_view text, const std::vector<int>& processors,
                              base::Topology& topology);

}  // namespace imbrex::sched
