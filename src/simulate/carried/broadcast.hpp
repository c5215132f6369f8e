// SPDX-License-Identifier: BSD-3-Clause
// One broadcast after the other, by the library's own protocol (distributed/data/copies) in
// virtual time.
#pragma once

#include <cstdint>

#include "distributed/data/trees.hpp"
#include "simulate/engine/cluster.hpp"

namespace imbrex::simulate {

struct BroadcastSetup {
  std::int64_t bytes = 1;
  int rounds = 1;       // broadcasts; the next begins when the last rank has the data
  distributed::TreeKind tree = distributed::TreeKind::automatic;
};

// From rank 0 to all ranks of `cluster`, of which the workers and the policy do not matter.
[[nodiscard]] Outcome simulate_broadcast(const BroadcastSetup& setup, const ClusterSetup& cluster);

}  // namespace imbrex::simulate
