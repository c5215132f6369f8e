// SPDX-License-Identifier: BSD-3-Clause
// iterate_cases <case>: how a program ends amid a loop whose graph is built once, and what reports
// and traces say of it. Each case is a process of its own; expect.sh looks at what it prints, and
// how it ends.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <thread>

#include "cases.hpp"
#include "imbrex/imbrex.hpp"

namespace {

using imbrex::iterate;
using imbrex::task;

// A loop whose task calls `end` in iteration 7, while others run and wait.
template <typename End>
int end_amid_loop(End end) {
  static imbrex::Promise<int> never;
  static int value = 0;
  iterate(1'000'000, [&](std::int64_t) {
    task("waits").launch([](const int i) {
      if (i == 3) (void)never.future().get();
    });
    task("update").inout(value).launch([&](const int i) {
      ++value;
      if (i == 7) end();
    });
    task("yields").in(value).launch([] { imbrex::yield(); });
  });
  return 1;
}

int exits() { return end_amid_loop([] { std::exit(3); }); }
int terminates() { return end_amid_loop([] { std::terminate(); }); }
int aborts() { return end_amid_loop([] { std::abort(); }); }
int stalls() {
  return end_amid_loop([] { (void)imbrex::Promise<int>().future().get(); });
}

int exits_in_the_body() {
  iterate(3, [](std::int64_t) {
    task("never runs").launch([] { std::printf("ran\n"); });
    std::exit(3);
  });
  return 1;
}

int throws_to_main() {
  iterate(10, [](std::int64_t) {
    task("diverges").launch([](const int i) {
      if (i == 4) throw std::runtime_error("too large");
    });
  });
  return 1;
}

int first_use() {
  int sum = 0;
  iterate(4, [&](std::int64_t) {
    task("add").inout(sum).launch([&](const int i) { sum += i; });
  });
  std::printf("sum: %d\n", sum);
  return 0;
}

int traced() {
  int value = 0;
  iterate(50, {.period = 2}, [&](const std::int64_t i) {
    task(i == 0 ? imbrex::Name("even") : imbrex::Name("odd")).inout(value).launch([&] { ++value; });
    task("reads").in(value).launch([] {
      task("child").launch([] { imbrex::yield(); });
      imbrex::yield();
    });
  });
  std::printf("value: %d\n", value);
  return 0;
}

const imbrex::test::Cases cases{
    {"exits", exits},
    {"terminates", terminates},
    {"aborts", aborts},
    {"stalls", stalls},
    {"exits_in_the_body", exits_in_the_body},
    {"throws_to_main", throws_to_main},
    {"first_use", first_use},
    {"traced", traced},
};

}  // namespace

int main(int argc, char** argv) {
  const auto* const run = imbrex::test::find_case(cases, argc, argv);
  return run == nullptr ? 2 : (*run)();
}
