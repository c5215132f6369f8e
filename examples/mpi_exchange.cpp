// SPDX-License-Identifier: BSD-3-Clause
// Blocking MPI in tasks: every rank creates its receives first and its sends after them. With plain
// threads that would need one thread for each receive; here one worker is enough.
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <array>
#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);  // main is a task from here on
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int next = (rank + 1) % ranks;
  const int previous = (rank + ranks - 1) % ranks;

  constexpr int count = 8;
  std::array<int, count> in{};
  int sum = 0;
  imbrex::finish([&] {
    for (int tag = 0; tag < count; ++tag) {
      int& value = in[static_cast<std::size_t>(tag)];
      imbrex::task("receive").out(value).launch([&value, previous, tag] {
        MPI_Recv(&value, 1, MPI_INT, previous, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      });
      imbrex::task("add").in(value).inout(sum).launch([&value, &sum] { sum += value; });
    }
    for (int tag = 0; tag < count; ++tag) {
      imbrex::task("send").launch([rank, next, tag] {
        const int value = 100 * rank + tag;
        MPI_Send(&value, 1, MPI_INT, next, tag, MPI_COMM_WORLD);
      });
    }
  });

  const bool right = sum == count * 100 * previous + count * (count - 1) / 2;
  int all_right = right ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all_right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d messages to each: %s\n", count, all_right ? "right" : "WRONG");
  MPI_Finalize();
  return all_right ? 0 : 1;
}
