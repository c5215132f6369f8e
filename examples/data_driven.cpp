// SPDX-License-Identifier: BSD-3-Clause
// Data-driven futures: tasks that start when the values are there that they await.
#include <imbrex/imbrex.hpp>

#include <cstdio>
#include <vector>

int main() {
  // A row of Pascal's triangle from the one before: no entry waits for a whole row.
  constexpr std::size_t rows = 20;
  std::vector<std::vector<imbrex::Ddf<long>>> triangle;
  for (std::size_t row = 0; row <= rows; ++row) triangle.emplace_back(row + 1);
  imbrex::finish([&] {
    for (std::size_t row = rows; row != 0; --row) {  // in any order
      triangle[row][0].put(1);
      triangle[row][row].put(1);
      for (std::size_t i = 1; i < row; ++i) {
        const auto& left = triangle[row - 1][i - 1];
        const auto& right = triangle[row - 1][i];
        imbrex::task("add").await_all(left, right).launch([=, sum = triangle[row][i]] {
          sum.put(left.get() + right.get());  // get() never waits
        });
      }
    }
    triangle[0][0].put(1);
  });
  if (triangle[rows][rows / 2].get() != 184756) return 1;

  // Released once, by whichever comes first.
  const imbrex::Ddf<int> found("found");
  const imbrex::Ddf<int> given_up("given up");
  int answers = 0;
  imbrex::finish([&] {
    imbrex::task("answer").await_any(found, given_up).launch([&] { ++answers; });
    found.put(1);
    given_up.put(0);
  });
  if (answers != 1) return 2;

  try {
    found.put(2);
    return 3;
  } catch (const imbrex::Error& error) {
    std::printf("as it must: %s\n", error.what());
  }
  return 0;
}
