// SPDX-License-Identifier: BSD-3-Clause
// Runs on an MPI without the functions that MPI 4 has removed from the standard (lacking.py).
#include <mpi.h>

#include <cstdio>
#include <cstring>

#include "imbrex/imbrex.hpp"

namespace {

// Sends to itself in a task, and adds up: calls that every MPI has.
int use_mpi() {
  int received = 0;
  imbrex::finish([&] {
    imbrex::task("receive").launch([&] {
      MPI_Recv(&received, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    });
    imbrex::task("send").launch([] {
      const int sent = 41;
      MPI_Send(&sent, 1, MPI_INT, 0, 0, MPI_COMM_SELF);
    });
  });
  int sum = 0;
  MPI_Allreduce(&received, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const char* const way = argc > 1 ? argv[1] : "";
  MPI_Init(&argc, &argv);
  std::printf("received %d\n", use_mpi());
  std::fflush(stdout);
  int key = 0;
  int found = 0;
  if (std::strcmp(way, "MPI") == 0) MPI_Attr_get(MPI_COMM_SELF, key, &key, &found);
  if (std::strcmp(way, "PMPI") == 0) PMPI_Keyval_free(&key);
  MPI_Finalize();
}
