// SPDX-License-Identifier: BSD-3-Clause
// failure_cases <case>: errors that no call takes, and errors that a call takes. Each case is a
// process of its own; expect.sh checks its output and its exit.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "imbrex/imbrex.h"
#include "cases.hpp"
#include "imbrex/imbrex.hpp"

namespace {

using imbrex::Future;
using imbrex::Promise;
using imbrex::task;

[[noreturn]] void fail() { throw std::runtime_error("no such file"); }

template <class F>
void expect_what(F&& call) {
  try {
    call();
    std::printf("nothing was thrown\n");
  } catch (const std::exception& error) {
    std::printf("caught: %s\n", error.what());
  }
}

// ---- errors that no call takes -----------------------------------------------------------------

int launched() {
  task("load").launch(fail);
  imbrex::taskwait();
  return 0;
}

int dropped_future() {
  (void)task("load").spawn(fail);
  return 0;
}

Future<void> kept;  // lives until the static objects are destroyed

int living_future() {
  kept = task("load").spawn(fail);
  return 0;
}

int nested() {
  task("outer").launch([] { task("load").launch(fail); });
  return 0;
}

int after_exit_handlers() {
  std::atexit([] { std::printf("an exit handler ran\n"); });
  task("load").launch(fail);
  std::atexit([] { std::printf("a later exit handler ran\n"); });
  return 0;
}

int own_exit_code() {
  task("load").launch(fail);
  imbrex::taskwait();
  return 3;
}

int many() {
  for (int i = 0; i < 100; ++i) {
    task("load").launch([i] { throw std::runtime_error("file " + std::to_string(i)); });
  }
  return 0;
}

int on_a_foreign_thread() {
  task("first").launch([] {});
  const Promise<void> done;
  std::thread thread([&done] {
    task("load").launch(fail);
    imbrex::taskwait();
    done.set();
  });
  done.future().wait();  // in imbrex: the only worker may be this one
  thread.join();
  return 0;
}

int with_a_runtime_object() {
  {
    const imbrex::Runtime runtime;
    task("load").launch(fail);
  }
  std::printf("the runtime has ended\n");
  return 0;
}

int promise_set() {
  task("first").launch([] {});
  const Promise<int> promise("config");
  promise.set_exception(std::make_exception_ptr(std::runtime_error("no such file")));
  return 0;
}

int odd_exception() {
  task("load").launch([] { throw 7; });
  return 0;
}

// A closure, or a value, whose destructor throws where it holds anything.
struct Bomb {
  explicit Bomb(const char* const its_text) : text(its_text) {}
  Bomb(Bomb&& other) noexcept : text(std::exchange(other.text, nullptr)) {}
  Bomb(const Bomb&) = delete;
  Bomb& operator=(const Bomb&) = delete;
  ~Bomb() noexcept(false) {
    if (text != nullptr) throw std::runtime_error(text);
  }
  const char* text;
};

int destructors_throw() {
  static int alive = 0;
  struct Counted {
    Counted() { ++alive; }
    Counted(const Counted&) { ++alive; }
    Counted& operator=(const Counted&) = default;
    ~Counted() { --alive; }
  };
  expect_what([] {
    (void)task("closure").spawn([bomb = Bomb("of a closure")] { return Counted(); }).get();
  });
  std::printf("results left: %d\n", alive);
  expect_what([] {
    task("both").spawn([bomb = Bomb("of the closure of both")] { fail(); }).get();
  });
  int x = 0;
  imbrex::Future<void> load = task("load").out(x).spawn(fail);
  expect_what([&x] { task("not run").in(x).spawn([bomb = Bomb("of what never ran")] {}).get(); });
  expect_what([&load] { load.get(); });
  (void)task("value").spawn([] { return Bomb("of a value"); });
  expect_what([] {
    imbrex::finish([] { imbrex::progress([bomb = Bomb("of a function")] { return 0; }); });
  });
  return 0;
}

int c_body() {
  imbrex_task_spec spec = IMBREX_TASK("load in C", [](void*, void*) { return 7; });
  if (imbrex_spawn(&spec, nullptr) != IMBREX_SUCCESS) return 2;
  return imbrex_taskwait();
}

int body_of_finish_fails_too() {
  try {
    imbrex::finish([] {
      task("load").launch(fail);
      throw std::logic_error("of the body");
    });
  } catch (const std::logic_error& error) {
    std::printf("caught: %s\n", error.what());
  }
  return 0;
}

// The log of a finish() has places for 16. The others are counted, but for those that get() takes.
int body_of_finish_fails_with_many() {
  std::vector<Future<void>> all;
  expect_what([&] {
    imbrex::finish([&] {
      for (int i = 0; i < 100; ++i) all.push_back(task("load").spawn(fail));
      imbrex::taskwait();
      for (std::size_t i = 50; i < 100; ++i) {
        try {
          all[i].get();
        } catch (const std::runtime_error&) {
        }
      }
      throw std::logic_error("of the body");
    });
  });
  expect_what([&] {
    imbrex::finish([] {
      for (int i = 0; i < 40; ++i) task("again").launch([] { task("deep").launch(fail); });
      throw std::logic_error("of the second");
    });
  });
  return 0;
}

int exit_in_a_task() {
  task("load").spawn(fail).wait();
  task("exits").spawn([] { std::exit(0); }).wait();
  return 2;
}

// The finish() that would have taken the error never ends.
int exit_within_finish() {
  imbrex::finish([] {
    task("load").launch(fail);
    imbrex::taskwait();
    std::exit(0);
  });
  return 2;
}

int exit_in_a_task_within_finish() {
  imbrex::finish([] {
    task("exits").launch([] {
      imbrex::finish([] {
        task("load").launch(fail);
        imbrex::taskwait();
        task("exits itself").launch([] { std::exit(0); });
      });
    });
  });
  return 2;
}

int exit_in_a_parent() {
  imbrex::finish([] {
    task("exits").launch([] {
      task("load").launch(fail);
      imbrex::taskwait();
      std::exit(0);
    });
  });
  return 2;
}

// ---- errors that a call takes ------------------------------------------------------------------

struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
  int code = 7;
};

int own_class() {
  task("load").launch([] { throw Refused("no such file"); });
  return 0;
}

int uncaught() {
  imbrex::finish([] { task("load").launch([] { throw Refused("no such file"); }); });
  return 0;
}

int own_class_in_c() {
  imbrex_finish_t finish;
  if (imbrex_finish_begin(&finish, IMBREX_HERE) != IMBREX_SUCCESS) return 2;
  task("load").launch([] { throw Refused("no such file"); });
  if (imbrex_finish_end(&finish) == IMBREX_ERR_TASK) std::printf("C: %s\n", imbrex_message());
  return 0;
}

struct Silent : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return nullptr; }
};

int null_text() {
  imbrex::Future<void> silent = task("silent").spawn([] { throw Silent(); });
  try {
    silent.get();
  } catch (const Silent&) {
    std::printf("caught it\n");
  }
  int x = 0;
  task("load").out(x).launch([] { throw Silent(); });
  expect_what([&x] { task("reads").in(x).spawn([] {}).get(); });
  return 0;
}

int taken() {
  expect_what([] { task("get").spawn(fail).get(); });
  expect_what([] { imbrex::finish([] { task("finish").launch(fail); }); });
  auto first = task("one of all").spawn(fail);
  auto second = task("another of all").spawn(fail);
  expect_what([&] { imbrex::when_all(first, second).get(); });
  expect_what([] {
    imbrex::finish([] {
      task("outer").launch([] { task("inner").spawn([] { throw Refused("own class"); }).get(); });
    });
  });
  try {
    task("own class").spawn([] { throw Refused("own class"); }).get();
  } catch (const Refused& error) {
    std::printf("caught with code %d: %s\n", error.code, error.what());
  }
  expect_what([] {
    imbrex::finish([] { task("imbrex").launch([] { throw imbrex::Error("e"); }); });
  });
  Promise<void> promise("config");
  promise.set_exception(std::make_exception_ptr(std::out_of_range("far")));
  expect_what([&] { promise.future().get(); });
  const Future<int> broken = Promise<int>("nobody sets it").future();  // and no task asks
  return 0;
}

// An exception object of the program stays as it is, whichever tasks hold it.
int own_object_stays() {
  const std::exception_ptr stored = std::make_exception_ptr(Refused(std::string(100, 'x')));
  bool same = false;
  try {
    std::rethrow_exception(stored);
  } catch (const Refused& held) {
    const char* const before = held.what();
    std::vector<Future<void>> all;
    for (int i = 0; i < 8; ++i) {
      all.push_back(task("escapes").spawn([stored] { std::rethrow_exception(stored); }));
    }
    for (const Future<void>& one : all) {
      try {
        one.get();
      } catch (const Refused& caught) {
        same = &caught == &held && caught.what() == before && before == std::string(100, 'x');
      }
    }
  }
  std::printf("the same object, with the same text: %d\n", static_cast<int>(same));
  return 0;
}

// The standard's own classes: what is caught is another object, which names the task.
int standard_classes() {
  expect_what([] { task("hungry").spawn([] { throw std::bad_alloc(); }).get(); });
  try {
    task("system").spawn([] {
      throw std::system_error(std::make_error_code(std::errc::io_error), "reading");
    }).get();
  } catch (const std::system_error& error) {
    std::printf("io_error: %d; %s\n", static_cast<int>(error.code() == std::errc::io_error),
                error.what());
  }
  expect_what([] { task("empty").spawn([] { (void)std::optional<int>().value(); }).get(); });
  try {
    imbrex::finish([] { task("in finish").launch([] { throw std::bad_alloc(); }); });
  } catch (const std::bad_alloc& error) {
    std::printf("of memory: %s\n", error.what());
  }
  const imbrex_task_spec spec = IMBREX_TASK("C waits", [](void*, void*) { return 0; });
  imbrex_finish_t finish;
  if (imbrex_finish_begin(&finish, IMBREX_HERE) != IMBREX_SUCCESS) return 2;
  if (imbrex_spawn(&spec, nullptr) != IMBREX_SUCCESS) return 2;
  task("for C").launch([] { throw std::bad_alloc(); });
  if (imbrex_finish_end(&finish) == IMBREX_ERR_TASK) std::printf("C: %s\n", imbrex_message());
  return 0;
}

int no_exception_is_set() {
  task("first").launch([] {});
  const Promise<int> promise("config");
  expect_what([&] { promise.set_exception(nullptr); });
  promise.set(7);
  std::printf("got %d\n", promise.future().get());
  return 0;
}

// C has no destructors that would end a finish.
std::atomic<int> ran{0};
void leave_open() {
  static imbrex_finish_t finish;  // its memory stays, as no call ends it
  if (imbrex_finish_begin(&finish, "solver.c", 12) != IMBREX_SUCCESS) std::abort();
  task("late").launch([] {
    imbrex::yield();
    ++ran;
  });
}
int c_finish_left_open() {
  expect_what([&] { imbrex::finish(leave_open); });
  std::printf("late ran: %d\n", ran.load());
  expect_what([&] {
    imbrex::finish([&] {
      leave_open();
      throw std::runtime_error("of the body");
    });
  });
  std::printf("late ran: %d\n", ran.load());
  expect_what([&] {
    imbrex::finish([&] {
      leave_open();
      task("load").launch(fail);
    });
  });
  std::printf("late ran: %d\n", ran.load());
  return 0;
}

int c_finish_left_open_in_a_task() {
  expect_what([] { task("opens").spawn(leave_open).get(); });
  std::printf("late ran: %d\n", ran.load());
  expect_what([] {
    imbrex::finish([] {
      task("opens").launch([] {
        leave_open();
        throw std::runtime_error("of the body");
      });
    });
  });
  std::printf("late ran: %d\n", ran.load());
  expect_what([] {
    imbrex::finish([] {
      task("opens").launch([] {
        leave_open();
        task("load").launch(fail);
      });
    });
  });
  std::printf("late ran: %d\n", ran.load());
  return 0;
}

int c_finish_left_open_in_main() {
  std::atexit([] { std::printf("late ran: %d\n", ran.load()); });
  leave_open();
  return 0;
}

int c_finish_left_open_in_a_thread() {
  task("first").launch([] {});
  const Promise<void> done;
  std::thread thread([&done] {
    leave_open();
    done.set();
  });
  done.future().wait();  // in imbrex: the only worker may be this one
  while (ran.load() == 0) imbrex::yield();
  thread.join();
  return 0;
}

int c_finish_left_open_in_a_runtime() {
  {
    const imbrex::Runtime runtime;
    leave_open();
  }
  std::printf("late ran: %d\n", ran.load());
  return 0;
}

// exit() within a finish() of C++ leaves that open, which is no error, nor is what is around it.
int exit_within_finish_in_a_c_finish() {
  leave_open();
  imbrex::finish([] { std::exit(0); });
  return 2;
}

int c_finish_at_no_place() {
  expect_what([] {
    imbrex::finish([] {
      static imbrex_finish_t finish;
      (void)imbrex_finish_begin(&finish, nullptr, 0);
      task("load").launch(fail);
    });
  });
  return 0;
}

int hundred_futures() {
  std::vector<Future<void>> all;
  for (int i = 0; i < 100; ++i) all.push_back(task("load").spawn(fail));
  imbrex::taskwait();
  int caught = 0;
  for (const Future<void>& one : all) {
    try {
      one.get();
    } catch (const std::runtime_error&) {
      ++caught;
    }
  }
  std::printf("caught %d\n", caught);
  return 0;
}

int hundred_in_a_finish() {
  std::vector<Future<void>> all;
  expect_what([&] {
    imbrex::finish([&] {
      for (int i = 0; i < 100; ++i) all.push_back(task("load").spawn(fail));
    });
  });
  return 0;
}

int get_still_throws_later() {
  Future<void> future;
  {
    const imbrex::Runtime runtime;
    future = task("load").spawn(fail);
  }
  expect_what([&] { future.get(); });
  return 0;
}

int c_wait() {
  imbrex_task_spec spec = IMBREX_TASK("load in C", [](void*, void*) { return 7; });
  imbrex_future_t future;
  if (imbrex_spawn(&spec, &future) != IMBREX_SUCCESS) return 2;
  if (imbrex_future_wait(future) == IMBREX_ERR_TASK) std::printf("%s\n", imbrex_message());
  imbrex_future_free(&future);
  imbrex_finish_t finish;
  if (imbrex_finish_begin(&finish, IMBREX_HERE) != IMBREX_SUCCESS) return 2;
  if (imbrex_spawn(&spec, nullptr) != IMBREX_SUCCESS) return 2;
  if (imbrex_finish_end(&finish) == IMBREX_ERR_TASK) std::printf("again: %s\n", imbrex_message());
  return 0;
}

const imbrex::test::Cases cases{
    {"launched", launched},
    {"dropped_future", dropped_future},
    {"living_future", living_future},
    {"nested", nested},
    {"after_exit_handlers", after_exit_handlers},
    {"own_exit_code", own_exit_code},
    {"many", many},
    {"on_a_foreign_thread", on_a_foreign_thread},
    {"with_a_runtime_object", with_a_runtime_object},
    {"promise_set", promise_set},
    {"odd_exception", odd_exception},
    {"c_body", c_body},
    {"body_of_finish_fails_too", body_of_finish_fails_too},
    {"body_of_finish_fails_with_many", body_of_finish_fails_with_many},
    {"exit_in_a_task", exit_in_a_task},
    {"exit_within_finish", exit_within_finish},
    {"exit_in_a_task_within_finish", exit_in_a_task_within_finish},
    {"exit_in_a_parent", exit_in_a_parent},
    {"taken", taken},
    {"hundred_futures", hundred_futures},
    {"hundred_in_a_finish", hundred_in_a_finish},
    {"get_still_throws_later", get_still_throws_later},
    {"own_class", own_class},
    {"null_text", null_text},
    {"destructors_throw", destructors_throw},
    {"own_object_stays", own_object_stays},
    {"standard_classes", standard_classes},
    {"no_exception_is_set", no_exception_is_set},
    {"c_finish_left_open", c_finish_left_open},
    {"c_finish_left_open_in_a_task", c_finish_left_open_in_a_task},
    {"c_finish_left_open_in_main", c_finish_left_open_in_main},
    {"c_finish_left_open_in_a_thread", c_finish_left_open_in_a_thread},
    {"c_finish_left_open_in_a_runtime", c_finish_left_open_in_a_runtime},
    {"exit_within_finish_in_a_c_finish", exit_within_finish_in_a_c_finish},
    {"c_finish_at_no_place", c_finish_at_no_place},
    {"uncaught", uncaught},
    {"own_class_in_c", own_class_in_c},
    {"c_wait", c_wait},
};

}  // namespace

int main(int argc, char** argv) {
  const auto* const run = imbrex::test::find_case(cases, argc, argv);
  return run == nullptr ? 2 : (*run)();
}
