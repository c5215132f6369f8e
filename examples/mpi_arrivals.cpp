// SPDX-License-Identifier: BSD-3-Clause
// A task for each message, which starts when the message is there: until then it needs no stack and
// no worker.
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int next = (rank + 1) % ranks;
  constexpr int count = 1000;
  std::vector<int> in(count);

  imbrex::finish([&] {
    for (int tag = 0; tag < count; ++tag) {
      auto message = imbrex::when_arrived(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD);
      imbrex::task("receive").in(message).launch([&in, message, tag] {
        message.get().receive(&in[static_cast<std::size_t>(tag)], 1, MPI_INT);
      });
    }
    for (int tag = 0; tag < count; ++tag) MPI_Send(&tag, 1, MPI_INT, next, tag, MPI_COMM_WORLD);
  });

  const int sum = std::accumulate(in.begin(), in.end(), 0);
  if (rank == 0) std::printf("sum of %d messages: %d\n", count, sum);
  MPI_Finalize();
  return sum == count * (count - 1) / 2 ? EXIT_SUCCESS : EXIT_FAILURE;
}
