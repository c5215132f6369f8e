// SPDX-License-Identifier: BSD-3-Clause
// Dependencies by address: blocks of a rod exchange heat; no barrier between the steps. Then sums
// in any order, one at a time (mutexinoutset), and parts side by side (inoutset).
#include <imbrex/imbrex.hpp>

#include <array>
#include <cstdio>
#include <numeric>

namespace {

constexpr int blocks = 8, steps = 50;
using Rod = std::array<double, blocks>;

double mix(double left, double middle, double right) {
  return middle + 0.25 * (left - 2 * middle + right);
}

Rod sequential(Rod now) {
  for (int step = 0; step < steps; ++step) {
    const Rod old = now;
    for (int i = 1; i + 1 < blocks; ++i) now[i] = mix(old[i - 1], old[i], old[i + 1]);
  }
  return now;
}

}  // namespace

int main() {
  Rod rod[2] = {{100, 0, 0, 0, 0, 0, 0, 20}, {100, 0, 0, 0, 0, 0, 0, 20}};
  const Rod expected = sequential(rod[0]);
  double sum = 0;
  int left = 0, right = 0;
  imbrex::finish([&] {
    for (int step = 0; step < steps; ++step) {
      const Rod& old = rod[step % 2];
      Rod& next = rod[(step + 1) % 2];
      for (int i = 1; i + 1 < blocks; ++i) {
        imbrex::task("mix").in(old[i - 1], old[i], old[i + 1]).out(next[i]).launch([&, i] {
          next[i] = mix(old[i - 1], old[i], old[i + 1]);
        });
      }
    }
    for (const double& heat : rod[steps % 2]) {
      imbrex::task("add").in(heat).mutexinoutset(sum).launch([&] { sum += heat; });
    }
    char whole = 0;  // any address can stand for something
    imbrex::task("left").inoutset(whole).launch([&] { left = 1; });
    imbrex::task("right").inoutset(whole).launch([&] { right = 2; });
    imbrex::task("after both").in(whole).launch([&] { left += right; });
  });
  std::printf("heat %.6f, parts %d\n", sum, left);
  const double error = sum - std::accumulate(expected.begin(), expected.end(), 0.0);
  return rod[steps % 2] == expected && error * error < 1e-20 && left == 3 ? 0 : 1;
}
