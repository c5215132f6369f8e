// SPDX-License-Identifier: BSD-3-Clause
// Under ThreadSanitizer: programs in which everything is ordered, by each thing that orders tasks.
// Nothing may be reported.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "imbrex/imbrex.hpp"

namespace {

int failures = 0;

void expect(const bool good, const char* const what) {
  if (good) return;
  std::printf("FAILS: %s\n", what);
  ++failures;
}

// Deep frames of different shapes, whose memory many tasks use one after the other.
[[gnu::noinline]] int fill(const int rounds, const int value) {
  std::array<int, 300> numbers;
  numbers.fill(value);
  return rounds == 0 ? numbers[static_cast<std::size_t>(value) % 300]
                     : fill(rounds - 1, value) + numbers[0];
}

void accesses() {
  std::vector<long> cells(8);
  long sum = 0;
  imbrex::finish([&] {
    for (int round = 0; round < 100; ++round) {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        const std::size_t next = (i + 1) % cells.size();
        imbrex::task("mix").in(cells[next]).inout(cells[i]).launch([&cells, i, next, round] {
          cells[i] += cells[next] + fill(round % 20, 1);
        });
        imbrex::task("add").in(cells[i]).mutexinoutset(sum).launch([&] {
          sum += 1;
          if (sum % 16 == 0) imbrex::yield();  // the place is kept
        });
      }
    }
  });
  expect(sum == 800, "accesses");
}

void sets() {
  std::array<int, 4> parts{};
  imbrex::finish([&] {
    for (int round = 0; round < 20; ++round) {
      for (int& part : parts) imbrex::task("part").inoutset(parts[0]).launch([&part] { ++part; });
      imbrex::task("all").in(parts[0]).launch([&parts, round] {
        expect(std::accumulate(parts.begin(), parts.end(), 0) == 4 * (round + 1), "sets");
      });
    }
  });
}

// Parts that begin and end anywhere, with objects among them.
void ranges() {
  std::vector<int> values(1000);
  int last = 0;
  imbrex::finish([&] {
    imbrex::task("object").inout(values[333]).launch([&] { values[333] = 1; });
    for (std::size_t i = 0; i < 60; ++i) {
      const std::size_t begin = i * 37 % 800;
      const std::size_t count = i * 53 % 190 + 1;
      imbrex::task("adds").inout(imbrex::range(&values[begin], count)).launch([=, &values] {
        for (std::size_t k = begin; k < begin + count; ++k) ++values[k];
      });
      imbrex::task("reads").in(imbrex::range(&values[begin / 2], 7)).inout(last).launch(
          [=, &values, &last] { last += values[begin / 2 + 6]; });
      imbrex::task("object").inout(values[i * 11]).launch([=, &values] { ++values[i * 11]; });
    }
    imbrex::task("all").in(imbrex::range(values)).launch([&] {
      expect(std::accumulate(values.begin(), values.end(), 0) > 60, "ranges");
    });
  });
}

void what_has_ended_long_ago() {
  long value = 0;
  for (int i = 0; i < 200; ++i) {
    imbrex::task("write").out(value).launch([&] { ++value; });
    imbrex::yield();
    imbrex::task("read").in(value).launch([&] { expect(value > 0, "read"); });
    if (i % 50 == 0) imbrex::taskwait();
  }
  imbrex::taskwait();
  expect(value == 200, "long ago");
}

long fibonacci(const int n) {
  if (n < 2) return n;
  long left = 0;
  long right = 0;
  imbrex::finish([&] {
    imbrex::task("fib").launch([&, n] { left = fibonacci(n - 1); });
    right = fibonacci(n - 2);
  });
  return left + right;
}

// A finish() waits for grandchildren, a taskwait() for those only that children have waited for.
void descendants() {
  std::vector<int> leaves(27);
  imbrex::finish([&] {
    for (std::size_t i = 0; i < 27; i += 9) {
      imbrex::task("child").launch([&leaves, i] {
        for (std::size_t j = i; j < i + 9; j += 3) {
          imbrex::task("grandchild").launch([&leaves, j] {
            for (std::size_t k = j; k < j + 3; ++k) {
              imbrex::task("leaf").launch([&leaves, k] { leaves[k] = fill(3, 1); });
            }
          });
        }
      });
    }
  });
  expect(std::accumulate(leaves.begin(), leaves.end(), 0) == 27 * 4, "descendants");
}

void futures() {
  auto text = imbrex::task("text").spawn([] { return std::string(100, 'x'); });
  auto both = imbrex::task("both").in(text).spawn([text] { return text.get() + text.get(); });
  auto readers = std::vector<imbrex::Future<std::size_t>>();
  for (int i = 0; i < 10; ++i) {
    readers.push_back(imbrex::task("size").spawn([both] { return both.get().size(); }));
  }
  for (auto& reader : readers) expect(reader.get() == 200, "futures");
  (void)imbrex::task("nobody asks").spawn([] { return std::string(1000, 'z'); });

  std::vector<int> parts(20);
  std::vector<imbrex::Future<void>> done;
  for (int& part : parts) {
    done.push_back(imbrex::task("part").spawn([&part] {
      imbrex::yield();
      part = 1;
    }));
  }
  imbrex::when_all(done).get();
  expect(std::accumulate(parts.begin(), parts.end(), 0) == 20, "when_all");
  std::array<std::string, 2> texts;
  std::vector<imbrex::Future<void>> any;
  for (auto& one : texts) {
    any.push_back(imbrex::task("any").spawn([&one] { one = "there"; }));
  }
  expect(texts[imbrex::when_any(any).get()] == "there", "when_any");
  imbrex::when_all(any).get();
}

void events_and_promises() {
  std::string late;
  imbrex::Promise<void> written;
  auto reader = imbrex::task("reader").spawn([&] {
    written.future().get();
    return late.size();
  });
  imbrex::task("writer").launch([&] {
    late.assign(50, 'y');
    written.set();
  });
  expect(reader.get() == 50, "events");

  imbrex::Promise<std::vector<int>> promise;
  auto value = promise.future();
  auto sum = imbrex::task("sum").in(value).spawn([value] {
    return std::accumulate(value.get().begin(), value.get().end(), 0);
  });
  std::thread([&promise] { promise.set(std::vector<int>(10, 3)); }).join();
  expect(sum.get() == 30, "promises");

  int held = 0;
  imbrex::Promise<void> end;
  imbrex::finish([&] {
    imbrex::task("held").out(held).launch([&] { imbrex::release_after(end.future()); });
    imbrex::task("after").in(held).launch([&] { expect(held == 7, "release_after"); });
    imbrex::task("fires").launch([&] {
      held = 7;
      end.set();
    });
  });
}

void early_release() {
  int first = 0;
  int second = 0;
  imbrex::finish([&] {
    imbrex::task("both").out(first, second).launch([&] {
      first = 1;
      imbrex::release(first);
      imbrex::yield();
      second = 2;
    });
    imbrex::task("one").in(first).launch([&] { expect(first == 1, "released"); });
    imbrex::task("two").in(second).launch([&] { expect(second == 2, "not released"); });
  });
}

void exceptions() {
  int seen = 0;
  for (int i = 0; i < 20; ++i) {
    std::string text = "number " + std::to_string(i);
    auto failing = imbrex::task("fails").spawn([&text]() -> int {
      throw std::runtime_error(text);
    });
    try {
      (void)failing.get();
    } catch (const std::runtime_error& error) {
      seen += std::string(error.what()).find(text) != std::string::npos ? 1 : 0;
    }
    try {
      imbrex::finish([&] {
        int value = 0;
        imbrex::task("fails").out(value).launch([] { throw std::logic_error("no"); });
        imbrex::task("does not run").in(value).launch([] {});
        imbrex::taskwait();
      });
    } catch (const std::logic_error&) {
      ++seen;
    }
  }
  expect(seen == 40, "exceptions");
}

// Captured and returned objects have destructors, which read and write.
void destructors() {
  struct Counted {
    explicit Counted(std::vector<int>& its_ends) : ends(&its_ends), text(40, 'c') {}
    Counted(Counted&& other) noexcept
        : ends(std::exchange(other.ends, nullptr)), text(other.text) {}
    ~Counted() {
      if (ends == nullptr) return;
      text[0] = 'd';
      ends->push_back(1);
    }
    std::vector<int>* ends;
    std::string text;
  };
  std::vector<int> ends;
  for (int i = 0; i < 20; ++i) {
    imbrex::task("captured").launch([counted = Counted(ends)] { (void)counted.text.size(); });
    imbrex::taskwait();
    auto made = imbrex::task("made").spawn([&ends] { return Counted(ends); });
    made.wait();
  }
  imbrex::taskwait();
  expect(ends.size() == 40, "destructors");
}

void threads() {
  std::vector<std::thread> own;
  std::array<long, 3> results{};
  for (long& result : results) {
    own.emplace_back([&result] {
      result = imbrex::task("of a thread").spawn([] { return fibonacci(6); }).get();
    });
  }
  for (auto& thread : own) thread.join();
  expect(results[0] + results[1] + results[2] == 24, "threads");
}

// Many more tasks may wait than contexts are kept.
void many_suspended() {
  imbrex::Promise<void> go;
  std::vector<int> values(600);
  int shared = 0;
  imbrex::finish([&] {
    for (int& value : values) {
      imbrex::task("waits").launch([&go, &value, &shared] {
        go.future().get();
        value = shared;
      });
    }
    imbrex::task("goes").launch([&] {
      shared = 1;
      go.set();
    });
  });
  expect(std::accumulate(values.begin(), values.end(), 0) == 600, "many suspended");
}

}  // namespace

int main() {
  accesses();
  sets();
  ranges();
  what_has_ended_long_ago();
  expect(fibonacci(11) == 89, "fibonacci");
  descendants();
  futures();
  events_and_promises();
  early_release();
  exceptions();
  destructors();
  const char* const workers = std::getenv("IMBREX_WORKERS");
  if (workers == nullptr || std::strcmp(workers, "1") != 0) threads();  // else main runs all tasks
  many_suspended();
  return failures;
}
