// SPDX-License-Identifier: BSD-3-Clause
// failure_cases <case>: errors that nobody takes, and errors that somebody does. Each case is a
// process of its own; expect.sh looks at what it prints and how it ends.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
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

// ---- that nobody takes -------------------------------------------------------------------------

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

// ---- that somebody takes -----------------------------------------------------------------------

struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
  int code = 7;
};

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
  const Future<int> broken = Promise<int>("nobody sets it").future();  // and nobody asks
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
    {"exit_in_a_task", exit_in_a_task},
    {"exit_within_finish", exit_within_finish},
    {"exit_in_a_task_within_finish", exit_in_a_task_within_finish},
    {"exit_in_a_parent", exit_in_a_parent},
    {"taken", taken},
    {"hundred_futures", hundred_futures},
    {"hundred_in_a_finish", hundred_in_a_finish},
    {"get_still_throws_later", get_still_throws_later},
    {"c_wait", c_wait},
};

}  // namespace

int main(int argc, char** argv) {
  const auto* const run = imbrex::test::find_case(cases, argc, argv);
  return run == nullptr ? 2 : (*run)();
}
