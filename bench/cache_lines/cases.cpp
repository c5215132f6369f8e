// SPDX-License-Identifier: BSD-3-Clause
// What bench/lines runs: `lines_cases <case> <workers> <n>` runs a case twice, and counts accesses
// and moved cache lines of the second run. In the first run threads start, and descriptors come
// into being. Prints a line of JSON.
//
//   spawn         n empty tasks
//   chain         n tasks, inout on one address
//   stencil       n tasks with three in and one out, 64 points
//   iterate       the same tasks, created once by imbrex::iterate()
//   fib           n times fib(16), of 3,193 calls
//   parallel_for  n iterations, one in a task
#include <imbrex/imbrex.hpp>
#include <imbrex/parallel.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <ranges>
#include <string_view>

#include "count.hpp"
#include "../cases.hpp"

namespace {

struct Case {
  std::string_view name;
  long (*run)(long n);  // returns the number of operations
};

long spawn(const long n) {
  const long before = bodies_counted();
  imbrex::finish([&] {
    for (long i = 0; i < n; ++i) imbrex::task("empty").launch([] { count_body(); });
  });
  require_equal("bodies that ran", bodies_counted() - before, n);
  return n;
}

long chain(const long n) {
  static bench::Cell cell;
  cell.value = 0;
  bench::lines::name_data(&cell, sizeof cell);
  imbrex::finish([&] {
    for (long i = 0; i < n; ++i) {
      imbrex::task("link").inout(cell).launch([] { ++cell.value; });
    }
  });
  require_equal("sum of the chain", static_cast<long>(cell.value), n);
  return n;
}

long stencil(const long n) {
  const auto rows = std::make_unique<bench::Rows>();
  bench::lines::name_data(rows.get(), sizeof *rows);
  const long steps = n / bench::Rows::width;
  imbrex::finish([&] {
    rows->visit(steps, [](const bench::Point& point) {
      imbrex::task("point")
          .in(*point.left, *point.self, *point.right)
          .out(*point.next)
          .launch(point);
    });
  });
  return steps * bench::Rows::width;
}

long iterate(const long n) {
  const auto rows = std::make_unique<bench::Rows>();
  bench::lines::name_data(rows.get(), sizeof *rows);
  const long steps = n / bench::Rows::width;
  imbrex::iterate(steps, {.period = 2}, [&](const long step) {
    rows->visit_step(step, [](const bench::Point& point) {
      imbrex::task("point")
          .in(*point.left, *point.self, *point.right)
          .out(*point.next)
          .launch(point);
    });
  });
  rows->check(steps);
  return steps * bench::Rows::width;
}

long fib_call(const long n) {
  if (n < 2) return n;
  auto a = imbrex::task("fib").spawn([n] { return fib_call(n - 1); });
  const long b = fib_call(n - 2);
  return a.get() + b;
}
long fib(const long n) {
  constexpr long argument = 16;
  for (long i = 0; i < n; ++i) {
    require_equal("fib", fib_call(argument), bench::fib_in_sequence(argument));
  }
  return n * (2 * bench::fib_in_sequence(argument + 1) - 1);
}

long parallel_for(const long n) {
  const long before = bodies_counted();
  imbrex::parallel_for(std::views::iota(0L, n), {.grain = 1}, [](long) { count_body(); });
  require_equal("bodies that ran", bodies_counted() - before, n);
  return n;
}

constexpr Case cases[] = {{"spawn", spawn},
                          {"chain", chain},
                          {"stencil", stencil},
                          {"iterate", iterate},
                          {"fib", fib},
                          {"parallel_for", parallel_for}};

void count(const Case& one, const int workers, const long n) {
  imbrex::RuntimeOptions config;
  config.workers = workers;
  const imbrex::Runtime runtime(config);
  (void)one.run(n);
  bench::lines::start();
  const long operations = one.run(n);
  const bench::lines::Counts counts = bench::lines::stop();
  std::printf("{\"case\": \"%s\", \"workers\": %d, \"operations\": %ld, \"accesses\": %llu, "
              "\"moved\": %llu, \"data\": %llu, \"places\": ",
              one.name.data(), workers, operations,
              static_cast<unsigned long long>(counts.accesses),
              static_cast<unsigned long long>(counts.moved),
              static_cast<unsigned long long>(counts.data));
  bench::lines::print_places();
  std::printf("}\n");
}

}  // namespace

int main(int argc, char** argv) {
  const int workers = argc == 4 ? std::atoi(argv[2]) : 0;
  const long n = argc == 4 ? std::atol(argv[3]) : 0;
  for (const Case& each : cases) {
    if (workers < 1 || n < 1 || each.name != argv[1]) continue;
    count(each, workers, n);
    return 0;
  }
  std::fprintf(stderr,
               "usage: lines_cases <case> <workers> <n>\n"
               "cases: spawn chain stencil iterate fib parallel_for\n");
  return 2;
}
