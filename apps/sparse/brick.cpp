// SPDX-License-Identifier: BSD-3-Clause
#include "brick.hpp"

#include <algorithm>

namespace sparse {

std::int64_t Box::count() const noexcept {
  std::int64_t count = 1;
  for (std::size_t d = 0; d < 3; ++d) count *= std::max(0, to[d] - from[d]);
  return count;
}

bool Box::overlaps(const Box& other) const noexcept {
  for (std::size_t d = 0; d < 3; ++d) {
    if (from[d] >= other.to[d] || other.from[d] >= to[d]) return false;
  }
  return true;
}

Point nearly_cubic(const int count) {
  Point best{1, 1, count};
  for (int x = 1; x * x * x <= count; ++x) {
    if (count % x != 0) continue;
    for (int y = x; x * y * y <= count; ++y) {
      const int z = count / x / y;
      if (x * y * z == count && x + y + z < best[0] + best[1] + best[2]) best = {x, y, z};
    }
  }
  return best;
}

BrickShape grid_of_cubes(const int n, const int ranks, const int blocks) {
  BrickShape shape{{}, nearly_cubic(ranks), blocks};
  for (std::size_t d = 0; d < 3; ++d) shape.points[d] = n * shape.ranks[d];
  return shape;
}

namespace {

// Returns the position at which part `index` of `parts` begins.
int begin_of(int index, int parts, int points) {
  return static_cast<int>(std::int64_t{index} * points / parts);
}

// All points that those of the box depend on.
Box grown(Box box) {
  for (std::size_t d = 0; d < 3; ++d) {
    --box.from[d];
    ++box.to[d];
  }
  return box;
}

struct Range {
  int from, to;
};
// What rank `index` of `ranks` owns of the points of a dimension, of which the first rank has
// `more` percent more than an even share, if the others keep a point each.
Range range_of(const int index, const int ranks, const int points, const int more) {
  const int even = points / ranks;
  const int first = ranks == 1 ? points
                               : static_cast<int>(std::min<std::int64_t>(
                                     even + std::int64_t{even} * more / 100, points - ranks + 1));
  if (index == 0) return {0, first};
  const int each = more == 0 ? even : (points - first) / (ranks - 1);
  const int from = first + (index - 1) * each;
  return {from, index + 1 == ranks ? points : from + each};
}

int rank_at(const Point& place, const Point& ranks) {
  return (place[2] * ranks[1] + place[1]) * ranks[0] + place[0];
}

}  // namespace

Brick::Brick(const BrickShape& shape, const int rank) : points_(shape.points) {
  const Point place{rank % shape.ranks[0], rank / shape.ranks[0] % shape.ranks[1],
                    rank / shape.ranks[0] / shape.ranks[1]};
  for (std::size_t d = 0; d < 3; ++d) {
    const Range range =
        range_of(place[d], shape.ranks[d], points_[d], d == 2 ? shape.imbalance : 0);
    first_[d] = range.from;
    owned_.to[d] = range.to - range.from;
  }
  line_ = owned_.to[0] + 2;
  plane_ = static_cast<std::size_t>(line_) * static_cast<std::size_t>(owned_.to[1] + 2);
  cut(shape.blocks);
  find_neighbours(shape, place);
}

void Brick::cut(const int blocks) {
  Point parts = nearly_cubic(blocks);
  for (std::size_t d = 0; d < 3; ++d) parts[d] = std::min(parts[d], owned_.to[d]);
  for (int z = 0; z < parts[2]; ++z) {
    for (int y = 0; y < parts[1]; ++y) {
      for (int x = 0; x < parts[0]; ++x) {
        const Point part{x, y, z};
        Box box;
        for (std::size_t d = 0; d < 3; ++d) {
          box.from[d] = begin_of(part[d], parts[d], owned_.to[d]);
          box.to[d] = begin_of(part[d] + 1, parts[d], owned_.to[d]);
        }
        blocks_.push_back(box);
      }
    }
  }
  for (const Box& box : blocks_) {
    std::vector<int>& found = around_.emplace_back();
    for (std::size_t other = 0; other < blocks_.size(); ++other) {
      if (grown(box).overlaps(blocks_[other])) found.push_back(static_cast<int>(other));
    }
  }
}

std::vector<bool> Brick::borders() const {
  std::vector<bool> borders(blocks_.size());
  for (const Neighbour& neighbour : neighbours_) {
    for (const int block : neighbour.touched) borders[static_cast<std::size_t>(block)] = true;
  }
  return borders;
}

void Brick::find_neighbours(const BrickShape& shape, const Point& place) {
  awaited_.resize(blocks_.size());
  for (int code = 0; code < 27; ++code) {
    const Point step{code % 3 - 1, code / 3 % 3 - 1, code / 9 - 1};
    Point other{};
    Neighbour neighbour{};
    bool there = code != 13;  // itself
    for (std::size_t d = 0; d < 3; ++d) {
      other[d] = place[d] + step[d];
      there = there && other[d] >= 0 && other[d] < shape.ranks[d];
      const int end = owned_.to[d];
      neighbour.send.from[d] = step[d] > 0 ? end - 1 : 0;
      neighbour.send.to[d] = step[d] < 0 ? 1 : end;
      neighbour.receive.from[d] = step[d] < 0 ? -1 : step[d] > 0 ? end : 0;
      neighbour.receive.to[d] = step[d] < 0 ? 0 : step[d] > 0 ? end + 1 : end;
    }
    if (!there) continue;
    neighbour.rank = rank_at(other, shape.ranks);
    for (std::size_t block = 0; block < blocks_.size(); ++block) {
      const int number = static_cast<int>(block);
      if (blocks_[block].overlaps(neighbour.send)) neighbour.touched.push_back(number);
      if (grown(blocks_[block]).overlaps(neighbour.receive)) {
        neighbour.readers.push_back(number);
        awaited_[block].push_back(static_cast<int>(neighbours_.size()));
      }
    }
    neighbours_.push_back(std::move(neighbour));
  }
}

}  // namespace sparse
