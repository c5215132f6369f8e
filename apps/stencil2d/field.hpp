// SPDX-License-Identifier: BSD-3-Clause
// The field, its cells and what they cost: a square of blocks, each a square of cells, between
// walls of the value 0. In a step a cell diffuses into its four neighbours and then reacts, in
// rounds; a hot spot, in which cells need more rounds, goes around. Knows no tasks and no MPI.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace stencil2d {

struct Problem {
  int blocks = 16;       // of a row, and of a column
  int side = 64;         // cells of a block's row, and of its column
  int steps = 100;
  int rounds = 8;        // of a cell's reaction
  int hot = 8;           // times as many inside of the hot spot
  double radius = 0.2;   // of the spot; the field's width is 1
  double turns = 0.5;    // of the spot, in the whole run

  [[nodiscard]] int count() const noexcept { return blocks * blocks; }  // of blocks
  [[nodiscard]] std::size_t cells() const noexcept {                    // of a block
    return static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
  }
  // The cost of a block: 1, or `hot` in the hot spot. Blocks are numbered row by row.
  [[nodiscard]] int cost(int block, int step) const noexcept;
};

// A block's edges: four rows of `side` cells, in this order.
enum Side : int { north, south, west, east };
constexpr int sides = 4;
// The neighbour's edge that touches this one.
inline constexpr std::array<Side, sides> opposite{south, north, east, west};

// The number of the neighbour of `block` on `side`; -1 if a wall is there.
[[nodiscard]] int neighbour(const Problem& problem, int block, int side) noexcept;

// The places where a block's neighbours have the edges that it touches; null: a wall.
using Halo = std::array<const double*, sides>;

// The memory of a block lies row by row. The values of fill() depend only on a cell's place in the
// field.
void fill(const Problem& problem, int block, double* cells);
void copy_edges(const Problem& problem, const double* cells, double* edges);
void advance(const Problem& problem, double* cells, const Halo& halo, int cost);

// The whole field after all steps, row by row, by two arrays and plain loops.
[[nodiscard]] std::vector<double> compute_serially(const Problem& problem);
// True if a block has the same bits as its part of the field.
[[nodiscard]] bool is_part(const Problem& problem, const std::vector<double>& field, int block,
                           const double* cells);

}  // namespace stencil2d
