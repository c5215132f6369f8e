// SPDX-License-Identifier: BSD-3-Clause
// The search of an unbalanced tree (apps/uts) by a work pool of many ranks. The tree is expanded as
// the application does; only the time of a node is given.
#pragma once

#include <string>

#include "simulate/engine/cluster.hpp"

namespace imbrex::simulate {

struct PoolSetup {
  std::string tree;         // a known tree of apps/uts, as T1
  double node_ns = 0;       // to make one
  std::uint32_t victims = 1;
};

// Outcome::sums.tasks is the number of nodes. Throws Error for an unknown tree.
[[nodiscard]] Outcome simulate_pool(const PoolSetup& setup, const ClusterSetup& cluster);

}  // namespace imbrex::simulate
