// SPDX-License-Identifier: BSD-3-Clause
// memory_cases <case> [<workers> [<policy>]]: one case each, in a process of its own, because each
// looks at the peak of that process's memory. Exit code 0 if the case holds; it prints what it saw.
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/imbrex.hpp"

namespace {

constexpr bool sanitized = IMBREX_TEST_SCALE > 1;
constexpr double gigabyte = 1024.0 * 1024.0 * 1024.0;

// Fibers are few under a sanitizer: below 2,000 at once.
int fibers(int count) { return sanitized ? std::min(count, 1500) : count; }
int tasks(int count) { return count / IMBREX_TEST_SCALE; }

double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024.0;
}

double resident_bytes() {
  std::ifstream file("/proc/self/statm");
  long pages = 0;
  long resident = 0;
  file >> pages >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

long mappings() {
  std::ifstream file("/proc/self/maps");
  long lines = 0;
  for (std::string line; std::getline(file, line);) ++lines;
  return lines;
}

int failures = 0;

// Prints what was seen, and counts it if it does not hold.
void expect(bool holds, const char* what, double seen) {
  std::printf("%s: %s (%.0f)\n", holds ? "holds" : "FAILS", what, seen);
  if (!holds) ++failures;
}
void expect_peak_below(double bytes) {
  const double seen = peak_bytes();
  expect(sanitized || seen < bytes, "peak of memory in bytes", seen);
}

// 1,000,000 tasks wait to start, on one promise that their creator sets last.
void waiting() {
  const int count = tasks(1'000'000);
  std::atomic<int> ran = 0;
  imbrex::Promise<void> promise;
  imbrex::finish([&] {
    for (int i = 0; i < count; ++i) {
      imbrex::task("waiting").in(promise.future()).launch([&ran] {
        ran.fetch_add(1, std::memory_order_relaxed);
      });
    }
    if (ran.load() != 0) std::abort();
    promise.set();
  });
  expect(ran.load() == count, "tasks that ran", ran.load());
  expect_peak_below(4 * gigabyte);
}

// 1,000,000 tasks in one chain of dependencies behind a task that waits.
void chained() {
  const int count = tasks(1'000'000);
  int x = 0;
  imbrex::Promise<void> gate;
  imbrex::finish([&] {
    imbrex::task("first").inout(x).launch([&] { gate.future().get(); });
    for (int i = 0; i < count; ++i) imbrex::task("link").inout(x).launch([&x] { ++x; });
    gate.set();
  });
  expect(x == count, "tasks that ran", x);
  expect_peak_below(4 * gigabyte);
}

// 100,000 tasks are suspended at once.
void suspended() {
  const int count = fibers(100'000);
  std::atomic<int> started = 0;
  std::atomic<int> woken = 0;
  imbrex::Promise<void> gate;
  long most_mappings = 0;
  imbrex::finish([&] {
    for (int i = 0; i < count; ++i) {
      imbrex::task("suspended").launch([&] {
        volatile char touched[512];
        touched[0] = 1;
        started.fetch_add(1, std::memory_order_relaxed);
        gate.future().get();
        woken.fetch_add(touched[0], std::memory_order_relaxed);
      });
    }
    while (started.load() < count) imbrex::yield();
    most_mappings = mappings();
    gate.set();
  });
  expect(woken.load() == count, "tasks woken", woken.load());
  expect(most_mappings < 60'000, "mappings", static_cast<double>(most_mappings));
  expect_peak_below(4 * gigabyte);
}

// Suspended tasks in batches: stacks are used again.
void suspended_again() {
  const int count = fibers(5'000);
  double early = 0;
  const int rounds = sanitized ? 6 : 20;  // a sanitizer's memory tells nothing
  for (int round = 0; round < rounds; ++round) {
    imbrex::Promise<void> gate;
    std::atomic<int> started = 0;
    imbrex::finish([&] {
      for (int i = 0; i < count; ++i) {
        imbrex::task("again").launch([&] {
          started.fetch_add(1, std::memory_order_relaxed);
          gate.future().get();
        });
      }
      while (started.load() < count) imbrex::yield();
      gate.set();
    });
    if (round == 4) early = resident_bytes();
  }
  const double grown = resident_bytes() - early;
  expect(sanitized || grown < 0.05 * gigabyte, "growth of memory in bytes", grown);
  expect(imbrex::statistics().stack_count <= 2u * count + 64, "stacks mapped",
         static_cast<double>(imbrex::statistics().stack_count));
}

int windows_of() {
  const char* const more = std::getenv("STRESS_TASKS");  // in place of this default
  return more != nullptr ? std::atoi(more) : tasks(10'000'000);
}

// Tasks spawned in windows, with and without dependencies, for ever: memory does not grow.
void windows() {
  const int count = windows_of();
  const int window = 10'000;
  std::atomic<long> ran = 0;
  std::vector<long> cells(64, 0);
  double early = 0;
  for (int done = 0; done < count; done += window) {
    imbrex::finish([&] {
      for (int i = 0; i < window; ++i) {
        if (i % 2 == 0) {
          long& cell = cells[static_cast<std::size_t>(i) % cells.size()];
          imbrex::task("cell").inout(cell).launch([&cell] { ++cell; });
        } else {
          imbrex::task("free").launch([&ran] { ran.fetch_add(1, std::memory_order_relaxed); });
        }
      }
    });
    if (early == 0 && done >= count / 10) early = resident_bytes();
  }
  for (const long cell : cells) ran += cell;
  const double grown = resident_bytes() - early;
  const double expected = (count + window - 1) / window * static_cast<double>(window);
  expect(static_cast<double>(ran.load()) == expected, "tasks that ran", ran.load());
  expect(sanitized || grown < 0.03 * gigabyte, "growth of memory in bytes", grown);
}

// Without a finish only IMBREX_TASKS_AHEAD holds the creator back.
void ahead() {
  const int count = windows_of();
  std::atomic<long> ran = 0;
  double early = 0;
  imbrex::finish([&] {
    for (int i = 0; i < count; ++i) {
      imbrex::task("ahead").launch([&ran] { ran.fetch_add(1, std::memory_order_relaxed); });
      if (i == count / 10) early = resident_bytes();
    }
  });
  const double grown = resident_bytes() - early;
  expect(ran.load() == count, "tasks that ran", static_cast<double>(ran.load()));
  expect(sanitized || grown < 0.1 * gigabyte, "growth of memory in bytes", grown);
}

int descend(int depth) {
  if (depth == 0) return 0;
  auto below = imbrex::task("descend").spawn([depth] { return descend(depth - 1); });
  return below.get() + 1;
}

// 100,000 tasks, each of which spawns the next and gets its result.
void recursion() {
  const int depth = fibers(100'000);
  const int seen = descend(depth);
  expect(seen == depth, "depth", seen);
  expect_peak_below(4 * gigabyte);
}

int descend_by_finish(int depth) {
  if (depth == 0) return 0;
  int below = 0;
  imbrex::finish([&] {
    imbrex::task("descend").launch([&below, depth] { below = descend_by_finish(depth - 1); });
  });
  return below + 1;
}

// A recursion through finish, which cannot run an awaited task in place.
void finish_recursion() {
  const int depth = fibers(100'000);
  const int seen = descend_by_finish(depth);
  expect(seen == depth, "depth", seen);
  expect_peak_below(4 * gigabyte);
}

// Each task spawns the next and ends, and now and then a leaf beside it.
struct Link {
  int left;
  std::atomic<long>* ran;
  double* early;

  void operator()() const {
    ran->fetch_add(1);
    if (left == 0) return;
    if (left % 1'000 == 0) {
      imbrex::task("leaf").launch([ran = ran] { ran->fetch_add(1); });
    }
    if (*early == 0 && ran->load() > 100'000 / IMBREX_TEST_SCALE) {
      *early = resident_bytes();
    }
    imbrex::task("link").launch(Link{left - 1, ran, early});
  }
};

void descendants() {
  const int count = tasks(3'000'000);
  std::atomic<long> ran = 0;
  double early = 0;
  double grown = 0;
  imbrex::finish([&] {
    imbrex::task("link").launch(Link{count, &ran, &early});
    imbrex::task("look").launch([&] {
      while (ran.load() < count) imbrex::yield();
      grown = resident_bytes() - early;
    });
  });
  expect(ran.load() == count + 1 + count / 1'000, "tasks that ran", ran.load());
  expect(sanitized || grown < 0.01 * gigabyte, "growth of memory in bytes", grown);
}

// The last of a chain is waited for first: each waits for the one before it.
void backward_waits() {
  const int count = fibers(100'000);
  std::vector<imbrex::Future<int>> links;
  links.reserve(static_cast<std::size_t>(count) + 1);
  imbrex::Promise<int> first;
  links.push_back(first.future());
  for (int i = 0; i < count; ++i) {
    links.push_back(imbrex::task("link").spawn([before = links.back()] {
      return before.get() + 1;
    }));
  }
  first.set(0);
  const int seen = links.back().get();
  expect(seen == count, "links", seen);
  expect_peak_below(4 * gigabyte);
}

const std::map<std::string, std::function<void()>> cases{
    {"waiting", waiting},
    {"chained", chained},
    {"descendants", descendants},
    {"suspended", suspended},
    {"suspended_again", suspended_again},
    {"windows", windows},
    {"ahead", ahead},
    {"recursion", recursion},
    {"finish_recursion", finish_recursion},
    {"backward_waits", backward_waits},
};

}  // namespace

int main(int argc, char** argv) {
  const auto found = argc > 1 ? cases.find(argv[1]) : cases.end();
  if (found == cases.end()) {
    std::fprintf(stderr, "usage: %s <case> [<workers> [<policy>]]; cases:", argv[0]);
    for (const auto& [name, run] : cases) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  imbrex::RuntimeOptions config;
  config.workers = argc > 2 ? std::atoi(argv[2]) : 2;
  config.policy = argc > 3 ? argv[3] : "";
  {
    const imbrex::Runtime runtime(config);
    found->second();
    imbrex::detail::drain();
    const imbrex::Statistics left = imbrex::statistics();
    expect(left.suspended_tasks == 0, "tasks left suspended",
           static_cast<double>(left.suspended_tasks));
  }
  return failures == 0 ? 0 : 1;
}
