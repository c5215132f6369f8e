// SPDX-License-Identifier: BSD-3-Clause
// The tasks of a program that goes in steps. One function creates the tasks of a step; it is called
// for each step, or by imbrex::iterate() for a period of steps only.
#pragma once

#include <imbrex/imbrex.hpp>

#include <cstdint>

namespace apps {

class StepTasks {
 public:
  // The tasks of the steps from `first` to below `end`. create(step) creates the same ones in step
  // s as in step s - period. Suspends until they are complete.
  template <class Create>
  void iterate(const int first, const int end, const int period, const Create& create) {
    first_ = first;
    iterates_ = true;
    imbrex::iterate(end - first, {.period = period}, [&](const std::int64_t iteration) {
      create(first + static_cast<int>(iteration));
    });
    iterates_ = false;
  }

  // Called by the function that creates the tasks of `step`: the task calls body(step), where
  // `step` is the one that it runs for.
  template <class Body>
  void launch(imbrex::TaskBuilder& task, const int step, const Body& body) const {
    if (iterates_) {
      task.launch([body, first = first_](const std::int64_t iteration) {
        body(first + static_cast<int>(iteration));
      });
    } else {
      task.launch([body, step] { body(step); });
    }
  }

 private:
  bool iterates_ = false;
  int first_ = 0;
};

}  // namespace apps
