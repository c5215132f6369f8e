// SPDX-License-Identifier: BSD-3-Clause
// A rank's part of a grid of points in three dimensions whose points depend on all points around
// them: the owned points, cut into sub-blocks, and one layer around them that other ranks own.
// Knows no matrix and no message.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sparse {

// x, y, z.
using Point = std::array<int, 3>;

// The points of [from, to) in each dimension.
struct Box {
  Point from{};
  Point to{};

  [[nodiscard]] std::int64_t count() const noexcept;  // 0 if it is empty
  [[nodiscard]] bool overlaps(const Box& other) const noexcept;
};

// The factors of `count` with the least sum, the largest last: z is cut most, and lines of x stay
// as long as they can.
[[nodiscard]] Point nearly_cubic(int count);

// A rank that owns points of the layer around a brick.
struct Neighbour {
  int rank;
  Box send;     // points of this rank that the neighbour needs, in local coordinates
  Box receive;  // points of the neighbour that this rank needs, in local coordinates
  std::vector<int> touched;  // sub-blocks that own points of `send`
  std::vector<int> readers;  // sub-blocks whose points depend on points of `receive`
};

struct BrickShape {
  Point points;     // of all ranks
  Point ranks;      // in each dimension
  int blocks = 1;   // sub-blocks of a rank
  int imbalance = 0;  // percent by which the first ranks in z have more points than an even share
};

// Returns the grid in which each rank has `n` points in each dimension; it is nearly cubic.
[[nodiscard]] BrickShape grid_of_cubes(int n, int ranks, int blocks);

// Local coordinates are those of the first owned point as (0, 0, 0). A vector is kept as an array
// of size() numbers, in which at() says where a point stands; x is the fastest.
// Thread safety: any number of tasks may read it.
class Brick {
 public:
  // REQUIRES: each rank gets one point at least in each dimension, and size() fits into an int.
  // Rank (z * ranks[1] + y) * ranks[0] + x stands at (x, y, z); each dimension is cut evenly, but
  // for `imbalance`; the last rank has what is left over.
  Brick(const BrickShape& shape, int rank);

  [[nodiscard]] const Point& global() const noexcept { return points_; }
  [[nodiscard]] const Point& first() const noexcept { return first_; }  // owned, global
  [[nodiscard]] const Box& owned() const noexcept { return owned_; }    // local
  [[nodiscard]] const std::vector<Box>& blocks() const noexcept { return blocks_; }
  [[nodiscard]] const std::vector<Neighbour>& neighbours() const noexcept { return neighbours_; }
  // Sub-blocks whose points those of `block` depend on, itself among them.
  [[nodiscard]] const std::vector<int>& around(int block) const noexcept {
    return around_[static_cast<std::size_t>(block)];
  }
  // Entries of neighbours() that `block` depends on.
  [[nodiscard]] const std::vector<int>& awaited(int block) const noexcept {
    return awaited_[static_cast<std::size_t>(block)];
  }

  // Returns, for each sub-block, whether messages take points of it.
  [[nodiscard]] std::vector<bool> borders() const;

  [[nodiscard]] std::size_t size() const noexcept {
    return static_cast<std::size_t>(owned_.to[2] + 2) * plane_;
  }
  // REQUIRES: coordinates from -1 up to the number of owned points.
  [[nodiscard]] int at(int x, int y, int z) const noexcept {
    return (z + 1) * static_cast<int>(plane_) + (y + 1) * line_ + x + 1;
  }

 private:
  void cut(int blocks);
  void find_neighbours(const BrickShape& shape, const Point& place);

  Point points_;
  Point first_;
  Box owned_;
  int line_ = 0;
  std::size_t plane_ = 0;
  std::vector<Box> blocks_;
  std::vector<Neighbour> neighbours_;
  std::vector<std::vector<int>> around_;
  std::vector<std::vector<int>> awaited_;
};

// Calls visit(first, count) for each line of x of the box: where it begins in a vector, and its
// number of points; in the order of z, then y.
template <class Visit>
void for_each_line(const Brick& brick, const Box& box, Visit&& visit) {
  for (int z = box.from[2]; z < box.to[2]; ++z) {
    for (int y = box.from[1]; y < box.to[1]; ++y) {
      visit(brick.at(box.from[0], y, z), box.to[0] - box.from[0]);
    }
  }
}

}  // namespace sparse
