// SPDX-License-Identifier: BSD-3-Clause
// The 1-D field, and what a step makes of a cell.
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <vector>

#include "steps.hpp"

namespace stencil1d {

// The tasks of run_tasks() that get a priority: all, with the highest for borders and messages;
// sends alone, for policies that go by sends; or none.
enum class Priorities : std::uint8_t { borders, sends, none };

// This rank's share of the cells.
struct Domain : Share {
  MPI_Comm comm = MPI_COMM_WORLD;
  double cell_ns = 0;  // if not 0, a sweep sleeps so long for each cell, and is none
  Priorities priorities = Priorities::borders;
};

// Throws apps::InputError if a rank has fewer than 3 * ghost cells.
[[nodiscard]] Domain make_domain(MPI_Comm comm, std::int64_t size, std::int64_t ghost, int chunks,
                                 bool periodic);

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
