// SPDX-License-Identifier: BSD-3-Clause
#include "balance.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace stencil2d {
namespace {

// Returns column and row of the curve through a square of `width`, a power of two, after `place`
// steps. It turns the quarter that it is in, from the smallest to the largest.
std::pair<int, int> place_on_curve(int width, int place) {
  int x = 0;
  int y = 0;
  for (int quarter = 1; quarter < width; quarter *= 2) {
    const int right = place / 2 % 2;
    const int up = (place ^ right) % 2;
    if (up == 0) {
      if (right == 1) {
        x = quarter - 1 - x;
        y = quarter - 1 - y;
      }
      std::swap(x, y);
    }
    x += quarter * right;
    y += quarter * up;
    place /= 4;
  }
  return {x, y};
}

// The rank of each block if no rank may have more than `most`; empty if the ranks do not suffice.
std::vector<int> fill_up(const std::vector<int>& curve, const std::vector<std::int64_t>& weights,
                         int ranks, std::int64_t most) {
  std::vector<int> owners(curve.size());
  int rank = 0;
  std::int64_t sum = 0;
  for (const int block : curve) {
    const std::int64_t weight = weights[static_cast<std::size_t>(block)];
    if (sum + weight > most) {
      ++rank;
      sum = 0;
    }
    if (rank == ranks || weight > most) return {};
    sum += weight;
    owners[static_cast<std::size_t>(block)] = rank;
  }
  return owners;
}

}  // namespace

std::vector<int> curve(int blocks) {
  int width = 1;
  while (width < blocks) width *= 2;
  std::vector<int> order;
  for (int place = 0; place < width * width; ++place) {
    const auto [x, y] = place_on_curve(width, place);
    if (x < blocks && y < blocks) order.push_back(y * blocks + x);
  }
  return order;
}

std::vector<int> distribute(const std::vector<int>& curve, std::vector<std::int64_t> weights,
                            int ranks) {
  std::int64_t high = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
  if (high == 0) {
    std::fill(weights.begin(), weights.end(), 1);
    high = static_cast<std::int64_t>(weights.size());
  }
  std::int64_t low = 0;  // too little
  while (low + 1 < high) {
    const std::int64_t middle = low + (high - low) / 2;
    (fill_up(curve, weights, ranks, middle).empty() ? low : high) = middle;
  }
  return fill_up(curve, weights, ranks, high);
}

std::vector<int> distribute_evenly(const Problem& problem, const int ranks) {
  return distribute(curve(problem.blocks),
                    std::vector<std::int64_t>(static_cast<std::size_t>(problem.count()), 1), ranks);
}

double imbalance(const std::vector<int>& owners, const std::vector<std::int64_t>& weights,
                 int ranks) {
  std::vector<std::int64_t> sums(static_cast<std::size_t>(ranks), 0);
  for (std::size_t b = 0; b < owners.size(); ++b) {
    sums[static_cast<std::size_t>(owners[b])] += weights[b];
  }
  const std::int64_t all = std::accumulate(sums.begin(), sums.end(), std::int64_t{0});
  if (all == 0) return 1;
  return static_cast<double>(*std::max_element(sums.begin(), sums.end())) * ranks /
         static_cast<double>(all);
}

}  // namespace stencil2d
