// SPDX-License-Identifier: BSD-3-Clause
// Succeeds if a task that blocks in MPI_Recv lets the sending task run on the same worker. This
// shows that the installed imbrex::mpi is linked in the order in which its MPI_Recv is called.
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int value = 0;
  imbrex::finish([&] {
    imbrex::task("receive").launch(
        [&] { MPI_Recv(&value, 1, MPI_INT, 0, 7, MPI_COMM_SELF, MPI_STATUS_IGNORE); });
    imbrex::task("send").launch([] {
      const int answer = 42;
      MPI_Ssend(&answer, 1, MPI_INT, 0, 7, MPI_COMM_SELF);
    });
  });
  MPI_Finalize();
  return value == 42 ? 0 : 1;
}
