// SPDX-License-Identifier: BSD-3-Clause
// The 1-D field: who has which cells, what a step makes of a cell, and in which parts.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <vector>

namespace stencil1d {

enum Side : int { left = 0, right = 1 };

// The tasks of run_tasks() that get a priority: all, with the highest for borders and messages;
// sends alone, for policies that go by sends; or none.
enum class Priorities : std::uint8_t { borders, sends, none };

// This rank's share of the cells. Cells of a rank: a border of `ghost` cells on each side, which a
// step computes from the neighbour's cells too, and the core between them.
struct Domain {
  MPI_Comm comm = MPI_COMM_WORLD;
  int rank = 0;
  int ranks = 1;
  std::array<int, 2> neighbour{};  // by Side; MPI_PROC_NULL: none
  std::int64_t size = 0;           // cells of all ranks
  std::int64_t first = 0;          // of this rank
  std::int64_t count = 0;
  std::int64_t ghost = 0;
  int chunks = 1;                  // of the core
  double cell_ns = 0;              // if not 0, a sweep sleeps so long for each cell, and is none
  Priorities priorities = Priorities::borders;

  [[nodiscard]] bool has(Side side) const noexcept { return neighbour[side] != MPI_PROC_NULL; }
};

// Throws apps::InputError if a rank has fewer than 3 * ghost cells.
// At most `chunks` chunks: each is at least as long as the ghost layer.
[[nodiscard]] Domain make_domain(MPI_Comm comm, std::int64_t size, std::int64_t ghost, int chunks,
                                 bool periodic);

// Local cells from `begin` to `end`. Part 0 is the left border, the last one the right; each is as
// long as the ghost layer or longer, so that a step of it reads its neighbours and no others.
struct Part {
  std::int64_t begin;
  std::int64_t end;
};
[[nodiscard]] std::vector<Part> parts_of(const Domain& domain);

// Two copies of this rank's cells, with ghost layers: steps read one and write the other.
class Field {
 public:
  explicit Field(const Domain& domain);

  void reset();  // to the first step
  // Local cell 0 of one copy; ghost cells are at -ghost to -1, and from count on.
  [[nodiscard]] double* cells(int copy) noexcept { return copies_[copy & 1].data() + ghost_; }
  [[nodiscard]] double* ghosts(int copy, Side side) noexcept {
    return cells(copy) + (side == left ? -ghost_ : count_);
  }
  [[nodiscard]] double* border(int copy, Side side) noexcept {
    return cells(copy) + (side == left ? 0 : count_ - ghost_);
  }

 private:
  std::int64_t first_;
  std::int64_t ghost_;
  std::int64_t count_;
  std::array<std::vector<double>, 2> copies_;
};

[[nodiscard]] double initial_value(std::int64_t cell) noexcept;

// One step of a part: each cell from itself, its neighbours, and those a ghost layer away. The
// order of the operations is that of the text, whatever the part.
void sweep(const Domain& domain, const double* from, double* to, const Part& part) noexcept;

}  // namespace stencil1d
