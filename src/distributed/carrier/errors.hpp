// SPDX-License-Identifier: BSD-3-Clause
// Exceptions of several features: those that no call can throw, since no task waits for the failed
// operation, and the refusal of a simulation.
#pragma once

#include <exception>
#include <source_location>
#include <string>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/error.hpp"
#include "imbrex/future.hpp"

namespace imbrex::distributed {

// Prints it at the end of the program, which fails.
inline void report_at_end(const std::exception_ptr& error) {
  Promise<void>("untold", std::source_location()).set_exception(error);
}

// In a process that stands for all ranks of a simulation, an object of this kind would send
// messages that the simulator cannot know. Throws Error there.
inline void refuse_simulation(const char* const kind, const std::string& name) {
  static const bool is_simulated = detail::number_option("SIMULATE_RANKS") != 0;
  if (!is_simulated) [[likely]] return;
  throw Error(std::string("imbrex: ") + kind + name + " cannot be simulated: imbrex simulate knows "
              "tasks on data with owners only (imbrex::Space)");
}

}  // namespace imbrex::distributed
