// SPDX-License-Identifier: BSD-3-Clause
// The program of a simulation, by its settings.
#pragma once

#include <functional>

#include "simulate/engine/cluster.hpp"
#include "simulate/setting_words.hpp"

namespace imbrex::simulate {

using Simulation = std::function<Outcome()>;

// Takes the settings of the program that `settings` names. `cluster` must outlive the simulation.
[[nodiscard]] Simulation take_simulation(Settings& settings, const ClusterSetup& cluster);

}  // namespace imbrex::simulate
