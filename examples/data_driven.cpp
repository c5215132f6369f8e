// SPDX-License-Identifier: BSD-3-Clause
// Data-driven tasks: a task starts when its input values are there, whatever code sets them.
#include <imbrex/imbrex.hpp>

#include <cstdio>
#include <vector>

int main() {
  // A row of Pascal's triangle from the one before: no entry waits for a whole row.
  constexpr std::size_t rows = 20;
  std::vector<std::vector<imbrex::Promise<long>>> triangle;
  for (std::size_t row = 0; row <= rows; ++row) {
    triangle.emplace_back();
    for (std::size_t i = 0; i <= row; ++i) triangle[row].emplace_back("entry");
  }
  imbrex::finish([&] {
    for (std::size_t row = rows; row != 0; --row) {  // in any order
      triangle[row][0].set(1);
      triangle[row][row].set(1);
      for (std::size_t i = 1; i < row; ++i) {
        const auto left = triangle[row - 1][i - 1].future();
        const auto right = triangle[row - 1][i].future();
        imbrex::task("add").in(left, right).launch([=, sum = triangle[row][i]] {
          sum.set(left.get() + right.get());  // neither get() waits
        });
      }
    }
    triangle[0][0].set(1);
  });
  if (triangle[rows][rows / 2].future().get() != 184756) return 1;

  // Released once, by whichever comes first.
  const imbrex::Promise<int> found("found");
  const imbrex::Promise<int> given_up("given up");
  int answers = 0;
  imbrex::finish([&] {
    imbrex::task("answer").in(imbrex::when_any(found.future(), given_up.future())).launch([&] {
      ++answers;
    });
    found.set(1);
    given_up.set(0);
  });
  if (answers != 1) return 2;

  try {
    found.set(2);
    return 3;
  } catch (const imbrex::Error& error) {
    std::printf("as it must: %s\n", error.what());
  }
  return 0;
}
