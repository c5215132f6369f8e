// SPDX-License-Identifier: BSD-3-Clause
// A program that may not start: it is linked such that imbrex::mpi is not reached, or its MPI gives
// too little.
#include <mpi.h>

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int value = 0;
  MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  std::puts("ran to its end");
}
