// SPDX-License-Identifier: BSD-3-Clause
// Programs whose traces check_trace_parts.py looks at. usage: parts_cases parts|unrecorded
#include <mpi.h>

#include <array>
#include <cstdio>
#include <string_view>
#include <vector>

#include "imbrex/collective.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"
#include "imbrex/mpi_phaser.hpp"

namespace {

constexpr int count = 1 << 16;  // doubles in a block
int rank = 0;
int ranks = 1;

// Each block of an exchange has a task, and a task waits for all of it.
void exchange(bool hold) {
  const auto all = static_cast<std::size_t>(count) * static_cast<std::size_t>(ranks);
  std::vector<double> out(all, rank);
  std::vector<double> in(all);
  double sum = 0;
  imbrex::finish([&] {
    const auto parts = imbrex::alltoall({out.data(), count, MPI_DOUBLE},
                                        {in.data(), count, MPI_DOUBLE}, MPI_COMM_WORLD,
                                        {.hold = hold});
    for (int i = 0; hold && i < ranks; ++i) {
      imbrex::task("give").launch([parts, i] { parts.send(i); });
    }
    for (int i = 0; i < ranks; ++i) {
      imbrex::task("use").in(parts.from(i)).inout(sum).launch([&, i] {
        sum += in[static_cast<std::size_t>(count) * static_cast<std::size_t>(i)];
      });
    }
    imbrex::task("all").launch([parts] { parts.all().get(); });
  });
  if (sum != ranks * (ranks - 1) / 2) std::printf("parts: wrong sum %g\n", sum);
}

// Two parts go down the chain of ranks.
void broadcast() {
  std::vector<double> data(count, rank);
  imbrex::finish([&] {
    const auto parts = imbrex::broadcast({data.data(), count, MPI_DOUBLE}, 0, MPI_COMM_WORLD,
                                         {.parts = 2});
    imbrex::task("use").in(parts.all()).launch([&] {
      if (data.back() != 0) std::printf("parts: wrong broadcast %g\n", data.back());
    });
  });
}

void reduce() {
  double mine = rank;
  double sum = 0;
  imbrex::finish([&] {
    const auto parts = imbrex::allreduce({&mine, 1, MPI_DOUBLE}, {&sum, 1, MPI_DOUBLE}, MPI_SUM,
                                         MPI_COMM_WORLD);
    imbrex::task("use").in(parts.from(0)).launch([] {});
  });
  if (sum != ranks * (ranks - 1) / 2) std::printf("parts: wrong sum %g\n", sum);
}

void unrecorded() {
  std::array<int, 2> values{};
  MPI_Win window;
  MPI_Win_create(values.data(), sizeof values, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  MPI_Put(&rank, 1, MPI_INT, (rank + 1) % ranks, 1, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  int got = 0;
  MPI_Get(&got, 1, MPI_INT, (rank + 1) % ranks, 0, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  {
    const imbrex::MpiPhaser phaser(MPI_COMM_WORLD, imbrex::signal_wait);
    phaser.next();
    phaser.next();
  }
  imbrex::finish([] { imbrex::task("work").launch([] {}); });
}

}  // namespace

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc > 1 && argv[1] == std::string_view("parts")) {
    exchange(false);
    exchange(true);
    broadcast();
    reduce();
  } else {
    unrecorded();
  }
  MPI_Finalize();
  return 0;
}
