// SPDX-License-Identifier: BSD-3-Clause
// Jacobi's iteration on a rod, by tasks that live as long as the computation: a phaser keeps them
// in step, and an accumulator tells each task in every step how far the rod is from rest. Values,
// to the last bit, and the number of steps equal those of one loop.
#include <imbrex/accumulator.hpp>
#include <imbrex/imbrex.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

constexpr int points = 400, parts = 8;
constexpr double enough = 1e-4;
using Rod = std::vector<double>;

// New values for [first, last); the largest change.
double relax(const Rod& old, Rod& now, int first, int last) {
  double change = 0;
  for (int i = std::max(first, 1); i < std::min(last, points - 1); ++i) {
    const auto at = static_cast<std::size_t>(i);
    now[at] = 0.5 * (old[at - 1] + old[at + 1]);
    change = std::max(change, std::abs(now[at] - old[at]));
  }
  return change;
}

Rod cold_rod() {
  Rod rod(points, 0.0);
  rod.front() = 1;
  return rod;
}

int main() {
  Rod even = cold_rod(), odd = even;
  int steps = 0;
  imbrex::finish([&] {
    const imbrex::Phaser step(imbrex::single);
    const imbrex::Accumulator<double> change(step, imbrex::op::max);
    for (int part = 0; part < parts; ++part) {
      imbrex::task("part").phased(step).launch([&, part, change] {
        const int first = part * points / parts, last = (part + 1) * points / parts;
        Rod *old = &even, *now = &odd;
        do {
          change.put(relax(*old, *now, first, last));
          // One of them runs this, while the others wait.
          imbrex::Phaser::next_all(imbrex::single, [&] { ++steps; });
          std::swap(old, now);
        } while (change.get() > enough);
      });
    }
  });

  Rod old = cold_rod(), now = old;
  int expected = 1;
  for (; relax(old, now, 0, points) > enough; ++expected) old.swap(now);
  std::printf("%d tasks, %d steps; one loop: %d steps\n", parts, steps, expected);
  return steps == expected && (steps % 2 == 0 ? even : odd) == now ? 0 : 1;
}
