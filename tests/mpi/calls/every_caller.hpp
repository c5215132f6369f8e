// SPDX-License-Identifier: BSD-3-Clause
// The kinds of callers that a call must serve: a task that may poll in place, a task that suspends
// since another is always ready, main, and a thread that imbrex does not know.
#pragma once

#include <string>

#include "mpi_test.hpp"

namespace imbrex::test {

enum class Caller { task_alone, task_that_suspends, in_main, unknown_thread };

inline std::string name_of(const testing::TestParamInfo<Caller>& info) {
  switch (info.param) {
    case Caller::task_alone: return "task_alone";
    case Caller::task_that_suspends: return "task_that_suspends";
    case Caller::in_main: return "in_main";
    case Caller::unknown_thread: return "unknown_thread";
  }
  return "?";
}

class EveryCaller : public testing::TestWithParam<Caller> {
 protected:
  // Runs body() as a caller of the kind that is tested.
  template <class F>
  void call(F&& body) {
    switch (GetParam()) {
      case Caller::task_alone: task("alone").spawn([&] { body(); }).get(); break;
      case Caller::task_that_suspends: {
        const Bustle bustle;
        task("suspends").spawn([&] { body(); }).get();
        break;
      }
      case Caller::in_main: body(); break;
      case Caller::unknown_thread: on_unknown_thread(body); break;
    }
  }

  // One rank comes late, so that the others wait.
  void come_late() const {
    if (ring_.rank == 0) sleep_ms(2);
  }

  const Ring ring_;
};

#define EVERY_CALLER(suite)                                                                \
  INSTANTIATE_TEST_SUITE_P(By, suite,                                                      \
                           testing::Values(Caller::task_alone, Caller::task_that_suspends, \
                                           Caller::in_main, Caller::unknown_thread),       \
                           name_of)

}  // namespace imbrex::test
