// SPDX-License-Identifier: BSD-3-Clause
// The division of a node's processors among its ranks, by their affinity masks. It knows no rank:
// sched/life has the masks, and base/topology.hpp says which processors are neighbours.
#pragma once

#include <sched.h>

#include <functional>
#include <vector>

namespace imbrex::sched {

// Sorts processors so that neighbours are adjacent.
using SortProcessors = std::function<void(std::vector<int>& processors)>;

// The processors of each rank, by the affinity masks of all ranks of a node: some of its mask, and
// at least one. Two ranks get one processor only if the ranks of overlapping masks are more than
// their processors. No rank could get more without less for a rank that has as few. Ranks with
// equal masks get neighbouring processors, as many each, but for one. All ranks that call with the
// same masks find the same division. REQUIRES: `sort` depends on the processors only.
[[nodiscard]] std::vector<std::vector<int>> divide_processors(const std::vector<cpu_set_t>& masks,
                                                              const SortProcessors& sort);

}  // namespace imbrex::sched
