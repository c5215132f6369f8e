// SPDX-License-Identifier: BSD-3-Clause
// Loops under IMBREX_SERIAL, in C and C++. The body of each task of C is in the file of the loop;
// serial_bodies.c has one that is not. Prints each check that fails.
#include "imbrex/imbrex.hpp"

#include <cstdio>
#include <stdexcept>
#include <vector>

extern "C" int stops_at_5(void* argument, void* result);  // serial_bodies.c

namespace {

int failures = 0;

void check(const bool right, const char* const what, const int line) {
  if (right) return;
  ++failures;
  std::printf("serial_test.cpp:%d: %s\n", line, what);
}
#define CHECK(condition) check(condition, #condition, __LINE__)

void a_loop_calls_its_body_and_runs_the_tasks_in_place() {
  std::vector<std::int64_t> seen;
  CHECK(imbrex::iteration() == -1);
  imbrex::iterate(5, {.period = 2}, [&](const std::int64_t i) {
    imbrex::task("with a number").launch([&](const std::int64_t iteration) {
      CHECK(iteration == i && imbrex::iteration() == i);
      seen.push_back(iteration);
    });
    imbrex::task("without").launch([&] { seen.push_back(10 + imbrex_iteration()); });
  });
  CHECK(seen == (std::vector<std::int64_t>{0, 10, 1, 11, 2, 12, 3, 13, 4, 14}));
  CHECK(imbrex::iteration() == -1);
  imbrex::iterate(0, [&](std::int64_t) { CHECK(false); });
  imbrex::iterate(-3, [&](std::int64_t) { CHECK(false); });
}

void a_task_that_decides_ends_its_own_loop() {
  int outer = 0, inner = 0, after = 0;
  imbrex::iterate(3, [&](std::int64_t) {
    imbrex::task("outer").launch([&] {
      ++outer;
      imbrex::iterate(9, [&](std::int64_t) {
        imbrex::task("inner").decides().launch([&](const std::int64_t i) {
          ++inner;
          if (i == 1) imbrex::stop_iterating();
        });
        imbrex::task("after").launch([&] { ++after; });
      });
      CHECK(imbrex_iteration() == outer - 1);
    });
  });
  CHECK(outer == 3 && inner == 6 && after == 6);
}

void only_a_task_that_decides_may_stop() {
  bool thrown = false;
  imbrex::iterate(1, [&](std::int64_t) {
    imbrex::task("decides").decides().launch([&] {
      imbrex::task("its child").launch([&] {
        CHECK(imbrex_stop_iterating() == IMBREX_ERR_USE);
        try {
          imbrex::stop_iterating();
        } catch (const std::runtime_error&) {
          thrown = true;
        }
      });
    });
  });
  CHECK(thrown);
  CHECK(imbrex_stop_iterating() == IMBREX_ERR_USE);
}

void an_exception_leaves_the_loop() {
  int begun = 0;
  try {
    imbrex::iterate(9, [&](std::int64_t) {
      imbrex::task("fails").decides().launch([&](const std::int64_t i) {
        ++begun;
        if (i == 3) throw std::domain_error("3");
      });
    });
    CHECK(false);
  } catch (const std::domain_error& error) {
    CHECK(std::string(error.what()) == "3");
  }
  CHECK(begun == 4 && imbrex::iteration() == -1);
  CHECK(imbrex_stop_iterating() == IMBREX_ERR_USE);
}

struct Counts {
  int64_t begun, fails_at;
};

int counts(void* const argument, void*) {
  auto& it = *static_cast<Counts*>(argument);
  ++it.begun;
  return imbrex_iteration() == it.fails_at ? 1 : 0;
}

int creates(void* const argument, int64_t) {
  imbrex_task_spec spec = IMBREX_TASK("counts", counts);
  spec.argument = argument;
  (void)imbrex_spawn(&spec, nullptr);
  spec = IMBREX_TASK("stops", stops_at_5);
  spec.decides = 1;
  return imbrex_spawn(&spec, nullptr);
}

void loops_of_c_return_codes() {
  Counts counted{0, -1};
  CHECK(imbrex_iterate(20, 1, creates, &counted, IMBREX_HERE) == IMBREX_SUCCESS);
  CHECK(counted.begun == 6);
  counted = {0, 2};
  CHECK(imbrex_iterate(20, 1, creates, &counted, IMBREX_HERE) == IMBREX_ERR_TASK);
  CHECK(counted.begun == 3);
  imbrex_finish_t none = nullptr;
  CHECK(imbrex_finish_end(&none) == IMBREX_SUCCESS);  // the loop has reported the failure
  CHECK(imbrex_iterate(20, 0, creates, &counted, IMBREX_HERE) == IMBREX_ERR_USE);
  CHECK(imbrex_iterate(20, 1, nullptr, &counted, IMBREX_HERE) == IMBREX_ERR_USE);
  const auto refuses = [](void*, int64_t) { return 7; };
  CHECK(imbrex_iterate(20, 1, refuses, nullptr, IMBREX_HERE) == IMBREX_ERR_USE);
}

int counts_and_fails(void* const argument, void*) {
  ++*static_cast<int*>(argument);
  return 1;
}
int spawn_counting(int& count, const bool fails, const bool cleans, imbrex_future_t* future) {
  imbrex_task_spec spec = IMBREX_TASK("counts", counts_and_fails);
  spec.body = fails ? counts_and_fails : [](void* argument, void*) {
    ++*static_cast<int*>(argument);
    return 0;
  };
  spec.argument = &count;
  spec.run_after_failure = cleans ? 1 : 0;
  return imbrex_spawn(&spec, future);
}

void a_finish_of_c_stops() {
  int count = 0;
  imbrex_finish_t outer, inner;
  imbrex_future_t dropped;
  CHECK(imbrex_finish_begin_stoppable(&outer, 1, IMBREX_HERE) == IMBREX_SUCCESS);
  CHECK(imbrex_finish_begin_stoppable(&inner, 0, IMBREX_HERE) == IMBREX_SUCCESS);
  CHECK(imbrex_stop_requested() == 0 && imbrex_request_stop(inner) == IMBREX_SUCCESS);
  CHECK(spawn_counting(count, false, false, &dropped) == IMBREX_SUCCESS && count == 0);
  CHECK(imbrex_future_wait(dropped) == IMBREX_ERR_CANCELLED && imbrex_stop_requested() == 1);
  imbrex_future_free(&dropped);
  CHECK(spawn_counting(count, false, true, nullptr) == IMBREX_SUCCESS && count == 1);
  CHECK(imbrex_finish_end(&inner) == IMBREX_SUCCESS && imbrex_stop_requested() == 0);
  CHECK(spawn_counting(count, true, false, nullptr) == IMBREX_SUCCESS && count == 2);
  CHECK(spawn_counting(count, false, false, nullptr) == IMBREX_SUCCESS && count == 2);
  CHECK(imbrex_finish_end(&outer) == IMBREX_ERR_TASK && imbrex_stop_requested() == 0);
}

}  // namespace

int main() {
  a_loop_calls_its_body_and_runs_the_tasks_in_place();
  a_task_that_decides_ends_its_own_loop();
  only_a_task_that_decides_may_stop();
  an_exception_leaves_the_loop();
  loops_of_c_return_codes();
  a_finish_of_c_stops();
  return failures;
}
