// SPDX-License-Identifier: BSD-3-Clause
// A program that is compiled with AddressSanitizer, while imbrex is not. Tasks wait, throw, and go
// on, on other threads; each frame is written to its ends, so that what the sanitizer knows about a
// stack that it takes for another one would show.
#include <cstddef>
#include <cstdio>
#include <stdexcept>
#include <vector>

#include "imbrex/imbrex.hpp"

namespace {

using imbrex::Promise;
using imbrex::Future;
using imbrex::task;

template <std::size_t Bytes>
[[gnu::noinline]] int fill() {
  volatile char bytes[Bytes];
  for (std::size_t i = 0; i < Bytes; ++i) bytes[i] = 1;
  return bytes[0] + bytes[Bytes - 1];
}

[[gnu::noinline]] int throw_from(const int depth) {
  volatile char bytes[200];
  bytes[0] = 1;
  bytes[199] = 1;
  if (depth == 0) throw std::runtime_error("from below");
  return throw_from(depth - 1) + bytes[199];
}

int caught_from(const int depth) {
  try {
    return throw_from(depth);
  } catch (const std::runtime_error&) {
    return 1;
  }
}

int wait_and_throw(Promise<void>& event) {
  int sum = fill<300>();
  event.future().get();
  sum += fill<3000>() + caught_from(20);
  imbrex::yield();
  sum += caught_from(5);
  const auto inner = task("throws").spawn([] {
    imbrex::yield();
    return throw_from(3);
  });
  try {
    return inner.get();
  } catch (const std::runtime_error&) {
    return sum + 1;
  }
}

}  // namespace

int main() {
  constexpr int tasks = 20, rounds = 20;
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Promise<void>> events(tasks);
    std::vector<Future<int>> all;
    for (Promise<void>& event : events) {
      all.push_back(task("waits and throws").spawn([&event] { return wait_and_throw(event); }));
    }
    imbrex::finish([&events] {
      for (Promise<void>& event : events) task("fires").launch([&event] { event.set(); });
    });
    for (const Future<int>& one : all) sum += one.get();
  }
  std::printf("sum %d of %d\n", sum, rounds * tasks * 7);
  return sum == rounds * tasks * 7 ? 0 : 1;
}
