// SPDX-License-Identifier: BSD-3-Clause
// A task begins MPI_Ialltoall and ends; other tasks use each part as it arrives, while the rest is
// in flight. Then MPI_Neighbor_alltoall exchanges the ends of a ring of ranks, and a task uses each
// end as it arrives. The infos of the communicators ask for this; an MPI without imbrex ignores
// them, and the result is equal.
#include <imbrex/collective.hpp>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.h>
#include <imbrex/mpi.hpp>

#include <cstdio>
#include <vector>

namespace {

constexpr int parts = 4;
constexpr int length = 5'000;  // numbers of a part
constexpr int n = parts * length;

// A duplicate whose collectives go block by block.
MPI_Comm by_blocks(MPI_Comm comm) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  MPI_Info_set(info, "imbrex_partial", "on");
  MPI_Info_set(info, "imbrex_partial_parts", "4");
  MPI_Comm made = MPI_COMM_NULL;
  MPI_Comm_dup_with_info(comm, info, &made);
  MPI_Info_free(&info);
  return made;
}

// The sum of all that comes, from each rank its number.
double exchange(MPI_Comm comm, int rank, int ranks) {
  const std::vector<double> out(static_cast<std::size_t>(ranks) * n, rank);
  std::vector<double> in(out.size(), -1);
  double sum = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  imbrex::finish([&] {
    auto begins = imbrex::task("begin");
    for (std::size_t i = 0; i < in.size(); i += length) {
      static_cast<void>(begins.out(imbrex::range(&in[i], length)));
    }
    begins.launch([&] {
      imbrex::release_by_blocks();
      MPI_Ialltoall(out.data(), n, MPI_DOUBLE, in.data(), n, MPI_DOUBLE, comm, &request);
    });
    for (std::size_t i = 0; i < in.size(); i += length) {
      imbrex::task("use").in(imbrex::range(&in[i], length)).inout(sum).launch([&, i] {
        for (std::size_t k = i; k < i + length; ++k) sum += in[k];
      });
    }
  });
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return sum;
}

// Twice the number of the rank below, and once that of the one above.
double swap_ends(MPI_Comm ring, int rank) {
  const double ends[2] = {1.0 * rank, 2.0 * rank};  // for the rank below, and the one above
  double halo[2] = {-1, -1};
  double sum = 0;
  imbrex::finish([&] {
    imbrex::task("swap").out(halo[0]).out(halo[1]).launch([&] {
      imbrex::release_by_blocks();
      MPI_Neighbor_alltoall(ends, 1, MPI_DOUBLE, halo, 1, MPI_DOUBLE, ring);
    });
    for (double& value : halo) {
      imbrex::task("edge").in(value).inout(sum).launch([&] { sum += value; });
    }
  });
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm all = by_blocks(MPI_COMM_WORLD);
  const int closed = 1;
  MPI_Comm circle = MPI_COMM_NULL;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &closed, 0, &circle);
  MPI_Comm ring = by_blocks(circle);

  const int below = (rank + ranks - 1) % ranks;
  const int above = (rank + 1) % ranks;
  int all_right = exchange(all, rank, ranks) == 0.5 * n * ranks * (ranks - 1) &&
                  swap_ends(ring, rank) == 2.0 * below + above;
  MPI_Allreduce(MPI_IN_PLACE, &all_right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("%llu calls by blocks: %s\n", imbrex_decomposed_calls(),
                all_right ? "right" : "WRONG");
  }
  MPI_Comm_free(&ring);
  MPI_Comm_free(&circle);
  MPI_Comm_free(&all);
  MPI_Finalize();
  return all_right ? 0 : 1;
}
