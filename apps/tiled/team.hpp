// SPDX-License-Identifier: BSD-3-Clause
// The ranks that factorise together: their grid and their communicators.
#pragma once

#include <mpi.h>

#include <string>

#include "../harness/program.hpp"
#include "layout.hpp"

namespace tiled {

using apps::fail_together;
using apps::InputError;

// The most square grid of `ranks` ranks, not higher than wide.
[[nodiscard]] Grid nearly_square(int ranks) noexcept;

// Reads "2x3". Throws InputError with what is wrong; every rank reads the same text.
[[nodiscard]] Grid parse_grid(const std::string& text, int ranks);

// Thread safety: made and destroyed by main, read by any task.
// Rank p * columns + q stands in row p and column q of the grid.
class Team {
 public:
  explicit Team(Grid grid);  // of the ranks of MPI_COMM_WORLD; collective
  ~Team();                   // collective; before MPI_Finalize
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] Grid grid() const noexcept { return grid_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return grid_.rows * grid_.columns; }
  [[nodiscard]] int row() const noexcept { return rank_ / grid_.columns; }
  [[nodiscard]] int column() const noexcept { return rank_ % grid_.columns; }
  [[nodiscard]] MPI_Comm all() const noexcept { return all_; }
  [[nodiscard]] MPI_Comm my_row() const noexcept { return my_row_; }        // ranked by column
  [[nodiscard]] MPI_Comm my_column() const noexcept { return my_column_; }  // ranked by row

 private:
  Grid grid_;
  int rank_ = 0;
  MPI_Comm all_ = MPI_COMM_NULL;
  MPI_Comm my_row_ = MPI_COMM_NULL;
  MPI_Comm my_column_ = MPI_COMM_NULL;
};

}  // namespace tiled
