// SPDX-License-Identifier: BSD-3-Clause
// A finish() that owns requests waits for them. Around a non-blocking call it acts as the blocking
// call.
// (Chatterjee et al., IPDPS 2013, figures 3 and 4.)
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <cstdio>

namespace {

int received[2] = {-1, -1};

void start_receive(int source, int tag) {
  MPI_Request request;
  MPI_Irecv(&received[tag], 1, MPI_INT, source, tag, MPI_COMM_WORLD, &request);
  imbrex::finish_owns(request);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int next = (rank + 1) % ranks;
  const int previous = (rank + ranks - 1) % ranks;

  // Figure 3: both have arrived at the end, though the task that started one has ended before.
  imbrex::finish([&] {
    start_receive(previous, 0);
    imbrex::task("start").launch([previous] { start_receive(previous, 1); });
    const int values[2] = {10 * rank, 10 * rank + 1};
    for (int tag = 0; tag < 2; ++tag) {
      MPI_Send(&values[tag], 1, MPI_INT, next, tag, MPI_COMM_WORLD);
    }
  });
  int sum = received[0] + received[1];

  // Figure 4: the task starts when the message is there.
  MPI_Request request;
  int late = -1;
  MPI_Irecv(&late, 1, MPI_INT, previous, 2, MPI_COMM_WORLD, &request);
  imbrex::Future<void> added =
      imbrex::task("add").in(imbrex::when(request)).spawn([&sum, &late] { sum += late; });
  MPI_Send(&rank, 1, MPI_INT, next, 2, MPI_COMM_WORLD);
  added.get();

  std::printf("rank %d: %d\n", rank, sum);
  MPI_Finalize();
  return sum == 21 * previous + 1 ? 0 : 1;
}
