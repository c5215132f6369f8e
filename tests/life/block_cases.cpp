// SPDX-License-Identifier: BSD-3-Clause
// block_cases <case>: code of the program's blocks a worker's thread, most under a policy that lets
// one worker run at a time. Others have their turns meanwhile.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <future>
#include <mutex>
#include <thread>

#include "cases.hpp"
#include "imbrex/imbrex.hpp"

namespace {

using imbrex::Promise;
using imbrex::task;

// The blocked thread is main's, or that of a task; what it waits for is done by tasks.
void block_in(const std::function<void(std::atomic<bool>&)>& set,
              const std::function<void(const std::atomic<bool>&)>& wait) {
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> is_set = false;
    imbrex::finish([&] {
      if (round != 2) task("sets").launch([&] { set(is_set); });
      if (round != 0) task("blocks").tied().launch([&] { wait(is_set); });
      if (round == 0) wait(is_set);
      if (round == 2) task("sets later").launch([&] { set(is_set); });
      for (int i = 0; i < 20; ++i) task("other").launch([] { imbrex::yield(); });
    });
  }
  std::printf("done\n");
}

int main_joins() {
  imbrex::finish([] {});
  for (int round = 0; round < 3; ++round) {
    std::thread thread([] {
      for (int i = 0; i < 5; ++i) {
        imbrex::finish([] { task("its").launch([] { imbrex::yield(); }); });
      }
    });
    thread.join();
  }
  std::printf("done\n");
  return 0;
}

int blocks_in_a_lock() {
  std::mutex lock;
  std::condition_variable changed;
  block_in(
      [&](std::atomic<bool>& is_set) {
        const std::lock_guard guard(lock);
        is_set = true;
        changed.notify_all();
      },
      [&](const std::atomic<bool>& is_set) {
        std::unique_lock guard(lock);
        changed.wait(guard, [&] { return is_set.load(); });
      });
  return 0;
}

int blocks_in_a_pipe() {
  int ends[2];
  if (pipe(ends) != 0) return 2;
  block_in([&](std::atomic<bool>&) { (void)!write(ends[1], "x", 1); },
           [&](const std::atomic<bool>&) {
             char read_byte = 0;
             (void)!read(ends[0], &read_byte, 1);
           });
  return 0;
}

int blocks_in_sleeps() {
  block_in([](std::atomic<bool>& is_set) { is_set = true; },
           [](const std::atomic<bool>& is_set) {
             while (!is_set) std::this_thread::sleep_for(std::chrono::milliseconds(1));
           });
  return 0;
}

// Tasks that only an absent worker may run are left for its return.
int all_block_but_one() {
  std::mutex lock;
  std::condition_variable changed;
  int blocked = 0, resumed = 0;
  Promise<void> go;
  imbrex::finish([&] {
    for (int i = 0; i < imbrex::worker_count(); ++i) {
      task("tied").tied().launch([&] {
        go.future().get();
        const std::lock_guard guard(lock);
        ++resumed;
      });
    }
    imbrex::yield();
    for (int i = 0; i < imbrex::worker_count() - 1; ++i) {
      task("blocks").launch([&] {
        std::unique_lock guard(lock);
        ++blocked;
        changed.wait(guard, [&] { return blocked == imbrex::worker_count(); });
      });
    }
    task("lets go").launch([&] {
      go.set();
      imbrex::yield();
      const std::lock_guard guard(lock);
      ++blocked;
      changed.notify_all();
    });
  });
  if (resumed == imbrex::worker_count()) std::printf("done\n");
  return 0;
}

// The only thread that could set the promise waits for good.
int promise_of_a_blocked_thread() {
  imbrex::Promise<int> promise("late promise");
  std::promise<void> never;
  std::thread thread([promise, go = never.get_future()] {
    go.wait();
    promise.set(17);
  });
  auto waiter = task("waits for it").spawn([future = promise.future()] { return future.get(); });
  std::printf("got %d\n", waiter.get());
  thread.join();
  return 0;
}

// A task blocks its thread, but not for good.
int blocks_for_a_time() {
  imbrex::finish([] {
    task("sleeps in a condition variable").launch([] {
      std::mutex mutex;
      std::condition_variable changed;
      std::unique_lock lock(mutex);
      changed.wait_for(lock, std::chrono::seconds(4));
    });
  });
  std::printf("went on\n");
  return 0;
}

const imbrex::test::Cases cases{
    {"main_joins", main_joins},
    {"blocks_in_a_lock", blocks_in_a_lock},
    {"blocks_in_a_pipe", blocks_in_a_pipe},
    {"blocks_in_sleeps", blocks_in_sleeps},
    {"all_block_but_one", all_block_but_one},
    {"promise_of_a_blocked_thread", promise_of_a_blocked_thread},
    {"blocks_for_a_time", blocks_for_a_time},
};

}  // namespace

int main(int argc, char** argv) {
  const auto* const run = imbrex::test::find_case(cases, argc, argv);
  return run == nullptr ? 2 : (*run)();
}
