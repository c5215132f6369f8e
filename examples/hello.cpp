// SPDX-License-Identifier: BSD-3-Clause
// The first program: tasks ordered by what they read and write, and a future for a result.
#include <imbrex/imbrex.hpp>

#include <cstdio>

int main() {
  int x = 0;
  int y = 0;
  imbrex::finish([&] {
    imbrex::task("write x").out(x).launch([&] { x = 40; });
    imbrex::task("write y").in(x).out(y).launch([&] { y = x + 2; });  // runs after "write x"
  });  // waits for both

  auto square = imbrex::task("square").spawn([y] { return y * y; });
  std::printf("%d * %d = %d\n", y, y, square.get());  // get() suspends main until it is there
  return square.get() == 1764 ? 0 : 1;
}
