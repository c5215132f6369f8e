// SPDX-License-Identifier: BSD-3-Clause
// What a person reads, and the same as JSON. Called on rank 0 alone; no MPI.
#pragma once

#include <string>
#include <vector>

#include "measure.hpp"
#include "options.hpp"

namespace tiled {

struct Problem {
  std::string algorithm;
  std::vector<std::string> kernels;  // their names
  std::string matrix;                // what it is, for people
  Layout layout;
  int ranks;
  int workers;  // of each rank
  KernelTimes times;  // of kernels that sleep; empty if they compute
};

void print_problem(const Problem& problem, const Options& options);
void print_run(int number, const Run& run);
void print_comparison(const Problem& problem, const std::vector<Run>& runs);

// Throws std::runtime_error with the system's reason.
void write_json(const std::string& path, const Problem& problem, const std::vector<Run>& runs);

// The median share of the runs of one variant; 0 if there are none.
[[nodiscard]] double median_share(const std::vector<Run>& runs, Variant variant);

}  // namespace tiled
