// SPDX-License-Identifier: BSD-3-Clause
// The tree of places: which parts of the machine, or of a file, are places, and their nesting; and
// nearness by the tree. Used by division.cpp and at the start. Knows no threads.
#pragma once

#include <vector>

#include "base/topology.hpp"
#include "sched/policy/division.hpp"
#include "sched/policy/policy.hpp"

namespace imbrex::sched {

// A place comes after its parent, whose position it has; levels are not set.
using Sketch = std::vector<PlannedPlace>;

// The NUMA nodes, caches, cores and packages that have workers. Parts with the same workers are one
// place; a part with all workers is no place.
[[nodiscard]] Sketch parts_of_machine(const std::vector<int>& processors, base::Topology& topology);

// Puts a sketch into the order of places. An only outermost part with all workers is the root, and
// so no place; but there is at least one place, for all workers if need be.
[[nodiscard]] Division make_tree(Sketch sketch, std::size_t workers);

// Orders workers by nearness in the tree: the deeper the common place of two workers, the nearer
// they are. Among equals `setup.nearest` stays unchanged.
void keep_near(PolicySetup& setup, const std::vector<PlannedPlace>& places);

}  // namespace imbrex::sched
