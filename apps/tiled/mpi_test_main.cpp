// SPDX-License-Identifier: BSD-3-Clause
// Runs the tests on all ranks; a failure on one is a failure of all.
#include <gtest/gtest.h>
#include <mpi.h>

#include <imbrex/detail/observation.hpp>
#include <imbrex/mpi.hpp>

#include "kernels.hpp"

int main(int argc, char** argv) {
  tiled::use_one_blas_thread();
  imbrex::detail::want_times();  // as the programs
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  int failed = RUN_ALL_TESTS();
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}
