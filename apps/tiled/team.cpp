// SPDX-License-Identifier: BSD-3-Clause
#include "team.hpp"

#include <fmt/format.h>

#include <charconv>

#include "../no_any_tag.hpp"

namespace tiled {

Grid nearly_square(int ranks) noexcept {
  Grid best{1, ranks};
  for (int rows = 1; rows * rows <= ranks; ++rows) {
    if (ranks % rows == 0) best = {rows, ranks / rows};
  }
  return best;
}

Grid parse_grid(const std::string& text, int ranks) {
  Grid grid;
  const char* const end = text.data() + text.size();
  const auto rows = std::from_chars(text.data(), end, grid.rows);
  bool well_formed = rows.ec == std::errc{} && rows.ptr != end && *rows.ptr == 'x';
  if (well_formed) {
    const auto columns = std::from_chars(rows.ptr + 1, end, grid.columns);
    well_formed = columns.ec == std::errc{} && columns.ptr == end;
  }
  if (!well_formed || grid.rows < 1 || grid.columns < 1) {
    throw InputError(fmt::format(
        "--grid {}: expected ROWSxCOLUMNS with two positive numbers, for example 1x{}", text,
        ranks));
  }
  if (static_cast<long>(grid.rows) * grid.columns != ranks) {
    throw InputError(fmt::format("--grid {}: needs {} ranks, but there are {}; start as many, or "
                                 "give a grid of {}", text,
                                 static_cast<long>(grid.rows) * grid.columns, ranks, ranks));
  }
  return grid;
}

Team::Team(Grid grid) : grid_(grid) {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_dup(MPI_COMM_WORLD, &all_);
  MPI_Comm_split(all_, row(), column(), &my_row_);
  MPI_Comm_split(all_, column(), row(), &my_column_);
  for (const MPI_Comm each : {all_, my_row_, my_column_}) promise_no_any_tag(each);
}

Team::~Team() {
  MPI_Comm_free(&my_column_);
  MPI_Comm_free(&my_row_);
  MPI_Comm_free(&all_);
}

}  // namespace tiled
