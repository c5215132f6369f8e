// SPDX-License-Identifier: BSD-3-Clause
// Requests in C++: when() turns a request into a future, on which tasks may depend. release_after()
// ends the task's body at once, and its dependents wait for the message. await() waits.
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int next = (rank + 1) % ranks;
  const int previous = (rank + ranks - 1) % ranks;

  int first = -1;
  int second = -1;
  int sum = 0;
  imbrex::finish([&] {
    MPI_Request request;
    MPI_Irecv(&first, 1, MPI_INT, previous, 1, MPI_COMM_WORLD, &request);
    imbrex::Future<MPI_Status> arrived = imbrex::when(request);

    imbrex::task("receive").out(second).launch([&second, previous] {
      MPI_Request later;
      MPI_Irecv(&second, 1, MPI_INT, previous, 2, MPI_COMM_WORLD, &later);
      imbrex::release_after(later);  // this task needs no stack while it waits
    });
    imbrex::task("add").in(arrived, second).out(sum).launch([&] { sum = first + second; });

    imbrex::task("send").launch([rank, next] {
      const int values[2] = {10 * rank, 10 * rank + 1};
      MPI_Request requests[2];
      for (int i = 0; i < 2; ++i) {
        MPI_Isend(&values[i], 1, MPI_INT, next, i + 1, MPI_COMM_WORLD, &requests[i]);
      }
      imbrex::await(requests[0]);  // the first of them; MPI_Wait would do as well
      imbrex::await(requests[1]);
    });
  });

  const bool right = sum == 20 * previous + 1;
  std::printf("rank %d: %d + %d = %d\n", rank, first, second, sum);
  MPI_Finalize();
  return right ? 0 : 1;
}
