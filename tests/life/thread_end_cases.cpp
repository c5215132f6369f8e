// SPDX-License-Identifier: BSD-3-Clause
// thread_end_cases <case> [times]: destructors that run when a thread has ended use tasks, and
// wait. Each case is a process of its own; with `times` it is run as often.
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "cases.hpp"
#include "imbrex/imbrex.hpp"

namespace {

using imbrex::Promise;
using imbrex::Runtime;
using imbrex::task;
using imbrex::test::expect;
using imbrex::test::failures;
using namespace std::chrono_literals;

std::atomic<int> ran = 0;

// A destructor that the thread runs after imbrex has let it go.
std::atomic<int> destroyed = 0;
struct UsesTasks {
  ~UsesTasks() {
    ran += task("of a destructor").spawn([] { return 1; }).get();
    task("and another").launch([] { ++ran; });
    ++destroyed;
  }
};

int tasks_of_thread_destructors() {
  std::atexit([] {
    if (ran == 40) return;
    std::printf("ran: %d\n", ran.load());
    std::fflush(stdout);
    _Exit(1);
  });
  task("first").spawn([] {}).get();
  std::vector<std::thread> threads;
  for (int index = 0; index < 20; ++index) {
    threads.emplace_back([index] {
      static thread_local UsesTasks mine;
      (void)&mine;
      if (index % 2 == 0) task("first use").spawn([] {}).get();
    });
  }
  while (destroyed != 20) imbrex::yield();
  for (std::thread& thread : threads) thread.join();
  return 0;
}

// The ways in which such a destructor may wait. Each of them counts once.
void wait_by_finish() {
  imbrex::finish([] { task("in finish").launch([] { ++ran; }); });
}
void wait_by_finish_alone() {
  imbrex::finish([] { ++ran; });
}
void wait_by_get() { ran += task("future").spawn([] { return 1; }).get(); }
void wait_by_taskwait() {
  int counted = 0;
  task("launched").launch([&counted] { ++counted; });
  imbrex::taskwait();
  ran += counted;
}
void wait_by_await() {
  Promise<void> event;
  auto fires = task("fires").spawn([&event] { event.set(); });
  event.future().get();
  fires.get();
  ++ran;
}
void wait_at_phaser() {
  imbrex::finish([] {
    const imbrex::Phaser phaser(imbrex::signal_wait);
    task("member").phased(phaser).launch([phaser] { phaser.next(); });
    phaser.next();
    ++ran;
  });
}
constexpr std::array waits{wait_by_finish, wait_by_finish_alone, wait_by_get,
                           wait_by_taskwait, wait_by_await, wait_at_phaser};

struct Waits {
  void (*wait)() = nullptr;
  ~Waits() {
    if (wait != nullptr) wait();
  }
};
thread_local Waits at_exit_of_thread;

// main may be the only worker, so another thread joins.
void run_beside(void (*const body)()) {
  Promise<void> over;
  std::thread joins([&] {
    std::thread(body).join();
    over.set();
  });
  over.future().get();
  joins.join();
}

template <std::size_t Kind>
void wait_at_exit() {
  at_exit_of_thread.wait = waits[Kind];
  task("before").spawn([] {}).get();
}

template <std::size_t... Kind>
void run_threads(const std::index_sequence<Kind...>) {
  for (int round = 0; round < 10; ++round) (run_beside(&wait_at_exit<Kind>), ...);
}

int thread_locals_wait() {
  imbrex::finish([] {});
  run_threads(std::make_index_sequence<waits.size()>());
  expect(ran == 10 * static_cast<int>(waits.size()), "each destructor has waited");
  return failures;
}

// A destructor waits for tasks that an earlier destructor has launched.
int one_thread_local_waits_for_another() {
  imbrex::finish([] {});
  for (int round = 0; round < 20; ++round) {
    run_beside([] {
      static thread_local Waits waits_later{[] {
        imbrex::taskwait();
        if (ran != 1) ++failures;
      }};
      static thread_local Waits launches{[] {
        task("slow").launch([] {
          std::this_thread::sleep_for(1ms);
          ++ran;
        });
      }};
      (void)&waits_later;
      (void)&launches;
      task("before").spawn([] {}).get();
    });
    expect(ran.exchange(0) == 1, "it ran once");
  }
  return failures;
}

// Keys that are made before imbrex's and behind it; the destructor sets the key again `times - 1`
// times, which may be until the last round of all.
pthread_key_t early_key, late_key;
template <pthread_key_t& key>
void wait_by_key(void* const left) {
  for (auto* const wait : waits) wait();
  const auto times = reinterpret_cast<std::intptr_t>(left);
  if (times > 1) pthread_setspecific(key, reinterpret_cast<void*>(times - 1));
}

int destructors_of_keys_wait() {
  constexpr std::intptr_t times = PTHREAD_DESTRUCTOR_ITERATIONS;
  pthread_key_create(&early_key, &wait_by_key<early_key>);
  imbrex::finish([] {});
  pthread_key_create(&late_key, &wait_by_key<late_key>);
  for (int round = 0; round < 5; ++round) {
    run_beside([] {
      task("before").spawn([] {}).get();
      pthread_setspecific(early_key, reinterpret_cast<void*>(times));
      pthread_setspecific(late_key, reinterpret_cast<void*>(times));
    });
    run_beside([] { pthread_setspecific(late_key, reinterpret_cast<void*>(times)); });
  }
  expect(ran == 5 * 3 * times * static_cast<int>(waits.size()), "all destructors have waited");
  return failures;
}

// Threads of the runtime's own end with it. Their destructors run on another one.
int thread_locals_of_workers_wait() {
  static std::atomic<int> set = 0;
  std::atexit([] {  // runs behind the end of the runtime, which is registered later
    if (destroyed == set && ran == destroyed * static_cast<int>(waits.size())) return;
    std::printf("at exit: %d of %d\n", destroyed.load(), set.load());
    std::fflush(stdout);
    _Exit(1);
  });
  constexpr auto wait_in_all = [] {
    if (gettid() == getpid()) return;
    for (auto* const wait : waits) wait();
    ++destroyed;
  };
  const auto use_workers = [] {
    imbrex::finish([] {
      for (int i = 0; i < 50; ++i) {
        task("sets").launch([] {
          if (at_exit_of_thread.wait == nullptr && gettid() != getpid()) ++set;
          at_exit_of_thread.wait = wait_in_all;
          std::this_thread::sleep_for(100us);
        });
      }
    });
  };
  {
    const Runtime runtime;
    use_workers();
  }
  expect(destroyed == set, "with a Runtime object");
  expect(ran == destroyed * static_cast<int>(waits.size()), "all have waited");
  use_workers();
  return failures;
}

const imbrex::test::Cases cases{
    {"tasks_of_thread_destructors", tasks_of_thread_destructors},
    {"thread_locals_wait", thread_locals_wait},
    {"one_thread_local_waits_for_another", one_thread_local_waits_for_another},
    {"destructors_of_keys_wait", destructors_of_keys_wait},
    {"thread_locals_of_workers_wait", thread_locals_of_workers_wait},
};

}  // namespace

int main(int argc, char** argv) {
  const auto* const run = imbrex::test::find_case(cases, argc, argv, " [times]");
  if (run == nullptr) return 2;
  if (argc == 3) return imbrex::test::run_often(argv[1], std::atoi(argv[2]));
  return (*run)();
}
