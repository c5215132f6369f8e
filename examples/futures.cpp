// SPDX-License-Identifier: BSD-3-Clause
// Futures: the results of tasks, also as dependencies of other tasks; promises, which any code may
// set; when_all() and when_any().
#include <imbrex/imbrex.hpp>

#include <cstdio>
#include <string>
#include <vector>

int main() {
  std::vector<imbrex::Future<int>> squares;
  for (int i = 0; i < 10; ++i) {
    squares.push_back(imbrex::task("square").spawn([i] { return i * i; }));
  }
  imbrex::when_all(squares).get();  // rethrows the first failure, had there been one
  int sum = 0;
  for (const auto& square : squares) sum += square.get();
  if (sum != 285) return 1;

  // A task that runs after two futures are there: its get() never suspends.
  auto a = imbrex::task("a").spawn([] { return std::string("impluvium"); });
  auto b = imbrex::task("b").spawn([] { return 9; });
  auto both = imbrex::task("compare").in(a, b).spawn([a, b] {
    return static_cast<int>(a.get().size()) == b.get();
  });
  if (!both.get()) return 2;

  // The first of two: the promise is set by a task, the other one later by main.
  const imbrex::Promise<int> early("early");
  const imbrex::Promise<int> late("late");
  imbrex::task("set").launch([early] { early.set(1); });
  if (imbrex::when_any(late.future(), early.future()).get() != 1) return 3;  // a position
  bool ran = false;
  imbrex::task("either").in(imbrex::when_any(late.future(), early.future())).spawn([&ran] {
    ran = true;
  }).get();
  if (!ran) return 5;
  late.set(2);
  if (late.future().get() != 2) return 4;

  // A promise whose last copy is gone without a value is broken: get() throws and names it.
  imbrex::Future<int> never;
  {
    const imbrex::Promise<int> forgotten("forgotten");
    never = forgotten.future();
  }
  try {
    return never.get();
  } catch (const imbrex::BrokenPromise& error) {
    std::printf("sum %d; as it must: %s\n", sum, error.what());
  }
  return 0;
}
