// SPDX-License-Identifier: BSD-3-Clause
// fork_cases <case> [times]: children of fork() that use tasks. Each case is a process of its own.
#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "cases.hpp"
#include "imbrex/imbrex.hpp"

namespace {

using imbrex::finish;
using imbrex::Future;
using imbrex::Promise;
using imbrex::Runtime;
using imbrex::task;
using imbrex::test::expect;
using imbrex::test::failures;
using namespace std::chrono_literals;

// The exit code of a child that runs `body`, then exit(its result); -1 if a signal ends it.
int in_child(const std::function<int()>& body) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) std::exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int fibonacci(const int n) {
  if (n < 2) return n;
  Future<int> left = task("fibonacci").spawn([n] { return fibonacci(n - 1); });
  const int right = fibonacci(n - 2);
  return left.get() + right;
}

// 55: recursion, a chain by accesses, and a suspended task.
int work() {
  int chain = 0;
  finish([&chain] {
    for (int step = 0; step < 10; ++step) {
      task("step").inout(chain).launch([&chain] { ++chain; });
    }
  });
  Promise<int> promise;
  Future<int> waits = task("waits").spawn([&promise] { return promise.future().get(); });
  task("sets").launch([&promise] { promise.set(0); });
  return fibonacci(10) + waits.get() + (chain - 10);
}

int children_have_tasks() {
  expect(work() == 55, "the parent's tasks");
  const int workers = imbrex::worker_count();
  for (int child = 0; child < 3; ++child) {
    expect(in_child([workers] {
             if (imbrex::worker_count() != 0) return 1;
             if (work() != 55) return 2;
             return imbrex::worker_count() == workers ? 7 : 3;
           }) == 7,
           "a child's tasks");
    expect(work() == 55, "the parent's tasks after a fork");
  }
  return failures;
}

int children_of_children() {
  expect(work() == 55, "the parent's tasks");
  expect(in_child([] {
           if (work() != 55) return 1;
           const int inner = in_child([] {
             return work() == 55 ? in_child([] { return work() == 55 ? 9 : 1; }) : 2;
           });
           return work() == 55 ? inner : 3;
         }) == 9,
         "a grandchild's child");
  return failures;
}

// The child's exit(0) waits for tasks that were only launched, as the parent's does.
int exit_of_a_child_waits() {
  int ends[2] = {};
  if (pipe(ends) != 0) return 2;
  expect(work() == 55, "the parent's tasks");
  expect(in_child([&ends] {
           task("late").launch([&ends] {
             std::this_thread::sleep_for(50ms);
             expect(write(ends[1], "x", 1) == 1, "the write");
           });
           return 0;
         }) == 0,
         "the child's end");
  char letter = 0;
  close(ends[1]);
  expect(read(ends[0], &letter, 1) == 1 && letter == 'x', "the launched task");
  return failures;
}

// The child's code goes on where the task has forked, on the stack of the task.
int fork_in_a_task() {
  expect(work() == 55, "the parent's tasks");
  const auto forks = [] { return in_child([] { return work() == 55 ? 5 : 1; }); };
  expect(task("forks").spawn(forks).get() == 5, "a task that forks");
  Promise<void> promise;
  Future<int> resumed = task("resumes").spawn([&promise, &forks] {
    promise.future().get();
    return forks();
  });
  task("sets").launch([&promise] { promise.set(); });
  expect(resumed.get() == 5, "a task that forks on a stack of its own");
  std::vector<Future<int>> many;
  for (int index = 0; index < 6; ++index) many.push_back(task("one of many").spawn(forks));
  for (Future<int>& one : many) expect(one.get() == 5, "one of many tasks that fork");
  expect(work() == 55, "the parent's tasks afterwards");
  return failures;
}

int body_returns_in_a_child() {
  pid_t child = -1;
  task("returns").spawn([&child] { child = fork(); }).get();
  if (child == 0) return 9;  // not reached
  int status = 0;
  waitpid(child, &status, 0);
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 1, "the child's end");
  return failures;
}

int futures_of_the_parent() {
  std::atomic<bool> over = false;
  auto kept = task("kept").spawn([] { return std::string(100, 'k'); });
  kept.wait();
  Future<int> runs = task("runs").spawn([&over] {
    while (!over) std::this_thread::sleep_for(1ms);
    return 1;
  });
  expect(in_child([&] {
           if (kept.get() != std::string(100, 'k')) return 1;
           for (const bool first : {true, false}) {
             try {
               (void)runs.get();
               return 2;
             } catch (const imbrex::Error& error) {
               if (std::strstr(error.what(), "parent of this process") == nullptr) return 3;
             }
             if (first && work() != 55) return 4;
           }
           kept = {};
           runs = {};
           return work() == 55 ? 7 : 5;
         }) == 7,
         "the child's view");
  over = true;
  expect(runs.get() == 1, "the parent's task");
  return failures;
}

int fork_in_a_finish() {
  int sum = 0;
  pid_t child = -1;
  std::atomic<int> of_parent = 0;
  finish([&] {
    for (int index = 0; index < 20; ++index) {
      task("parent's").launch([&of_parent] {
        std::this_thread::sleep_for(2ms);
        ++of_parent;
      });
    }
    std::fflush(stdout);
    child = fork();
    if (child != 0) return;
    for (int index = 0; index < 20; ++index) task("child's").inout(sum).launch([&sum] { ++sum; });
  });
  if (child == 0) std::exit(sum == 20 ? 6 : 1);
  int status = 0;
  waitpid(child, &status, 0);
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 6, "the child's finish()");
  expect(of_parent == 20, "the parent's finish()");
  return failures;
}

int foreign_thread_forks() {
  expect(work() == 55, "the parent's tasks");
  for (int round = 0; round < 3; ++round) {
    std::atomic<bool> over = false;
    std::thread thread([&over] {
      expect(work() == 55, "the thread's tasks");
      expect(in_child([] {
               if (work() != 55) return 1;
               std::future<int> other = std::async(std::launch::async, &work);
               while (other.wait_for(0s) != std::future_status::ready) imbrex::yield();
               return other.get() == 55 ? 8 : 2;
             }) == 8,
             "the child of a thread");
      over = true;
    });
    while (!over) imbrex::yield();  // main may be the only worker
    thread.join();
  }
  return failures;
}

// The names of tasks that are no literals lie in a table, which nearly always has a reader here.
int fork_under_names() {
  constexpr int names = 20;
  expect(work() == 55, "the parent's tasks");
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int index = 0; index < 3; ++index) {
    threads.emplace_back([&over] {
      while (!over) {
        for (int name = 0; name < names; ++name) (void)imbrex::Name("name " + std::to_string(name));
      }
    });
  }
  for (int round = 0; round < 20; ++round) {
    expect(in_child([round] {
             return task("new " + std::to_string(round)).spawn([] { return 5; }).get();
           }) == 5,
           "a child that makes a name");
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  return failures;
}

// Threads start and stop, tasks fail, and names are looked up, so another thread may hold any lock
// when the process forks.
int fork_under_load() {
  expect(work() == 55, "the parent's tasks");
  std::atomic<bool> over = false;
  std::atomic<int> left = 3;
  std::vector<std::thread> threads;
  for (int index = 0; index < 3; ++index) {
    threads.emplace_back([&over, &left, index] {
      while (!over) {
        std::thread([] { task("brief").launch([] {}); }).join();
        try {
          finish([] { task("fails").launch([] { throw std::runtime_error("expected"); }); });
        } catch (const std::exception&) {
        }
        if (index == 0) (void)work();
        std::this_thread::sleep_for(100us);
      }
      --left;
    });
  }
  for (int round = 0; round < 40; ++round) {
    expect(in_child([] { return work() == 55 ? 4 : 1; }) == 4, "a child under load");
    imbrex::yield();
  }
  over = true;
  while (left != 0) imbrex::yield();  // main may be the only worker
  for (std::thread& thread : threads) thread.join();
  return failures;
}

int settings_of_the_program() {
  const Runtime runtime({.workers = 3, .policy = "fifo"});
  expect(work() == 55, "the parent's tasks");
  expect(in_child([] { return work() == 55 && imbrex::worker_count() == 3 ? 6 : 1; }) == 6,
         "the child's workers");
  pid_t child = -1;
  child = fork();
  if (child == 0) return work() == 55 ? 7 : 1;  // `runtime` ends the child's runtime
  int status = 0;
  waitpid(child, &status, 0);
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 7, "a child that returns from main");
  return failures;
}

int failures_stay_with_the_parent() {
  task("lost").launch([] { throw std::runtime_error("of the parent"); });
  imbrex::yield();
  (void)work();
  expect(in_child([] { return work() == 55 ? 0 : 1; }) == 0, "the child's end");
  return failures;  // with the failure of the task
}

std::string text_in(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// IMBREX_TRACE is a new folder.
int traces_of_children() {
  const std::string folder = std::getenv("IMBREX_TRACE");
  task("parent's task").spawn([] {}).get();
  for (int child = 0; child < 2; ++child) {
    expect(in_child([] {
             task("child's task").spawn([] {}).get();
             return 0;
           }) == 0,
           "the child's end");
  }
  expect(text_in(folder + "/rank-0.json").empty(), "the parent has not ended");
  int found = 0;
  DIR* const entries = opendir(folder.c_str());
  while (const dirent* const entry = readdir(entries)) {
    if (std::strncmp(entry->d_name, "process-", 8) != 0) continue;
    const std::string text = text_in(folder + "/" + entry->d_name + "/rank-0.json");
    if (text.find("child's task") != std::string::npos) ++found;
  }
  closedir(entries);
  expect(found == 2, "a trace of each child");
  return failures;
}

const imbrex::test::Cases cases{
    {"children_have_tasks", children_have_tasks},
    {"children_of_children", children_of_children},
    {"exit_of_a_child_waits", exit_of_a_child_waits},
    {"fork_in_a_task", fork_in_a_task},
    {"body_returns_in_a_child", body_returns_in_a_child},
    {"futures_of_the_parent", futures_of_the_parent},
    {"fork_in_a_finish", fork_in_a_finish},
    {"foreign_thread_forks", foreign_thread_forks},
    {"fork_under_load", fork_under_load},
    {"fork_under_names", fork_under_names},
    {"settings_of_the_program", settings_of_the_program},
    {"failures_stay_with_the_parent", failures_stay_with_the_parent},
    {"traces_of_children", traces_of_children},
};

}  // namespace

int main(int argc, char** argv) {
  const auto* const run = imbrex::test::find_case(cases, argc, argv);
  return run == nullptr ? 2 : (*run)();
}
