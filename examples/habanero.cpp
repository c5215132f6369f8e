// SPDX-License-Identifier: BSD-3-Clause
// A program in the words of Habanero: a tree of tasks joined by data-driven futures under one
// finish, and a pipeline whose stages are held in step by phasers.
#include <imbrex/compat/habanero.hpp>

#include <atomic>
#include <cstdio>
#include <vector>

using namespace imbrex::habanero;

// Puts the n-th number of Fibonacci into `result`, by tasks that never wait.
void fib(int n, const ddf<long>& result) {
  if (n < 2) return result.put(n);
  const ddf<long> one("one"), two("two");
  async([=] { fib(n - 1, one); });
  async([=] { fib(n - 2, two); });
  async_await([=] { result.put(one.get() + two.get()); }, one, two);
}

int main() {
  const ddf<long> result("result");
  finish([&] { async([&] { fib(20, result); }); });
  std::printf("fib(20) = %ld\n", result.get());

  // Stage i adds i to each item, one step after stage i - 1 has.
  constexpr int stages = 5, items = 40;
  std::vector<int> item(items, 0);
  std::vector<int> place_of(items, 0);
  std::atomic<bool> in_order = true;
  finish([&] {
    std::vector<phaser> links;  // links[i]: stage i signals, stage i + 1 waits
    for (int i = 0; i + 1 < stages; ++i) links.emplace_back();
    for (int stage = 0; stage < stages; ++stage) {
      auto builder = imbrex::task("stage");
      const auto at = static_cast<std::size_t>(stage);
      if (stage > 0) builder = builder.phased(links[at - 1], wait_only);
      if (stage + 1 < stages) builder = builder.phased(links[at], signal_only);
      builder.launch([&, stage] {
        for (std::size_t i = 0; i < items; ++i) {
          if (stage > 0) wait();
          if (place_of[i] != stage) in_order = false;
          item[i] += stage;
          ++place_of[i];
          if (stage + 1 < stages) signal();
        }
      });
    }
  });
  std::atomic<bool> right = result.get() == 6765 && in_order;
  for (const int value : item) {
    if (value != stages * (stages - 1) / 2) right = false;
  }

  // All that the caller is registered on, with a sum over the tasks of a phase.
  finish([&] {
    const phaser step;
    const accumulator<int> sum(step, imbrex::op::sum);
    for (int i = 1; i <= 4; ++i) {
      async_phased([=, &right] {
        sum.put(i);
        next();
        if (sum.get() != 10) right = false;
      });
    }
  });
  std::printf("%d stages, %d items: %s\n", stages, items, right ? "right" : "wrong");
  return right ? 0 : 1;
}
