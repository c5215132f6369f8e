// SPDX-License-Identifier: BSD-3-Clause
#include "level.hpp"

#include <algorithm>

namespace hpcg {

using sparse::Box;
using sparse::Brick;
using sparse::BrickShape;
using sparse::Point;

namespace {

constexpr double diagonal_value = 26;

template <class Visit>
void for_each_point(const Box& box, Visit&& visit) {
  for (int z = box.from[2]; z < box.to[2]; ++z) {
    for (int y = box.from[1]; y < box.to[1]; ++y) {
      for (int x = box.from[0]; x < box.to[0]; ++x) visit(Point{x, y, z});
    }
  }
}

std::size_t place_of(const Brick& brick, const Point& point) {
  return static_cast<std::size_t>(brick.at(point[0], point[1], point[2]));
}

// Returns the position in the finer level of a point of the coarser one.
std::size_t place_in_finer(const Brick& fine, const Point& point) {
  return static_cast<std::size_t>(fine.at(2 * point[0], 2 * point[1], 2 * point[2]));
}

// Returns the points of the coarser level that are points of this box. REQUIRES: no coordinate is
// negative.
Box halved(Box box) {
  for (std::size_t d = 0; d < 3; ++d) {
    box.from[d] = (box.from[d] + 1) / 2;
    box.to[d] = (box.to[d] + 1) / 2;
  }
  return box;
}

Operator operator_of(const Brick& brick, const Box& block) {
  Operator made{sparse::pattern_of(brick, block), {}, {}};
  std::vector<bool> inside(brick.size());
  for_each_point(block, [&](const Point& point) { inside[place_of(brick, point)] = true; });
  made.rows.value.assign(made.rows.column.size(), -1);
  std::size_t row = 0;
  for_each_point(block, [&](const Point& point) {
    const auto own = static_cast<int>(place_of(brick, point));
    std::uint32_t outside = 0;
    for (int entry = made.rows.begin[row]; entry < made.rows.begin[row + 1]; ++entry) {
      const int column = made.rows.column[static_cast<std::size_t>(entry)];
      if (column == own) made.diagonal.push_back(entry);
      if (!inside[static_cast<std::size_t>(column)]) {
        outside |= std::uint32_t{1} << static_cast<unsigned>(entry - made.rows.begin[row]);
      }
    }
    made.outside.push_back(outside);
    ++row;
  });
  for (const int entry : made.diagonal) {
    made.rows.value[static_cast<std::size_t>(entry)] = diagonal_value;
  }
  return made;
}

void connect(Level& fine, Level& coarse) {
  fine.coarser.resize(fine.block_count());
  coarse.finer.resize(coarse.block_count());
  for (std::size_t f = 0; f < fine.block_count(); ++f) {
    const Box box = halved(fine.brick.blocks()[f]);
    if (box.count() == 0) continue;
    for (std::size_t c = 0; c < coarse.block_count(); ++c) {
      if (!box.overlaps(coarse.brick.blocks()[c])) continue;
      fine.coarser[f].push_back(static_cast<int>(c));
      coarse.finer[c].push_back(static_cast<int>(f));
    }
  }
}

}  // namespace

Level::Level(const BrickShape& shape, const int rank, const bool with_operator)
    : brick(shape, rank) {
  if (!with_operator) return;
  for (const Box& block : brick.blocks()) operators.push_back(operator_of(brick, block));
}

std::vector<std::unique_ptr<Level>> make_levels(const BrickShape& shape, const int rank,
                                                const bool with_operators) {
  std::vector<std::unique_ptr<Level>> levels;
  BrickShape here = shape;
  for (int level = 0; level < level_count; ++level) {
    levels.push_back(std::make_unique<Level>(here, rank, with_operators));
    for (int& points : here.points) points /= 2;
    if (level > 0) connect(*levels[levels.size() - 2], *levels.back());
  }
  return levels;
}

std::vector<double> right_side(const Level& level) {
  std::vector<double> side(level.brick.size());
  for (const Operator& block : level.operators) {
    for (std::size_t row = 0; row < block.diagonal.size(); ++row) {
      const int others = block.rows.begin[row + 1] - block.rows.begin[row] - 1;
      const int place = block.rows.column[static_cast<std::size_t>(block.diagonal[row])];
      side[static_cast<std::size_t>(place)] = diagonal_value - others;
    }
  }
  return side;
}

void exaggerate_diagonal(Level& level, std::vector<double>& right_side) {
  const Brick& brick = level.brick;
  for (std::size_t block = 0; block < level.block_count(); ++block) {
    Operator& here = level.operators[block];
    std::size_t row = 0;
    for_each_point(brick.blocks()[block], [&](const Point& point) {
      std::int64_t number = 0;  // in the whole grid
      for (std::size_t d = 3; d-- > 0;) {
        number = number * brick.global()[d] + point[d] + brick.first()[d];
      }
      const double scale = number < 9 ? static_cast<double>(number + 2) * 1e6 : 1e6;
      here.rows.value[static_cast<std::size_t>(here.diagonal[row])] = scale * diagonal_value;
      right_side[place_of(brick, point)] *= scale;
      ++row;
    });
  }
}

void restore_diagonal(Level& level) {
  for (Operator& block : level.operators) {
    for (const int entry : block.diagonal) {
      block.rows.value[static_cast<std::size_t>(entry)] = diagonal_value;
    }
  }
}

void smooth(const Level& level, const std::size_t block, const std::vector<double>& right_side,
            const std::vector<double>& from, std::vector<double>& to) noexcept {
  const Operator& here = level.operators[block];
  const int* const begin = here.rows.begin.data();
  const int* const column = here.rows.column.data();
  const double* const value = here.rows.value.data();
  const double* const sources[2] = {to.data(), from.data()};
  sparse::for_each_line(level.brick, level.brick.blocks()[block], [&](int first, int count) {
    std::copy_n(from.data() + first, count, to.data() + first);
  });
  const auto relax = [&](const std::size_t row) {
    const int diagonal = here.diagonal[row];
    const auto place = static_cast<std::size_t>(column[diagonal]);
    double sum = right_side[place];
    std::uint32_t outside = here.outside[row];
    if (outside == 0) {
      for (int e = begin[row]; e < begin[row + 1]; ++e) sum -= value[e] * sources[0][column[e]];
    } else {
      for (int e = begin[row]; e < begin[row + 1]; ++e, outside >>= 1) {
        sum -= value[e] * sources[outside & 1][column[e]];
      }
    }
    sum += to[place] * value[diagonal];
    to[place] = sum / value[diagonal];
  };
  const std::size_t rows = here.diagonal.size();
  for (std::size_t row = 0; row < rows; ++row) relax(row);
  for (std::size_t row = rows; row-- > 0;) relax(row);
}

void restrict_residual(const Level& fine, const Level& coarse, const std::size_t block,
                       const std::vector<double>& right_side, const std::vector<double>& product,
                       std::vector<double>& coarse_side) noexcept {
  for_each_point(coarse.brick.blocks()[block], [&](const Point& point) {
    const std::size_t place = place_in_finer(fine.brick, point);
    coarse_side[place_of(coarse.brick, point)] = right_side[place] - product[place];
  });
}

void prolong(const Level& fine, const Level& coarse, const std::size_t block,
             const std::vector<double>& correction, std::vector<double>& result) noexcept {
  for_each_point(halved(fine.brick.blocks()[block]), [&](const Point& point) {
    result[place_in_finer(fine.brick, point)] += correction[place_of(coarse.brick, point)];
  });
}

void fill(const Level& level, const std::size_t block, const double value,
          std::vector<double>& result) noexcept {
  sparse::for_each_line(level.brick, level.brick.blocks()[block], [&](int first, int count) {
    std::fill_n(result.data() + first, count, value);
  });
}

double entries_of(const Point& points) noexcept {
  double entries = 1;
  for (const int count : points) entries *= 3.0 * count - 2;
  return entries;
}

}  // namespace hpcg
