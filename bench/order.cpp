// SPDX-License-Identifier: BSD-3-Clause
// What the order of ready tasks is worth: the graph of a tiled Cholesky factorisation over ranks,
// whose kernels sleep as long as they would compute. So ranks that share processors do not hide
// each other's idle time, and only the order counts. One worker a rank; the policy is
// IMBREX_POLICY.
//
//   IMBREX_POLICY=fifo IMBREX_WORKERS=1 mpirun -n 4 order [tiles a side] [gemm, microseconds]
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Grid {
  int rows, columns, rank;
  [[nodiscard]] int owner(const int row, const int column) const {
    return row % rows * columns + column % columns;
  }
  [[nodiscard]] bool mine(const int row, const int column) const {
    return owner(row, column) == rank;
  }
};

class Factorisation {
 public:
  Factorisation(const Grid& grid, const int tiles, const int gemm_us)
      : grid_(grid), tiles_(tiles), gemm_us_(gemm_us),
        data_(static_cast<std::size_t>(tiles) * static_cast<std::size_t>(tiles)) {}

  // Program order, the same on every rank.
  void spawn() {
    for (int step = 0; step < tiles_; ++step) {
      if (grid_.mine(step, step)) kernel("potrf", gemm_us_ / 3, step, step);
      pass_on(step, step, step);
      for (int row = step + 1; row < tiles_; ++row) {
        if (!grid_.mine(row, step)) continue;
        imbrex::task("trsm").in(at(step, step)).inout(at(row, step)).launch([this] {
          rest(gemm_us_ / 2);
        });
      }
      for (int row = step + 1; row < tiles_; ++row) pass_on(row, step, step);
      for (int row = step + 1; row < tiles_; ++row) {
        for (int column = step + 1; column <= row; ++column) update(row, column, step);
      }
    }
  }
  [[nodiscard]] long kernels() const { return kernels_; }

 private:
  [[nodiscard]] int& at(const int row, const int column) {
    return data_[static_cast<std::size_t>(row * tiles_ + column)];
  }
  void rest(const int us) {
    ++kernels_;  // one worker a rank
    std::this_thread::sleep_for(std::chrono::microseconds(us));
  }
  void kernel(const char* name, const int us, const int row, const int column) {
    imbrex::task(name).inout(at(row, column)).launch([this, us] { rest(us); });
  }
  void update(const int row, const int column, const int step) {
    if (!grid_.mine(row, column)) return;
    if (row == column) {
      imbrex::task("syrk").in(at(row, step)).inout(at(row, row)).launch([this] {
        rest(gemm_us_ / 2);
      });
    } else {
      imbrex::task("gemm").in(at(row, step), at(column, step)).inout(at(row, column))
          .launch([this] { rest(gemm_us_); });
    }
  }
  // Who needs tile (row, column) of this step gets it from its owner: a send and a receive task
  // each.
  void pass_on(const int row, const int column, const int step) {
    std::vector<bool> needs(static_cast<std::size_t>(grid_.rows * grid_.columns), false);
    const auto mark = [&](const int r, const int c) {
      needs[static_cast<std::size_t>(grid_.owner(r, c))] = true;
    };
    if (row == column) {
      for (int below = step + 1; below < tiles_; ++below) mark(below, step);
    } else {
      for (int other = step + 1; other <= row; ++other) mark(row, other);
      for (int below = row; below < tiles_; ++below) mark(below, row);
    }
    const int owner = grid_.owner(row, column);
    int& tile = at(row, column);
    const int tag = row * tiles_ + column;
    for (int rank = 0; rank < grid_.rows * grid_.columns; ++rank) {
      if (rank == owner || !needs[static_cast<std::size_t>(rank)]) continue;
      if (owner == grid_.rank) {
        imbrex::task("send").in(tile).launch([&tile, rank, tag] {
          MPI_Send(&tile, 1, MPI_INT, rank, tag, MPI_COMM_WORLD);
        });
      } else if (rank == grid_.rank) {
        imbrex::task("receive").out(tile).launch([&tile, owner, tag] {
          MPI_Recv(&tile, 1, MPI_INT, owner, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        });
      }
    }
  }

  const Grid grid_;
  const int tiles_;
  const int gemm_us_;
  std::vector<int> data_;
  long kernels_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int tiles = argc > 1 ? std::atoi(argv[1]) : 24;
  const int gemm_us = argc > 2 ? std::atoi(argv[2]) : 1000;
  int rank = 0;
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int rows = 1;
  for (int candidate = 1; candidate * candidate <= ranks; ++candidate) {
    if (ranks % candidate == 0) rows = candidate;
  }
  Factorisation factorisation({rows, ranks / rows, rank}, tiles, gemm_us);
  MPI_Barrier(MPI_COMM_WORLD);
  const auto begin = Clock::now();
  imbrex::finish([&] { factorisation.spawn(); });
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  long kernels = factorisation.kernels();
  MPI_Allreduce(MPI_IN_PLACE, &kernels, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  const long expected = static_cast<long>(tiles) * (tiles + 1) * (tiles + 2) / 6;
  const char* const policy = std::getenv("IMBREX_POLICY");
  if (rank == 0) {
    std::printf("{\"benchmark\": \"order\", \"policy\": \"%s\", \"ranks\": %d, \"tiles\": %d, "
                "\"seconds\": %.3f, \"kernels\": %ld}\n",
                policy == nullptr ? "default" : policy, ranks, tiles, seconds, kernels);
  }
  MPI_Finalize();
  return kernels == expected ? 0 : 1;
}
