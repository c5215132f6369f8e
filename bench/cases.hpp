// SPDX-License-Identifier: BSD-3-Clause
// The cases spawn, chain, stencil and fib, written once for all C++ runtimes, so that each does the
// same work and is checked in the same way. A runtime is a `System` with
//   finish(create)                  calls create(), then waits for every task that it created
//   launch(body)                    creates one task
//   launch_chain(value, body)       creates a task that reads and writes `value`
//   launch_stencil(point, body)     creates a task that reads three cells and writes one
//   fib(n)                          creates a task for fib(n - 1) and calls fib(n - 2), recursively
// and, if it can run a graph again,
//   iterate(count, period, create)  calls create(i) for one period, whose tasks run for all `count`
#pragma once

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "measure.h"

namespace bench {

// ---- what a body does ------------------------------------------------------------------------

struct Count {
  void operator()() const { count_body(); }
};

struct Increment {
  long* value;
  void operator()() const { ++*value; }
};

// A cell stands for a block of a grid, so it has a cache line of its own.
struct alignas(64) Cell {
  unsigned long value;
};
struct Point {
  const Cell* left;
  const Cell* self;
  const Cell* right;
  Cell* next;
  void operator()() const { next->value = left->value + self->value + right->value + 1; }
};

// ---- the first, untimed pass -----------------------------------------------------------------

// Sees to it that every body ran once, and counts those that ran inside the call that created
// their task: these were not queued, and their time is not comparable with that of a queued task.
// Thread safety: enter() and leave() by the creating thread; note() by any, once per index.
class Watch {
 public:
  explicit Watch(long tasks) : creator_(pthread_self()), ran_(static_cast<std::size_t>(tasks)) {}

  void enter(long index) noexcept { current_ = index; }
  void leave() noexcept { current_ = -1; }
  void note(long index) noexcept {
    ++ran_[static_cast<std::size_t>(index)];
    if (pthread_equal(pthread_self(), creator_) && current_ == index) ++inlined_;
  }

  // The share of bodies that ran inline.
  [[nodiscard]] double check() const {
    for (const unsigned char times : ran_) require_equal("runs of one body", times, 1);
    return static_cast<double>(inlined_) / static_cast<double>(ran_.size());
  }

 private:
  const pthread_t creator_;
  volatile long current_ = -1;  // read and written by the creator's thread only
  long inlined_ = 0;            // so is this
  std::vector<unsigned char> ran_;
};

template <class Body>
struct Watched {
  Body body;
  Watch* watch;
  long index;
  void operator()() const {
    watch->note(index);
    body();
  }
};

// ---- the cases -------------------------------------------------------------------------------

// Elapsed nanoseconds of one finish() around `create`.
template <class System, class Create>
double time_finish(System& system, Create&& create) {
  const double start = now_ns();
  system.finish(create);
  return now_ns() - start;
}

template <class System>
result run_spawn(System& system, long tasks) {
  Watch watch(tasks);
  system.finish([&] {
    for (long i = 0; i < tasks; ++i) {
      watch.enter(i);
      system.launch(Watched<Count>{{}, &watch, i});
      watch.leave();
    }
  });
  const double inline_share = watch.check();

  const long before = bodies_counted();
  const double ns = time_finish(system, [&] {
    for (long i = 0; i < tasks; ++i) system.launch(Count{});
  });
  require_equal("bodies that ran", bodies_counted() - before, tasks);
  return {ns / static_cast<double>(tasks), tasks, inline_share, -1};
}

template <class System>
result run_chain(System& system, long tasks) {
  Watch watch(tasks);
  long value = 0;
  system.finish([&] {
    for (long i = 0; i < tasks; ++i) {
      watch.enter(i);
      system.launch_chain(value, Watched<Increment>{{&value}, &watch, i});
      watch.leave();
    }
  });
  const double inline_share = watch.check();
  require_equal("sum of the watched chain", value, tasks);

  value = 0;
  const double ns = time_finish(system, [&] {
    for (long i = 0; i < tasks; ++i) system.launch_chain(value, Increment{&value});
  });
  require_equal("sum of the chain", value, tasks);
  return {ns / static_cast<double>(tasks), tasks, inline_share, -1};
}

// A ring of 64 cells in two rows; each step reads one row and writes the other.
class Rows {
 public:
  static constexpr int width = 64;

  Rows() {
    for (int x = 0; x < width; ++x) rows_[0][x].value = static_cast<unsigned long>(x);
  }

  // Calls visit(point) for every point of every step, in program order.
  template <class Visit>
  void visit(long steps, Visit&& visit) {
    for (long step = 0; step < steps; ++step) visit_step(step, visit);
  }
  template <class Visit>
  void visit_step(long step, Visit&& visit) {
    const auto& old_row = rows_[step % 2];
    auto& new_row = rows_[(step + 1) % 2];
    for (int x = 0; x < width; ++x) {
      visit(Point{&old_row[(x + width - 1) % width], &old_row[x], &old_row[(x + 1) % width],
                  &new_row[x]});
    }
  }

  void check(long steps) const {
    Rows sequential;
    sequential.visit(steps, [](const Point& point) { point(); });
    for (int x = 0; x < width; ++x) {
      require_equal("a cell of the stencil", static_cast<long>(rows_[steps % 2][x].value),
                    static_cast<long>(sequential.rows_[steps % 2][x].value));
    }
  }

 private:
  std::array<std::array<Cell, width>, 2> rows_{};
};

template <class System>
result run_stencil(System& system, long steps) {
  const long tasks = steps * Rows::width;
  Watch watch(tasks);
  const auto watched_rows = std::make_unique<Rows>();
  system.finish([&] {
    long index = 0;
    watched_rows->visit(steps, [&](const Point& point) {
      watch.enter(index);
      system.launch_stencil(point, Watched<Point>{point, &watch, index});
      watch.leave();
      ++index;
    });
  });
  const double inline_share = watch.check();
  watched_rows->check(steps);

  const auto rows = std::make_unique<Rows>();
  const double ns = time_finish(system, [&] {
    rows->visit(steps, [&](const Point& point) { system.launch_stencil(point, point); });
  });
  rows->check(steps);
  return {ns / static_cast<double>(tasks), tasks, inline_share, -1};
}

// ---- the same tasks again and again ----------------------------------------------------------

// Nanoseconds for each task of a loop with Rows::width tasks in an iteration, its construction
// included; `create` describes an iteration. A short loop goes before.
template <class System, class Create>
double time_loop(System& system, long count, long period, Create&& create) {
  const double start = now_ns();
  system.iterate(count, period, create);
  return (now_ns() - start) / static_cast<double>(count * Rows::width);
}

template <class System>
result run_iterate_spawn(System& system, long tasks) {
  const long count = tasks / Rows::width;
  const auto create = [&](long) {
    for (int i = 0; i < Rows::width; ++i) system.launch(Count{});
  };
  (void)time_loop(system, count / 10 + 1, 1, create);
  const long before = bodies_counted();
  const double ns = time_loop(system, count, 1, create);
  require_equal("bodies that ran", bodies_counted() - before, count * Rows::width);
  return {ns, count * Rows::width, -1, -1};
}

template <class System>
result run_iterate_chain(System& system, long tasks) {
  const long count = tasks / Rows::width;
  long value = 0;
  const auto create = [&](long) {
    for (int i = 0; i < Rows::width; ++i) system.launch_chain(value, Increment{&value});
  };
  (void)time_loop(system, count / 10 + 1, 1, create);
  value = 0;
  const double ns = time_loop(system, count, 1, create);
  require_equal("sum of the chain", value, count * Rows::width);
  return {ns, count * Rows::width, -1, -1};
}

template <class System>
result run_iterate_stencil(System& system, long steps) {
  const long count = steps / 2 * 2;
  const auto loop = [&](long iterations) {
    const auto rows = std::make_unique<Rows>();
    const double ns = time_loop(system, iterations, 2, [&](long step) {
      rows->visit_step(step, [&](const Point& point) { system.launch_stencil(point, point); });
    });
    rows->check(iterations);
    return ns;
  };
  (void)loop(count / 20 * 2 + 2);
  return {loop(count), count * Rows::width, -1, -1};
}

constexpr long fib_in_sequence(long n) {
  long before = 1;
  long value = 0;
  for (long i = 0; i < n; ++i) value = std::exchange(before, before + value);
  return value;
}

// Nanoseconds per call of fib, of which there are 2 fib(n + 1) - 1; a task for every second one.
template <class System>
result run_fib(System& system, long n) {
  require_equal("fib in the first pass", system.fib(n), fib_in_sequence(n));
  const double start = now_ns();
  const long value = system.fib(n);
  const double ns = now_ns() - start;
  require_equal("fib", value, fib_in_sequence(n));
  const long calls = 2 * fib_in_sequence(n + 1) - 1;
  return {ns / static_cast<double>(calls), calls, -1, -1};
}

}  // namespace bench
