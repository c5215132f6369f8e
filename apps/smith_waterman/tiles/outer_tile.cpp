// SPDX-License-Identifier: BSD-3-Clause
#include "outer_tile.hpp"

#include "../../tiled/sleep.hpp"

namespace smith_waterman {

void fill_edge(const Scoring& scoring, std::int64_t first, std::vector<Score>& edge) {
  for (std::size_t k = 0; k < edge.size(); ++k) {
    const auto letters = static_cast<Score>(first + static_cast<std::int64_t>(k) + 1);
    edge[k] = scoring.local ? 0 : scoring.gap * letters;
  }
}

Score edge_corner(const Scoring& scoring, Extent origin) {
  return scoring.local ? 0 : scoring.gap * static_cast<Score>(origin.rows + origin.columns);
}

OuterTile::OuterTile(const Problem& problem, int i, int j)
    : problem_(problem),
      extent_(problem.tiling.extent(i, j)),
      inner_(problem.tiling.inner),
      origin_{problem.tiling.outer.rows * i, problem.tiling.outer.columns * j} {
  column.resize(static_cast<std::size_t>(extent_.rows));
  row.resize(static_cast<std::size_t>(extent_.columns));
  if (j == 0) fill_edge(problem.scoring, origin_.rows, column);
  if (i == 0) fill_edge(problem.scoring, origin_.columns, row);
  if (i == 0 || j == 0) corner = edge_corner(problem.scoring, origin_);
}

void OuterTile::begin() {
  corners_.resize(static_cast<std::size_t>(down()));
  corners_[0] = corner;
  for (int i = 1; i < down(); ++i) corners_[static_cast<std::size_t>(i)] = *(left_of(i) - 1);
}

void OuterTile::compute(int i, int j) {
  const int rows = static_cast<int>(Tiling::part(extent_.rows, inner_.rows, i));
  const int columns = static_cast<int>(Tiling::part(extent_.columns, inner_.columns, j));
  const Origin origin{.row = origin_.rows + i * inner_.rows,
                      .column = origin_.columns + j * inner_.columns};
  const std::int64_t cells = static_cast<std::int64_t>(rows) * columns;
  const Tile tile{.a = problem_.a + origin.row, .rows = rows, .b = problem_.b + origin.column,
                  .columns = columns, .column = left_of(i), .row = above(j),
                  .corner = &corners_[static_cast<std::size_t>(i)]};
  if (problem_.kernel.sleep_s > 0) {
    tiled::sleep_precisely(problem_.kernel.sleep_s * static_cast<double>(cells) /
                           static_cast<double>(problem_.kernel.whole_cells));
  } else if (problem_.kernel.plain) {
    Cell cell = compute_plainly(problem_.scoring, tile);
    cell.row += origin.row;
    cell.column += origin.column;
    if (problem_.largest != nullptr) problem_.largest->offer(cell);
  } else {
    smith_waterman::compute(problem_.scoring, tile, origin, problem_.largest);
  }
  problem_.progress->add(cells);
}

}  // namespace smith_waterman
