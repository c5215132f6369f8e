// SPDX-License-Identifier: BSD-3-Clause
// life_cases <case>: how a program begins and ends with imbrex, and what it says when it is used
// wrongly. Each case is a process of its own; expect.sh looks at what it prints and how it ends.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "cases.hpp"
#include "imbrex/imbrex.h"
#include "imbrex/imbrex.hpp"
#include "until_printed.hpp"

namespace {

using imbrex::Promise;
using imbrex::Future;
using imbrex::Promise;
using imbrex::task;
using imbrex::test::until_printed;

// Prints what `call` throws; a test looks for it.
template <class F>
void print_error_of(const char* what, F&& call) {
  try {
    call();
    std::printf("%s: nothing was thrown\n", what);
  } catch (const imbrex::Error& error) {
    std::printf("%s: Error: %s\n", what, error.what());
  }
}

// ---- start and end -----------------------------------------------------------------------------

int first_use() {
  std::printf("workers before: %d\n", imbrex::worker_count());
  auto answer = task("answer").spawn([] { return 42; });
  std::printf("answer: %d\n", answer.get());
  std::printf("workers after: %d\n", imbrex::worker_count());
  return 0;
}

int nothing_used() {
  std::printf("workers: %d\n", imbrex::worker_count());
  return 0;
}

int exit_from_a_task() {
  Promise<void> never;
  for (int i = 0; i < 20; ++i) task("waits").spawn([&never] { never.future().get(); });
  imbrex::yield();
  task("exits").spawn([] { std::exit(3); }).get();
  return 1;
}

int exit_from_a_resumed_task() {
  task("exits").spawn([] {
    for (int i = 0; i < 10; ++i) imbrex::yield();
    std::exit(3);
  }).get();
  return 1;
}

int exit_from_a_foreign_thread() {
  Promise<void> never;
  task("starts the runtime").spawn([] {}).get();
  std::thread thread([] {
    task("work").spawn([] { imbrex::yield(); }).get();
    std::exit(4);
  });
  never.future().get();
  return 1;
}

std::atomic<int> late_runs = 0;

int return_with_tasks_ready() {
  std::atexit([] { std::printf("at exit: %s\n", late_runs.load() <= 1000 ? "sane" : "wrong"); });
  for (int i = 0; i < 1000; ++i) {
    task("late").spawn([] {
      imbrex::yield();
      ++late_runs;
    });
  }
  return 5;
}

// Held by static objects that are destroyed before and after the runtime stops.
struct LooksAtResult {
  Future<std::string> result;
  const char* name;
  ~LooksAtResult() {
    if (result.valid()) std::printf("%s sees: %s\n", name, result.get().c_str());
  }
};
LooksAtResult static_before{{}, "static object"};

int static_destructors() {
  static LooksAtResult static_within{{}, "function's static object"};
  auto text = task("text").spawn([] { return std::string("the result"); });
  text.wait();
  static LooksAtResult static_after{{}, "later static object"};
  static_before.result = text;
  static_within.result = text;
  static_after.result = text;
  return 0;
}

int spawn_after_shutdown() {
  std::atexit([] {  // registered before the runtime starts, so it runs after the runtime's end
    print_error_of("spawn", [] { task("too late").spawn([] { std::printf("ran\n"); }); });
    print_error_of("launch", [] { task("too late").launch([] { std::printf("ran\n"); }); });
  });
  task("in time").spawn([] {}).get();
  return 0;
}

int run_child(const char* word) {
  const pid_t child = fork();
  if (child == 0) {
    execl("/bin/echo", "echo", "child says", word, static_cast<char*>(nullptr));
    _exit(9);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int fork_and_exec() {
  std::printf("before the start: %d\n", run_child("early"));
  std::fflush(stdout);
  int in_task = task("forks").spawn([] {
    imbrex::yield();
    return run_child("from a task");
  }).get();
  const int in_main = run_child("from main");
  std::printf("in a task: %d, in main: %d\n", in_task, in_main);
  std::printf("still works: %d\n", task("next").spawn([] { return 7; }).get());
  return 0;
}

int fork_without_exec() {
  task("first").spawn([] {}).get();
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) std::exit(6);  // runs the handlers of exit, where no worker is left
  int status = -1;
  waitpid(child, &status, 0);
  std::printf("child exited with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  return 0;
}

int options_are_refused() {
  try {
    task("any").spawn([] {}).get();
    std::printf("not refused\n");
    return 0;
  } catch (const imbrex::Error& error) {
    std::printf("refused: %s\n", error.what());
    return 3;
  }
}

int config_is_refused() {
  const auto expect_refusal = [](const char* const what, const imbrex::RuntimeOptions& config) {
    try {
      const imbrex::Runtime runtime(config);
      std::printf("%s: not refused\n", what);
    } catch (const imbrex::Error& error) {
      std::printf("%s: Error: %s\n", what, error.what());
    }
  };
  expect_refusal("policy", {.policy = "nonsense"});
  expect_refusal("places", {.places = "nonsense"});
  expect_refusal("workers", {.workers = -2});
  return 0;
}

// ---- misuse ------------------------------------------------------------------------------------

[[gnu::noinline]] int fall(volatile char* above, int depth) {
  volatile char frame[1024];
  frame[0] = static_cast<char>(above[0] + 1);
  const int below = depth > 0 ? fall(frame, depth - 1) : 0;
  return below + frame[0];
}

void fall_to_the_end() {
  volatile char top = 0;
  std::printf("%d\n", fall(&top, 100'000'000));
}

int stack_overflow() {
  imbrex::finish([] { task("falls too deep").launch([] { fall_to_the_end(); }); });
  return 0;
}

int stack_overflow_after_a_switch() {
  imbrex::finish([] {
    Promise<void> event;
    task("falls later").launch([&event] {
      event.future().get();
      fall_to_the_end();
    });
    task("wakes it").launch([&event] { event.set(); });
    imbrex::taskwait();
  });
  return 0;
}

int stack_overflow_in_place() {
  task("falls in place").spawn([] { fall_to_the_end(); }).get();  // perhaps on main's own stack
  return 0;
}

int waits_that_are_not_allowed() {
  const imbrex::Runtime runtime;
  int x = 0;
  Promise<void> never;
  std::thread([&] {
    print_error_of("release outside a task", [&] { imbrex::release(x); });
    print_error_of("release_after outside a task", [&] { imbrex::release_after(never.future()); });
  }).join();
  task("in a callback").spawn([&] {
    imbrex::detail::enter_callback();
    print_error_of("await in a callback", [&] { never.future().get(); });
    imbrex::detail::leave_callback();
  }).get();
  return 0;
}

// ---- stalls ------------------------------------------------------------------------------------

int stall_by_a_cycle() {
  int x = 0;
  Future<void> second;
  std::optional<Promise<void>> ready(std::in_place);
  Future<void> go = ready->future();
  auto first = task("first task").out(x).spawn([&second, go] {
    go.get();
    second.get();
  });
  second = task("second task").in(x).spawn([] {});
  ready->set();
  ready.reset();
  first.get();
  return 0;
}

int stall_in_a_finish() {
  imbrex::finish([] {
    task("outer task").spawn([] {
      static Future<void> inner;
      Promise<void> ready;
      imbrex::finish([&] {
        inner = task("inner task").spawn([go = ready.future()] {
          go.get();
          inner.get();  // waits for itself
        });
        ready.set();
      });
    });
  });
  return 0;
}

// Main waits for what a task would have done that did not run.
int stall_behind_a_failure() {
  int data = 0;
  Promise<int> sum("sum");
  task("load").out(data).launch([] { throw std::runtime_error("no such file"); });
  task("sums up").in(data).launch([&] { sum.set(data); });
  auto consumer = task("consumer").spawn([future = sum.future()] { return future.get(); });
  return consumer.get();
}

// Each waits for the other by way of joint futures, long chains of them and such as one follows
// twice; who has nothing to do with it waits for a promise that could not help them.
int stall_by_joints() {
  Promise<void> ready;
  Promise<void> done;
  done.set();
  Future<void> second;
  auto first = task("first task").spawn([&second, go = ready.future()] {
    go.get();
    second.get();
  });
  Future<void> chain = when_all(first, done.future());
  for (int i = 0; i < 20'000; ++i) {
    chain = i % 2 == 0 ? when_all(chain, chain) : when_all(when_any(chain));
  }
  second = task("second task").in(chain).spawn([] {});
  ready.set();
  (void)when_any(second, when_all(first)).get();
  return 0;
}

int stall_by_holds() {
  Promise<void> ready;
  Future<void> second;
  auto first = task("first task").spawn([&second, go = ready.future()] {
    go.get();
    imbrex::release_after(second);
  });
  second = task("second task").spawn([first, go = ready.future()] {
    go.get();
    imbrex::release_after(first);
  });
  ready.set();
  first.get();
  return 0;
}

// No task can set the promises for which the finish() of the second task, and the end of the third,
// wait.
int stall_by_what_is_owned() {
  Future<void> first;
  Promise<void> ready;
  first = task("first task").spawn([&first, go = ready.future()] {
    go.get();
    imbrex::finish([&] {
      imbrex::finish_owns(first);
      task("third task").launch([&first] { imbrex::finish_owns(first); });
    });
  });
  ready.set();
  first.get();
  return 0;
}

// A thread sets what a finish() owns.
int late_owned() {
  Promise<int> promise("late promise");
  std::thread thread([promise] {
    until_printed("late promise");
    promise.set(17);
  });
  imbrex::finish([&] {
    task("hands over").launch([&] { imbrex::finish_owns(promise.future()); });
  });
  std::printf("got %d\n", promise.future().get());
  thread.join();
  return 0;
}

// A promise may help one of them: only a thread that is no worker could change that.
int late_joint() {
  Promise<int> promise("late promise");
  std::thread thread([promise] {
    until_printed("when_any of 2");
    promise.set(17);
  });
  auto waiter = task("waits for it").spawn([future = promise.future()] {
    return when_any(when_all(future), future).get();
  });
  std::printf("got %zu\n", waiter.get());
  thread.join();
  return 0;
}

int stall_of_a_foreign_thread() {
  int x = 0;
  std::thread([&x] {
    Future<void> second;
    Promise<void> ready;
    auto first = task("first task").out(x).spawn([&second, go = ready.future()] {
      go.get();
      second.get();
    });
    second = task("second task").in(x).spawn([] {});
    ready.set();
    first.get();
  }).join();
  return 0;
}

// A complete task's access is open until an event fires, which a thread may do at any time.
int access_by_event(const bool fires) {
  static Promise<void> arrived;
  static int buffer = 0;
  std::thread thread;
  imbrex::finish([&] {
    task("receive").out(buffer).launch([&] {
      imbrex::release_after(arrived.future(), buffer);
      if (!fires) return;
      thread = std::thread([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(1500));
        buffer = 5;
        arrived.set();
      });
    });
    task("reader").in(buffer).launch([] { std::printf("read %d\n", buffer); });
  });
  thread.join();
  return 0;
}
int access_ends_late() { return access_by_event(true); }
int access_never_ends() { return access_by_event(false); }

// ---- named events and progress functions -------------------------------------------------------

int never_returns_0() {
  print_error_of("finish", [] {
    imbrex::finish([] {
      imbrex::progress([] { return 1; });
      task("work").launch([] { std::printf("ran\n"); });
    });
  });
  return 0;
}

int never_triggered() {
  std::atomic<bool> over = false;
  std::thread patience([&over] {
    until_printed("no code has triggered");
    imbrex::trigger("ghost_done");
    over = true;
  });
  imbrex::finish([&over] {
    imbrex::progress([&over] { return over.load() ? 0 : 1; });
    task("border").in(imbrex::named("ghost_done")).launch([] { std::printf("border ran\n"); });
  });
  patience.join();
  return 0;
}

int never_triggered_by_anyone() {
  imbrex::finish([] {
    imbrex::progress([] { return 1; });
    task("border").in(imbrex::named("ghost_done")).launch([] { std::printf("border ran\n"); });
  });
  return 0;
}

int nobody_left_to_trigger() {
  imbrex::finish([] {
    task("border").in(imbrex::named("ghost_done")).launch([] { std::printf("border ran\n"); });
  });
  return 0;
}

int triggers_outside() {
  print_error_of("trigger without runtime", [] { imbrex::trigger("early"); });
  task("border").in(imbrex::named("used")).launch([] { std::printf("border ran\n"); });
  imbrex::trigger("used");
  print_error_of("again", [] { imbrex::trigger("used"); });
  imbrex::trigger("misspelt");
  return 0;
}

int late_promise() {
  Promise<int> promise("late promise");
  std::thread thread([promise] {
    until_printed("late promise");
    std::this_thread::sleep_for(std::chrono::seconds(1));  // for what must not be printed, too
    promise.set(17);
  });
  auto waiter = task("waits for it").spawn([future = promise.future()] { return future.get(); });
  std::printf("got %d\n", waiter.get());
  thread.join();
  return 0;
}

// Two tasks on two promises.
int stall_of_promises() {
  const Promise<int> a("a"), b("b");
  imbrex::finish([&] {
    task("first task").launch([=] { b.set(a.future().get()); });
    task("second task").launch([=] { a.set(b.future().get()); });
  });
  return 0;
}

int stall_of_an_event() {  // C has them
  imbrex_event_t never = nullptr;
  imbrex_event_create(&never);
  imbrex::finish([&] { task("first task").launch([&] { imbrex_event_wait(never); }); });
  imbrex_event_free(&never);
  return 0;
}

// main runs the task in place, which waits for main's signal.
int stall_in_place() {
  imbrex::finish([] {
    const imbrex::Phaser phaser(imbrex::signal_wait);
    auto task_of_main = task("first task").phased(phaser).spawn([phaser] { phaser.next(); });
    task_of_main.get();
  });
  return 0;
}

// All threads of the program's own wait, too.
int stall_of_waiting_threads() {
  const Promise<int> never("never");
  task("starts the runtime").spawn([] {}).get();
  std::thread([future = never.future()] { (void)future.get(); }).detach();
  std::thread([future = never.future()] {
    imbrex::finish([&] { task("second task").launch([=] { (void)future.get(); }); });
  }).detach();
  return never.future().get();
}

// A plug-in's wait may have any name; who can end it follows from its kind alone.
int wait_called_finish() {
  imbrex::detail::EventWord event;
  std::thread thread([&event] {
    std::this_thread::sleep_for(std::chrono::seconds(2));
    imbrex::detail::fire(event);
  });
  auto waiter = task("waits for it").spawn([&event] {
    imbrex::detail::await(event, {.kind = imbrex::detail::WaitKind::event, .what = "finish"});
    return 17;
  });
  std::printf("got %d\n", waiter.get());
  thread.join();
  return 0;
}

int stall_of_members() {
  imbrex::detail::EventWord first, second;
  const auto wait_at = [](imbrex::detail::EventWord& event) {
    imbrex::detail::await(event,
                          {.kind = imbrex::detail::WaitKind::members, .what = "the next phase"});
  };
  imbrex::finish([&] {
    task("first task").launch([&] { wait_at(first); });
    task("second task").launch([&] { wait_at(second); });
  });
  return 0;
}

int stall_of_two_phasers() {
  // Each waits on one phaser for the signal that the other gives later.
  imbrex::finish([&] {
    const imbrex::Phaser red(imbrex::signal_wait, {.name = "red"});
    const imbrex::Phaser blue(imbrex::signal_wait, {.name = "blue"});
    task("first task").phased(red).phased(blue).launch([=] {
      red.next();
      blue.next();
    });
    task("second task").phased(red).phased(blue).launch([=] {
      blue.next();
      red.next();
    });
    task("third task").in(blue.passed(0)).launch([] {});
  });
  return 0;
}

int stall_of_a_full_phaser() {
  imbrex::finish([&] {
    const imbrex::Phaser pipe(imbrex::signal_wait, {.ahead = 2, .name = "pipe"});
    imbrex::Future<void> all;
    all = task("producer").phased(pipe, imbrex::signal_only).spawn([=] {
      for (int i = 0; i < 5; ++i) pipe.signal();
    });
    task("consumer").in(all).phased(pipe, imbrex::wait_only).launch([=] { pipe.wait(); });
    pipe.drop();
  });
  return 0;
}

int slow_thread_at_a_phaser() {
  // The signal comes from a thread that is no worker: no stall.
  std::thread thread([] {
    imbrex::finish([] {
      const imbrex::Phaser step(imbrex::signal_wait);
      task("waits").phased(step).launch([=] { step.next(); });
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      step.next();
    });
    std::printf("signalled\n");
  });
  task("other").spawn([] { return 1; }).wait();
  thread.join();
  return 0;
}

int long_computation() {
  // One task computes for seconds while all others wait for it: no stall.
  auto slow = task("slow").spawn([] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return 1;
  });
  auto waiter = task("waiter").spawn([slow] { return slow.get() + 1; });
  std::printf("got %d\n", waiter.get());
  return 0;
}

int blocked_in_main() {
  // Main stands in a system call, not in imbrex, while a task waits for what main does next.
  Promise<void> gate;
  auto waiter = task("waiter").spawn([&] { gate.future().get(); });
  std::this_thread::sleep_for(std::chrono::seconds(3));
  gate.set();
  waiter.get();
  std::printf("got it\n");
  return 0;
}

// One task holds a lock while it waits, others want it: their threads sleep.
int lock_across_a_wait() {
  std::mutex lock;
  std::atomic<bool> held{false};
  imbrex::finish([&] {
    Promise<void> event;
    task("holds the lock").tied().launch([&] {
      const std::lock_guard guard(lock);
      held = true;
      event.future().get();
    });
    while (!held) imbrex::yield();
    for (int i = 0; i < imbrex::worker_count(); ++i) {
      task("wants the lock").launch([&] { const std::lock_guard guard(lock); });
    }
    imbrex::taskwait();  // nothing fires the event
  });
  return 0;
}

// A thread looks at the tasks, as a signal would.
int view_of_a_lock() {
  std::mutex lock;
  std::atomic<bool> held = false;
  std::thread looks([&] {
    const std::lock_guard guard(lock);
    held = true;
    // Until the thread of the task sleeps: no duration would do on all machines.
    std::vector<imbrex::detail::TaskView> views;
    const auto waits = [](const imbrex::detail::TaskView& view) {
      return !view.runs && std::strcmp(view.task.name, "wants the lock") == 0;
    };
    for (int look = 0; look < 3000 && std::ranges::none_of(views, waits); ++look) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      views = imbrex::detail::view_tasks(false);
    }
    for (const imbrex::detail::TaskView& view : views) {
      std::printf("%s: runs %d, waits for %s.\n", imbrex::detail::describe(view.task).c_str(),
                  view.runs ? 1 : 0, view.waits_for.c_str());
    }
  });
  while (!held) std::this_thread::yield();
  auto wants = task("wants the lock").spawn([&] { const std::lock_guard guard(lock); });
  wants.get();
  looks.join();
  return 0;
}

// Main blocks its thread for others that use imbrex, which have all that they need.
int main_joins_threads() {
  task("starts the runtime").spawn([] {}).get();
  std::thread thread([] {
    for (int i = 0; i < 25; ++i) {
      task("short").spawn([] { imbrex::yield(); }).get();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
  thread.join();
  std::printf("joined\n");
  return 0;
}

// ---- reports -----------------------------------------------------------------------------------

int some_work() {
  int x = 0;
  imbrex::finish([&] {
    for (int i = 0; i < 100; ++i) {
      task("link").inout(x).launch([&x] {
        ++x;
        imbrex::yield();
      });
    }
    task("a \"quoted\" name").launch([] { task("inner").spawn([] {}).get(); });
  });
  std::printf("work done: %d\n", x);
  return 0;
}

// ---- ends that leave a trace -----------------------------------------------------------------

// Tasks have run, some wait for ever, and one runs: then the program ends as `end` does.
template <typename End>
int end_amid_tasks(End end) {
  static imbrex::Promise<int> never("never");
  static int value = 0;
  for (int i = 0; i < 1999; ++i) task("done").inout(value).launch([] { ++value; });
  // The task is so long that the critical path has it, however busy the machine is.
  task("done").inout(value).launch([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  });
  imbrex::taskwait();
  task("waits").launch([] { (void)never.future().get(); });
  task("runs").launch([] {
    for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  end();
  return 0;
}

int ends_by_sigterm() {
  return end_amid_tasks([] {
    kill(getpid(), SIGTERM);
    std::this_thread::sleep_for(std::chrono::seconds(20));
  });
}
int ends_by_abort() { return end_amid_tasks([] { std::abort(); }); }
int ends_by_exit() { return end_amid_tasks([] { std::exit(3); }); }
int ends_by_fault() {
  return end_amid_tasks([] {
    volatile int* const nowhere = reinterpret_cast<int*>(8);
    *nowhere = 1;
  });
}
int ends_by_an_exception() {
  return end_amid_tasks([] { std::thread([] { throw 1; }).join(); });
}

const imbrex::test::Cases cases{
    {"first_use", first_use},
    {"nothing_used", nothing_used},
    {"exit_from_a_task", exit_from_a_task},
    {"exit_from_a_resumed_task", exit_from_a_resumed_task},
    {"exit_from_a_foreign_thread", exit_from_a_foreign_thread},
    {"return_with_tasks_ready", return_with_tasks_ready},
    {"static_destructors", static_destructors},
    {"spawn_after_shutdown", spawn_after_shutdown},
    {"fork_and_exec", fork_and_exec},
    {"fork_without_exec", fork_without_exec},
    {"options_are_refused", options_are_refused},
    {"config_is_refused", config_is_refused},
    {"stack_overflow", stack_overflow},
    {"stack_overflow_after_a_switch", stack_overflow_after_a_switch},
    {"stack_overflow_in_place", stack_overflow_in_place},
    {"waits_that_are_not_allowed", waits_that_are_not_allowed},
    {"stall_by_a_cycle", stall_by_a_cycle},
    {"stall_behind_a_failure", stall_behind_a_failure},
    {"stall_in_a_finish", stall_in_a_finish},
    {"stall_by_joints", stall_by_joints},
    {"stall_by_holds", stall_by_holds},
    {"stall_by_what_is_owned", stall_by_what_is_owned},
    {"late_owned", late_owned},
    {"late_joint", late_joint},
    {"stall_of_a_foreign_thread", stall_of_a_foreign_thread},
    {"never_returns_0", never_returns_0},
    {"never_triggered", never_triggered},
    {"nobody_left_to_trigger", nobody_left_to_trigger},
    {"triggers_outside", triggers_outside},
    {"late_promise", late_promise},
    {"wait_called_finish", wait_called_finish},
    {"stall_of_members", stall_of_members},
    {"stall_of_two_phasers", stall_of_two_phasers},
    {"stall_of_a_full_phaser", stall_of_a_full_phaser},
    {"slow_thread_at_a_phaser", slow_thread_at_a_phaser},
    {"access_ends_late", access_ends_late},
    {"access_never_ends", access_never_ends},
    {"long_computation", long_computation},
    {"blocked_in_main", blocked_in_main},
    {"lock_across_a_wait", lock_across_a_wait},
    {"view_of_a_lock", view_of_a_lock},
    {"main_joins_threads", main_joins_threads},
    {"never_triggered_by_anyone", never_triggered_by_anyone},
    {"stall_of_promises", stall_of_promises},
    {"stall_of_an_event", stall_of_an_event},
    {"stall_in_place", stall_in_place},
    {"stall_of_waiting_threads", stall_of_waiting_threads},
    {"some_work", some_work},
    {"ends_by_sigterm", ends_by_sigterm},
    {"ends_by_abort", ends_by_abort},
    {"ends_by_exit", ends_by_exit},
    {"ends_by_fault", ends_by_fault},
    {"ends_by_an_exception", ends_by_an_exception},
};

}  // namespace

int main(int argc, char** argv) {
  const auto* const run = imbrex::test::find_case(cases, argc, argv);
  return run == nullptr ? 2 : (*run)();
}
