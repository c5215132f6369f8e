// SPDX-License-Identifier: BSD-3-Clause
// Random insertions into spaces of data on a real MPI, against the sequential model: owners,
// readers, writers, moves, reductions, loops that leave out what does not concern a rank, tasks
// that throw, windows from 1 to unbounded, ranks that come late. The space has the ranks of
// MPI_COMM_WORLD, those in reverse, or a half of them; some programs use two spaces at once.
//
//   mpirun -n 4 build/bin/imbrex_mpi_data_fuzz --seed 1 --count 100 [--longest ELEMENTS]
#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <chrono>
#include <climits>
#include <random>
#include <string>
#include <thread>

#include "distributed/insertions/player.hpp"
#include "imbrex/data.hpp"
#include "imbrex/imbrex.hpp"
#include "mpi/random_programs.hpp"

namespace imbrex::test {
namespace {

// A part with this rank, and a number that tells it from other parts in use.
struct Part {
  MPI_Comm comm = MPI_COMM_NULL;
  unsigned number = 0;
};

[[nodiscard]] Part part_of_world(const unsigned seed) {
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Part part;
  switch (seed % 3) {
    case 0: MPI_Comm_dup(MPI_COMM_WORLD, &part.comm); break;
    case 1: MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - rank, &part.comm); break;
    default:
      part.number = static_cast<unsigned>(rank) % 2;
      MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &part.comm);
  }
  return part;
}

void use_space(const MPI_Comm comm, Plan plan) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &plan.ranks);
  const Sequence sequence = Maker(plan).make();
  const unsigned own = plan.seed * 64 + static_cast<unsigned>(rank);
  std::mt19937 random(own);
  constexpr std::array<std::int64_t, 5> windows{1, 2, 5, 30, 0};
  SpaceOptions options{.tasks_ahead = windows[random() % windows.size()], .name = "fuzz"};
  Space space(comm, std::move(options));
  if (random() % 5 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Player player(sequence, plan, space, own);
  player.play(random() % 3 == 0);
  player.compare();
}

void run_program(const unsigned seed, const std::size_t longest) {
  const Part part = part_of_world(seed);
  Plan plan{.seed = seed * 2 + part.number,
            .trimmed = seed % 4 == 1,
            .moves = seed % 4 != 0,
            .failing = seed % 5 < 2 ? 20u : 0u,
            .longest = longest};
  if (seed % 7 != 0) {
    use_space(part.comm, plan);
  } else {
    MPI_Comm again;
    MPI_Comm_dup(part.comm, &again);
    finish([&] {
      task("one space").launch([&] { use_space(part.comm, plan); });
      task("another space").launch([&] {
        Plan other = plan;
        other.seed += 1000000;
        use_space(again, other);
      });
    });
    MPI_Comm_free(&again);
  }
  MPI_Comm comm = part.comm;
  MPI_Comm_free(&comm);
}

}  // namespace
}  // namespace imbrex::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  imbrex::test::RandomPrograms programs({{"--longest", 40000}});
  if (!programs.read(argc, argv)) return 2;
  MPI_Init(&argc, &argv);
  const unsigned longest = programs["--longest"];
  const int code = programs.run([&](unsigned seed) { imbrex::test::run_program(seed, longest); },
                                [] { return testing::Test::HasFailure() ? 1 : 0; });
  MPI_Finalize();
  return code;
}
