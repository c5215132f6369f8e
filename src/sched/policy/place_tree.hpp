// SPDX-License-Identifier: BSD-3-Clause
// The tree of places: which parts of the machine, or of a file, are places and whose parts they
// are; and what is near by it. Used by division.cpp and at the start. Knows no threads.
#pragma once

#include <vector>

#include "base/topology.hpp"
#include "sched/policy/division.hpp"
#include "sched/policy/policy.hpp"

namespace imbrex::sched {

// A place comes after its parent, whose position it names; levels are not set.
using Sketch = std::vector<PlannedPlace>;

// The NUMA nodes, caches, cores and packages that have workers. Parts with the same workers are one
// place, and a part with all of them is none.
[[nodiscard]] Sketch parts_of_machine(const std::vector<int>& processors, base::Topology& topology);

// In the order of places. An only part with all workers, of whatever is outermost, is the root, and
// so no place; but there is a place at least, if need be for all workers.
[[nodiscard]] Division make_tree(Sketch sketch, std::size_t workers);

// Makes nearness that in the tree: the deeper the place is that two workers have in common, the
// nearer they are. Among equals `setup.nearest` stays as it is.
void keep_near(PolicySetup& setup, const std::vector<PlannedPlace>& places);

}  // namespace imbrex::sched
