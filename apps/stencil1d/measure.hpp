// SPDX-License-Identifier: BSD-3-Clause
// Who makes MPI progress while a program computes: the measurement of Capra et al., section 3.
#pragma once

#include <mpi.h>

#include <string>

namespace stencil1d {

// Rank 2i receives a message from rank 2i + 1. Times of `rounds` rounds, averaged, in microseconds,
// as lines of a table for rank 0. Collective; empty on other ranks. Suspends. Throws
// std::invalid_argument, the same on all ranks, if their number is odd.
//   IW     receive, wait
//   ICW    receive, compute for `computation_us`, wait
//   ITCW   the same, while a thread of its own tests
//   tasks  the computation in 50 tasks, one after the other, and the receive in another
[[nodiscard]] std::string measure_progress(MPI_Comm comm, double computation_us, int rounds);

}  // namespace stencil1d
