// SPDX-License-Identifier: BSD-3-Clause
// The cases of bench/compare on imbrex.
#include <imbrex/imbrex.hpp>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cases.hpp"

namespace {

long fib(long n) {
  if (n < 2) return n;
  auto a = imbrex::task("fib").spawn([n] { return fib(n - 1); });
  const long b = fib(n - 2);
  return a.get() + b;
}

struct System {
  template <class Create>
  void finish(Create&& create) {
    imbrex::finish(create);
  }
  template <class Body>
  void launch(const Body& body) {
    imbrex::task("spawn").launch(body);
  }
  template <class Body>
  void launch_chain(long& value, const Body& body) {
    imbrex::task("chain").inout(value).launch(body);
  }
  template <class Body>
  void launch_stencil(const bench::Point& point, const Body& body) {
    imbrex::task("stencil")
        .in(*point.left, *point.self, *point.right)
        .out(*point.next)
        .launch(body);
  }
  long fib(long n) { return ::fib(n); }
  template <class Create>
  void iterate(long count, long period, Create&& create) {
    imbrex::iterate(count, {.period = period}, create);
  }
};

struct Signal {
  imbrex::Promise<void> promise;
  imbrex::Future<void> future = promise.future();
};
struct RoundTrip {
  Signal ping, pong;
};

// Two tasks that wake each other. Every promise is fresh, so every wait suspends (but the first one
// of the second task, which finds its promise set).
void wake_each_other(const std::vector<RoundTrip>& trips) {
  imbrex::finish([&] {
    imbrex::task("ping").launch([&] {
      for (const RoundTrip& trip : trips) {
        trip.ping.promise.set();
        trip.pong.future.get();
      }
    });
    imbrex::task("pong").launch([&] {
      for (const RoundTrip& trip : trips) {
        trip.ping.future.get();
        trip.pong.promise.set();
      }
    });
  });
}

// Nanoseconds per suspension with its resumption. The promises are made before.
result run_suspend(long round_trips) {
  wake_each_other(std::vector<RoundTrip>(static_cast<std::size_t>(round_trips / 10 + 1)));
  const std::vector<RoundTrip> trips(static_cast<std::size_t>(round_trips));
  const auto before = imbrex::statistics().suspensions;
  const double start = now_ns();
  wake_each_other(trips);
  const double ns = now_ns() - start;
  const long suspensions = static_cast<long>(imbrex::statistics().suspensions - before);
  // With two workers the promise is sometimes set before the other task gets to wait for it.
  if (suspensions < 2 * round_trips / 100 * 99) fail("suspensions", suspensions, 2 * round_trips);
  return {ns / static_cast<double>(suspensions), suspensions, -1, suspensions};
}

// Nanoseconds for each access that a task releases, one by one, while a reader waits for it.
double release_all(const long blocks) {
  std::vector<char> data(static_cast<std::size_t>(blocks));
  imbrex::Promise<void> linked;
  double ns = 0;
  std::atomic<long> read = 0;
  imbrex::finish([&] {
    imbrex::TaskBuilder exchange = imbrex::task("exchange");
    for (char& block : data) (void)exchange.out(block);
    exchange.launch([&] {
      linked.future().get();
      const double start = now_ns();
      for (char& block : data) imbrex::release(block);
      ns = now_ns() - start;
    });
    for (const char& block : data) {
      imbrex::task("read").in(block).launch([&read] { ++read; });
    }
    linked.set();
  });
  require_equal("readers", read, blocks);
  return ns;
}

// The least of several times, for a page that is touched for the first time is no part of it.
result run_release(const long blocks, const long operations) {
  double least = release_all(blocks);
  long rounds = 1;
  for (; rounds * blocks < operations; ++rounds) least = std::min(least, release_all(blocks));
  return {least / static_cast<double>(blocks), rounds * blocks, -1, -1};
}

result run(const request& request) {
  const std::string_view benchmark = request.benchmark;
  System system;
  if (benchmark == "spawn" || benchmark == "spawn_window_off") {
    const result result = bench::run_spawn(system, request.size);
    // The promise that makes the figure comparable: no body starts before its spawn returns.
    require_equal("bodies inside their own spawn, in percent",
                  static_cast<long>(100 * result.inline_share), 0);
    return result;
  }
  if (benchmark == "chain") return bench::run_chain(system, request.size);
  if (benchmark == "stencil") return bench::run_stencil(system, request.size);
  if (benchmark == "fib") return bench::run_fib(system, request.size);
  if (benchmark == "iterate_spawn") return bench::run_iterate_spawn(system, request.size);
  if (benchmark == "iterate_chain") return bench::run_iterate_chain(system, request.size);
  if (benchmark == "iterate_stencil") return bench::run_iterate_stencil(system, request.size);
  if (benchmark == "suspend") return run_suspend(request.size);
  for (const long blocks : {16, 1024, 65536}) {
    if (benchmark == "release_" + std::to_string(blocks)) return run_release(blocks, request.size);
  }
  std::fprintf(stderr, "imbrex_cases: no case '%s'\n", request.benchmark);
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  const request request =
      parse_request(argc, argv, "spawn spawn_window_off chain stencil fib suspend "
                                "release_16 release_1024 release_65536 "
                                "iterate_spawn iterate_chain iterate_stencil");
  imbrex::RuntimeOptions config;
  config.workers = request.workers;
  if (std::string_view(request.benchmark) == "spawn_window_off") config.tasks_ahead = 0;
  const imbrex::Runtime runtime(config);
  print_record("imbrex", request, run(request));
}
