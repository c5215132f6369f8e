// SPDX-License-Identifier: BSD-3-Clause
// A mark on the worker: functions of an accumulator run.
#pragma once

#include <utility>

#include "sched/run/worker.hpp"

namespace imbrex::sched {

// The value of Worker::callback_call while functions of an accumulator run.
inline constexpr char accumulator_call[] = "the operation of an accumulator";

// While it lives, functions of an accumulator or destructors of its values run: none may wait.
class InAccumulator {
 public:
  explicit InAccumulator(Worker& worker) noexcept
      : worker_(worker), outer_(std::exchange(worker.callback_call, accumulator_call)) {
    ++worker_.callbacks;
  }
  ~InAccumulator() {
    --worker_.callbacks;
    worker_.callback_call = outer_;
  }
  InAccumulator(const InAccumulator&) = delete;
  InAccumulator& operator=(const InAccumulator&) = delete;

 private:
  Worker& worker_;
  const char* const outer_;
};

}  // namespace imbrex::sched
