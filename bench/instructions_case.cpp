// SPDX-License-Identifier: BSD-3-Clause
// What bench/instructions runs under callgrind: programs of which it counts the instructions for n
// and for 2 n operations, so that start and end cancel out. One worker, no window. Each case first
// runs a pass that does not depend on n, after which descriptors and stacks are recycled.
//
//   launch        n empty tasks; nothing suspends but the root task, once
//   chain         n tasks, inout on one address
//   stencil       n tasks with three in and one out, 64 points
//   fib           n times fib(10), of 177 calls
//   iterate_...   as launch, chain and stencil, by a loop with 64 tasks in an iteration
//   first         n rounds of 32 tasks that each suspend once
//   first_ready   the same tasks, but each event has fired before it is awaited
//   later         two tasks that suspend n times each
//   later_ready   the same two tasks, but each event has fired before it is awaited
#include <imbrex/imbrex.hpp>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "cases.hpp"

namespace {

constexpr long tasks_per_round = 32;

void launch(long tasks) {
  const long before = bodies_counted();
  imbrex::finish([&] {
    for (long i = 0; i < tasks; ++i) imbrex::task("empty").launch([] { count_body(); });
  });
  require_equal("bodies that ran", bodies_counted() - before, tasks);
}

void chain(long tasks) {
  long value = 0;
  imbrex::finish([&] {
    for (long i = 0; i < tasks; ++i) imbrex::task("link").inout(value).launch([&] { ++value; });
  });
  require_equal("sum of the chain", value, tasks);
}

void stencil(long tasks) {
  bench::Rows rows;
  const long steps = tasks / bench::Rows::width;
  imbrex::finish([&] {
    rows.visit(steps, [](const bench::Point& point) {
      imbrex::task("point")
          .in(*point.left, *point.self, *point.right)
          .out(*point.next)
          .launch(point);
    });
  });
  rows.check(steps);
}

// 64 independent tasks, a chain of 64, or a step of the stencil, in each iteration.
void iterate(std::string_view what, long tasks) {
  constexpr int width = bench::Rows::width;
  const long count = tasks / width;
  bench::Rows rows;
  long value = 0;
  const long before = bodies_counted();
  imbrex::iterate(count, {.period = 2}, [&](std::int64_t step) {
    if (what == "stencil") {
      rows.visit_step(step, [](const bench::Point& point) {
        imbrex::task("point")
            .in(*point.left, *point.self, *point.right)
            .out(*point.next)
            .launch(point);
      });
    }
    for (int i = 0; what == "chain" && i < width; ++i) {
      imbrex::task("link").inout(value).launch([&value] { ++value; });
    }
    for (int i = 0; what == "launch" && i < width; ++i) {
      imbrex::task("empty").launch([] { count_body(); });
    }
  });
  if (what == "stencil") rows.check(count);
  if (what == "chain") require_equal("sum of the chain", value, count * width);
  if (what == "launch") require_equal("bodies that ran", bodies_counted() - before, count * width);
}

long fib(long n) {
  if (n < 2) return n;
  auto a = imbrex::task("fib").spawn([n] { return fib(n - 1); });
  const long b = fib(n - 2);
  return a.get() + b;
}

// The word behind a promise: what a suspension costs, without what a promise adds.
using Event = imbrex::detail::EventWord;

void await(Event& event) {
  static constexpr imbrex::detail::WaitReason reason{.kind = imbrex::detail::WaitKind::event};
  if (!event.has_fired()) imbrex::detail::await(event, reason);
}

void fire_all(Event* events) {
  for (long i = 0; i < tasks_per_round; ++i) imbrex::detail::fire_once(events[i]);
}

void first(long rounds, bool suspend) {
  for (long round = 0; round < rounds; ++round) {
    Event events[tasks_per_round];
    long started = 0;
    imbrex::finish([&] {
      if (!suspend) fire_all(events);
      for (Event& event : events) {
        imbrex::task("waits once").launch([&event, &started] {
          ++started;
          await(event);
        });
      }
      while (started < tasks_per_round) imbrex::yield();
      if (suspend) fire_all(events);
      imbrex::yield();
    });
  }
}

// Each round trip fires two events and awaits two.
void later(long round_trips, bool suspend) {
  const auto size = static_cast<std::size_t>(round_trips);
  const auto pings = std::make_unique<Event[]>(size);
  const auto pongs = std::make_unique<Event[]>(size);
  imbrex::finish([&] {
    imbrex::task("ping").launch([&] {
      for (long i = 0; i < round_trips; ++i) {
        imbrex::detail::fire_once(pings[i]);
        await(suspend ? pongs[i] : pings[i]);
      }
    });
    imbrex::task("pong").launch([&] {
      for (long i = 0; i < round_trips; ++i) {
        if (!suspend) imbrex::detail::fire_once(pongs[i]);
        await(suspend ? pings[i] : pongs[i]);
        if (suspend) imbrex::detail::fire_once(pongs[i]);
      }
    });
  });
}

void run(std::string_view name, long n) {
  if (name == "launch") return launch(n);
  if (name == "chain") return chain(n);
  if (name == "stencil") return stencil(n);
  if (name.starts_with("iterate_")) return iterate(name.substr(8), n);
  if (name == "fib") {
    for (long i = 0; i < n; ++i) require_equal("fib", fib(10), bench::fib_in_sequence(10));
    return;
  }
  if (name == "first") return first(n, true);
  if (name == "first_ready") return first(n, false);
  if (name == "later") return later(n, true);
  if (name == "later_ready") return later(n, false);
  std::fprintf(stderr, "instructions_case: no case '%.*s'\n", int(name.size()), name.data());
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: instructions_case <case> <n> <n of the first pass>\n");
    return 2;
  }
  imbrex::RuntimeOptions config;
  config.workers = 1;
  config.tasks_ahead = 0;
  const imbrex::Runtime runtime(config);
  run(argv[1], std::atol(argv[3]));
  const auto before = imbrex::statistics();
  run(argv[1], std::atol(argv[2]));
  const auto after = imbrex::statistics();
  std::printf("{\"tasks\": %llu, \"suspensions\": %llu}\n",
              static_cast<unsigned long long>(after.tasks - before.tasks),
              static_cast<unsigned long long>(after.suspensions - before.suspensions));
}
