// SPDX-License-Identifier: BSD-3-Clause
// A task waits in MPI_Alltoall, and other tasks use each block as it arrives. Run with
// IMBREX_PARTIAL=on; without it the result is equal, and blocks are used when all have arrived.
#include <imbrex/collective.hpp>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.h>
#include <imbrex/mpi.hpp>

#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  constexpr int n = 10'000;  // numbers of a block
  const std::vector<double> out(static_cast<std::size_t>(ranks) * n, rank);
  std::vector<double> in(out.size(), -1);
  double sum = 0;
  imbrex::finish([&] {
    auto exchange = imbrex::task("exchange");
    for (int from = 0; from < ranks; ++from) {
      static_cast<void>(exchange.out(imbrex::range(&in[from * n], n)));
    }
    exchange.launch([&] {
      imbrex::release_by_blocks();
      MPI_Alltoall(out.data(), n, MPI_DOUBLE, in.data(), n, MPI_DOUBLE, MPI_COMM_WORLD);
    });
    for (int from = 0; from < ranks; ++from) {
      imbrex::task("use").in(imbrex::range(&in[from * n], n)).inout(sum).launch([&, from] {
        for (int i = 0; i < n; ++i) sum += in[from * n + i];
      });
    }
  });

  int all_right = sum == 0.5 * n * ranks * (ranks - 1) ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all_right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("%llu calls by blocks: %s\n", imbrex_decomposed_calls(),
                all_right ? "right" : "WRONG");
  }
  MPI_Finalize();
  return all_right ? 0 : 1;
}
