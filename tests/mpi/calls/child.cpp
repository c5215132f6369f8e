// SPDX-License-Identifier: BSD-3-Clause
// What processes_test.cpp starts: adds its rank to a number from its parent's rank 0, in a task.
#include <mpi.h>

#include "imbrex/imbrex.hpp"

int main() {
  MPI_Init(nullptr, nullptr);
  imbrex::task("child").spawn([] {
    MPI_Comm parent;
    MPI_Comm_get_parent(&parent);
    int rank = -1;
    MPI_Comm_rank(parent, &rank);
    int number = 0;
    MPI_Recv(&number, 1, MPI_INT, 0, 1, parent, MPI_STATUS_IGNORE);
    number += rank;
    MPI_Send(&number, 1, MPI_INT, 0, 2, parent);
    MPI_Comm_disconnect(&parent);
  }).get();
  MPI_Finalize();
}
