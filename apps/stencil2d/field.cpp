// SPDX-License-Identifier: BSD-3-Clause
#include "field.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace stencil2d {
namespace {

double start_value(int row, int column) noexcept {
  return 0.5 + 0.4 * std::sin(0.05 * row) * std::cos(0.03 * column);
}

struct Neighbours {
  double n, s, w, e;
};
inline double next_value(double u, const Neighbours& at, int rounds) noexcept {
  double v = u + 0.2 * (((at.n + at.s) + (at.w + at.e)) - 4.0 * u);
  for (int round = 0; round < rounds; ++round) v += 0.001 * v * (1.0 - v);
  return v;
}

}  // namespace

int Problem::cost(int block, int step) const noexcept {
  const double angle = 2 * std::numbers::pi * turns * step / steps;
  const double x = (block % blocks + 0.5) / blocks - (0.5 + 0.25 * std::cos(angle));
  const double y = (block / blocks + 0.5) / blocks - (0.5 + 0.25 * std::sin(angle));
  return x * x + y * y < radius * radius ? hot : 1;
}

int neighbour(const Problem& problem, int block, int side) noexcept {
  const int row = block / problem.blocks;
  const int column = block % problem.blocks;
  switch (side) {
    case north: return row > 0 ? block - problem.blocks : -1;
    case south: return row + 1 < problem.blocks ? block + problem.blocks : -1;
    case west: return column > 0 ? block - 1 : -1;
    default: return column + 1 < problem.blocks ? block + 1 : -1;
  }
}

void fill(const Problem& problem, int block, double* cells) {
  const int row = block / problem.blocks * problem.side;
  const int column = block % problem.blocks * problem.side;
  for (int r = 0; r < problem.side; ++r) {
    for (int c = 0; c < problem.side; ++c) *cells++ = start_value(row + r, column + c);
  }
}

void copy_edges(const Problem& problem, const double* cells, double* edges) {
  const auto side = static_cast<std::size_t>(problem.side);
  std::copy_n(cells, side, edges + north * side);
  std::copy_n(cells + (side - 1) * side, side, edges + south * side);
  for (std::size_t r = 0; r < side; ++r) {
    edges[west * side + r] = cells[r * side];
    edges[east * side + r] = cells[r * side + side - 1];
  }
}

void advance(const Problem& problem, double* cells, const Halo& halo, int cost) {
  const auto side = static_cast<std::size_t>(problem.side);
  const std::vector<double> wall(side, 0.0);
  const auto edge = [&](int of) { return halo[static_cast<std::size_t>(of)]; };
  // The loop works in place: the old values of the row above are kept.
  std::vector<double> above(edge(north) != nullptr ? edge(north) : wall.data(),
                            (edge(north) != nullptr ? edge(north) : wall.data()) + side);
  std::vector<double> here(side);
  for (std::size_t r = 0; r < side; ++r) {
    double* const row = cells + r * side;
    std::copy_n(row, side, here.data());
    const double* below = r + 1 < side ? row + side : edge(south);
    if (below == nullptr) below = wall.data();
    for (std::size_t c = 0; c < side; ++c) {
      const double w = c > 0 ? here[c - 1] : edge(west) != nullptr ? edge(west)[r] : 0.0;
      const double e = c + 1 < side ? here[c + 1] : edge(east) != nullptr ? edge(east)[r] : 0.0;
      row[c] = next_value(here[c], {above[c], below[c], w, e}, problem.rounds * cost);
    }
    std::swap(above, here);
  }
}

std::vector<double> compute_serially(const Problem& problem) {
  const int width = problem.blocks * problem.side;
  const auto size = static_cast<std::size_t>(width) * static_cast<std::size_t>(width);
  std::vector<double> now(size);
  std::vector<double> next(size);
  const auto index = [width](int r, int c) {
    return static_cast<std::size_t>(r) * static_cast<std::size_t>(width) +
           static_cast<std::size_t>(c);
  };
  const auto at = [&](int r, int c) {
    return r < 0 || r == width || c < 0 || c == width ? 0.0 : now[index(r, c)];
  };
  for (int r = 0; r < width; ++r) {
    for (int c = 0; c < width; ++c) now[index(r, c)] = start_value(r, c);
  }
  for (int step = 0; step < problem.steps; ++step) {
    for (int r = 0; r < width; ++r) {
      for (int c = 0; c < width; ++c) {
        const int block = r / problem.side * problem.blocks + c / problem.side;
        next[index(r, c)] =
            next_value(at(r, c), {at(r - 1, c), at(r + 1, c), at(r, c - 1), at(r, c + 1)},
                       problem.rounds * problem.cost(block, step));
      }
    }
    std::swap(now, next);
  }
  return now;
}

bool is_part(const Problem& problem, const std::vector<double>& field, int block,
             const double* cells) {
  const auto side = static_cast<std::size_t>(problem.side);
  const auto width = static_cast<std::size_t>(problem.blocks) * side;
  const auto row = static_cast<std::size_t>(block / problem.blocks) * side;
  const auto column = static_cast<std::size_t>(block % problem.blocks) * side;
  for (std::size_t r = 0; r < side; ++r) {
    const double* const expected = field.data() + (row + r) * width + column;
    if (!std::equal(expected, expected + side, cells + r * side)) return false;
  }
  return true;
}

}  // namespace stencil2d
