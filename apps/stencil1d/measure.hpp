// SPDX-License-Identifier: BSD-3-Clause
// Who makes MPI progress while a program computes: the measurement of Capra et al., section 3, with
// more ways to write it, sizes and computations.
#pragma once

#include <vector>

namespace stencil1d {

struct ProgressOptions {
  std::vector<int> sizes{8, 1024, 65536, 1 << 20, 4 << 20, 16 << 20};
  std::vector<double> ratios{0.1, 0.5, 1, 2, 10};
  double computation_us = 500;  // the paper's computation; 0: none
  double step_us = 1000;
  int rounds = 7;
  bool json = false;  // print the figures so, too
};

// Rank 0 receives a message from rank 1 while it computes; prints what of the shorter of the two
// each way hides. Collective over MPI_COMM_WORLD. Suspends. Throws InputError if there is one rank
// alone.
void measure_progress(const ProgressOptions& options);

}  // namespace stencil1d
