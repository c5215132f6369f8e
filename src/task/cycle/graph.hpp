// SPDX-License-Identifier: BSD-3-Clause
// The cyclic graph of a loop, from the accesses of the tasks of one round.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/slab.hpp"
#include "task/cycle/node.hpp"

namespace imbrex::task {

struct CycleEdges {
  std::vector<std::uint32_t> in_round;    // followers in the same round, by their positions
  std::vector<std::uint32_t> next_round;  // followers in the next round
};

// The edges from each of the tasks, which are in the order of their creation. Takes two rounds
// through a DependTable, so that there is one rule for what follows what. Gives each access the
// version that it has in the first round, and neighbours of a mutexinoutset one mutex.
[[nodiscard]] std::vector<CycleEdges> find_edges(std::span<Task* const> tasks,
                                                 base::SlabCache& slots);

}  // namespace imbrex::task
