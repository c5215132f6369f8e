// SPDX-License-Identifier: BSD-3-Clause
// Parallel loops: the heat in a plate, row by row, until no value changes any more.
#include <imbrex/parallel.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <ranges>
#include <vector>

int main() {
  constexpr std::size_t size = 64;
  std::vector<std::vector<double>> plate(size, std::vector<double>(size, 0.0));
  plate[0].assign(size, 1.0);
  auto next = plate;
  const auto inner = std::views::iota(std::size_t{1}, size - 1);

  int steps = 0;
  double change = 1;
  while (change > 1e-4) {
    change = imbrex::reduce(
        inner, 0.0, [](double a, double b) { return std::max(a, b); },
        [&](const std::size_t i) {
          double most = 0;
          for (const std::size_t j : inner) {
            next[i][j] =
                (plate[i - 1][j] + plate[i + 1][j] + plate[i][j - 1] + plate[i][j + 1]) / 4;
            most = std::max(most, std::abs(next[i][j] - plate[i][j]));
          }
          return most;
        });
    plate.swap(next);
    ++steps;
  }

  // A parallel loop over rows: each row is replaced by its mean.
  imbrex::parallel_for(plate, {.grain = 4, .name = "mean of rows"}, [](std::vector<double>& row) {
    double sum = 0;
    for (const double value : row) sum += value;
    row.assign(1, sum / static_cast<double>(row.size()));
  });
  std::printf("%d steps; means from %.3f to %.3f\n", steps, plate[0][0], plate[size - 1][0]);
  const bool falls = std::ranges::is_sorted(plate, [](const auto& a, const auto& b) {
    return a[0] > b[0];
  });
  return falls && steps > 100 && plate[0][0] == 1 ? 0 : 1;
}
