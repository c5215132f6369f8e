// SPDX-License-Identifier: BSD-3-Clause
// A matrix is transposed over the ranks while it is computed: a part of each block leaves when the
// task that fills it has ended, and is added up as soon as it has arrived.
#include <imbrex/collective.hpp>
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <cstddef>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);

  constexpr int parts = 4;
  constexpr int length = 100;  // numbers of a part
  constexpr int count = parts * length;  // numbers of a block
  const auto place = [](int of, int part) {
    return static_cast<std::size_t>(of * count + part * length);
  };
  std::vector<long> out(place(ranks, 0));
  std::vector<long> in(out.size());
  const imbrex::Collective x =
      imbrex::alltoall({out.data(), count, MPI_LONG}, {in.data(), count, MPI_LONG},
                       MPI_COMM_WORLD, {.parts = parts, .hold = true});
  long sum = 0;
  imbrex::finish([&] {
    for (int part = 0; part < parts; ++part) {
      for (int other = 0; other < ranks; ++other) {
        imbrex::task("fill").launch([&out, x, place, rank, other, part] {
          for (std::size_t i = 0; i < length; ++i) out[place(other, part) + i] = rank + part;
          x.send(other, part);
        });
        imbrex::task("add").in(x.from(other, part)).inout(sum).launch(
            [&in, &sum, place, other, part] {
              for (std::size_t i = 0; i < length; ++i) sum += in[place(other, part) + i];
            });
      }
    }
  });
  x.all().get();

  const long right = 1L * length * parts * ranks * (ranks - 1 + parts - 1) / 2;
  int all_right = sum == right ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all_right, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d parts: %s\n", parts * ranks, all_right ? "right" : "WRONG");
  MPI_Finalize();
  return all_right ? 0 : 1;
}
