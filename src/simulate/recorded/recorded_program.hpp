// SPDX-License-Identifier: BSD-3-Clause
// A traced run as a program to be simulated, at its number of ranks.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "simulate/engine/program.hpp"

namespace imbrex::simulate {

struct RecordedSetup {
  std::string heads;     // the file of the heads (trace_files.hpp)
  int ranks = 1;         // that the heads must be of
  Time creator_ns = 0;   // RankSetup::creator_ns
  double speed = 1;      // divides the measured times of kernels without a time of their own
};
// Throws Error, with file and record, if the trace is damaged, or is of a program that cannot be
// simulated. `left_out` gets what the simulation does not contain, with the number of times.
[[nodiscard]] std::unique_ptr<Program> make_recorded(
    const RecordedSetup& setup, std::map<std::string, std::uint64_t>& left_out);

}  // namespace imbrex::simulate
