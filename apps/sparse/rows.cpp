// SPDX-License-Identifier: BSD-3-Clause
#include "rows.hpp"

#include <algorithm>

namespace sparse {

Rows pattern_of(const Brick& brick, const Box& block) {
  Rows rows;
  const auto count = static_cast<std::size_t>(block.count());
  rows.begin.reserve(count + 1);
  rows.column.reserve(27 * count);
  rows.begin.push_back(0);
  Point low{};   // the first and the last point of the grid, in local coordinates
  Point high{};
  for (std::size_t d = 0; d < 3; ++d) {
    low[d] = -brick.first()[d];
    high[d] = brick.global()[d] - 1 - brick.first()[d];
  }
  for (int z = block.from[2]; z < block.to[2]; ++z) {
    for (int y = block.from[1]; y < block.to[1]; ++y) {
      for (int x = block.from[0]; x < block.to[0]; ++x) {
        for (int c = std::max(z - 1, low[2]); c <= std::min(z + 1, high[2]); ++c) {
          for (int b = std::max(y - 1, low[1]); b <= std::min(y + 1, high[1]); ++b) {
            for (int a = std::max(x - 1, low[0]); a <= std::min(x + 1, high[0]); ++a) {
              rows.column.push_back(brick.at(a, b, c));
            }
          }
        }
        rows.begin.push_back(static_cast<int>(rows.column.size()));
      }
    }
  }
  rows.value.resize(rows.column.size());
  return rows;
}

void multiply(const Brick& brick, const Box& block, const Rows& rows,
              const std::vector<double>& vector, std::vector<double>& product) noexcept {
  const int* const begin = rows.begin.data();
  const int* const column = rows.column.data();
  const double* const value = rows.value.data();
  std::size_t row = 0;
  for_each_line(brick, block, [&](const int first, const int count) {
    for (int i = 0; i < count; ++i, ++row) {
      double sum = 0;
      for (int entry = begin[row]; entry < begin[row + 1]; ++entry) {
        sum += value[entry] * vector[static_cast<std::size_t>(column[entry])];
      }
      product[static_cast<std::size_t>(first + i)] = sum;
    }
  });
}

void add(const Brick& brick, const Box& block, const std::vector<double>& a, const double factor,
         const std::vector<double>& b, std::vector<double>& result) noexcept {
  for_each_line(brick, block, [&](const int first, const int count) {
    for (int i = first; i < first + count; ++i) {
      const auto place = static_cast<std::size_t>(i);
      result[place] = a[place] + factor * b[place];
    }
  });
}

double dot(const Brick& brick, const Box& block, const std::vector<double>& a,
           const std::vector<double>& b) noexcept {
  double sum = 0;
  for_each_line(brick, block, [&](const int first, const int count) {
    for (int i = first; i < first + count; ++i) {
      const auto place = static_cast<std::size_t>(i);
      sum += a[place] * b[place];
    }
  });
  return sum;
}

}  // namespace sparse
