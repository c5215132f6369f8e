// SPDX-License-Identifier: BSD-3-Clause
// A random loop for iterate_fuzz.cpp, and what its tasks compute when all iterations run one after
// the other in program order. Knows nothing of the runtime.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "fuzz/program.hpp"

namespace imbrex::test {

// How an access of a step ends.
enum class AccessEnd { with_task, early, by_event };

struct StepAccess : Access {
  AccessEnd end = AccessEnd::with_task;
};

// When one instance of a step did what, by one counter of the whole loop; 0: it did not.
struct Instance {
  std::uint64_t start = 0;
  std::uint64_t body_end = 0;
  std::uint64_t bound_end = 0;    // just before the event of release_after() fired
  std::uint64_t last_child = 0;   // end of the last child; of several, any may write it last
  std::vector<std::uint64_t> access_end;
  std::vector<std::uint64_t> observed;
  std::vector<std::uint64_t> expected;
};

enum class Fails { never, itself, by_child };

// A task of the loop's body.
struct Step {
  std::uint64_t id = 0;
  std::string name;
  std::int64_t offset = 0;  // of its iteration in the period
  std::vector<StepAccess> accesses;
  int yields = 0;
  int children = 0;
  bool nested = false;      // its children are those of an iterate() in the task
  bool suspends = false;
  bool foreign = false;     // a thread that is no worker ends the wait
  bool bound = false;       // release_after() of the whole task; it writes its `out` late
  bool tied = false;
  bool after_failure = false;
  bool by_parameter = false;  // its function takes the number of the iteration
  bool decides = false;
  int priority = 0;
  std::int64_t stops_at = -1;  // the iteration in which it ends the loop
  Fails fails = Fails::never;
  std::int64_t fails_at = -1;
  std::vector<Instance> instances;
};

struct LoopProgram {
  std::int64_t count = 0;
  std::int64_t period = 1;
  std::vector<std::uint64_t> values;
  std::vector<std::uint64_t> expected;  // the last values, if no task fails
  std::vector<Step> steps;              // by offset
  std::vector<std::size_t> before;      // variables that a task before the loop writes

  [[nodiscard]] Instance& at(Step& step, const std::int64_t iteration) const {
    return step.instances[static_cast<std::size_t>(iteration / period)];
  }
  // The last iteration, unless a task fails.
  [[nodiscard]] std::int64_t last() const {
    std::int64_t last = count - 1;
    for (const Step& step : steps) {
      if (step.stops_at >= 0) last = std::min(last, step.stops_at);
    }
    return last;
  }
  // The first iteration in which a task fails; none: INT64_MAX.
  [[nodiscard]] std::int64_t first_failure() const {
    std::int64_t first = INT64_MAX;
    for (const Step& step : steps) {
      if (step.fails != Fails::never && step.fails_at <= last()) {
        first = std::min(first, step.fails_at);
      }
    }
    return first;
  }
};

class LoopGenerator {
 public:
  LoopGenerator(const std::uint64_t seed, const bool foreign) : random_(seed), foreign_(foreign) {
    for (int& weight : weights_) weight = pick(4);
    weights_[static_cast<int>(Kind::inout)] += 1;
  }

  [[nodiscard]] LoopProgram program() {
    LoopProgram made;
    made.period = once_in(2) ? 1 : 1 + pick(4);
    made.count = once_in(4) ? 1 + pick(4) : 1 + pick(14);
    ranges_ = once_in(2);
    made.values.assign(static_cast<std::size_t>(1 + pick(ranges_ ? 10 : 6)), 0);
    const int total = 1 + pick(10);
    const bool decided = once_in(3);
    for (int i = 0; i < total; ++i) made.steps.push_back(step(made, decided));
    std::ranges::stable_sort(made.steps, {}, &Step::offset);
    std::erase_if(made.steps, [&](const Step& each) { return each.offset >= made.count; });
    if (made.steps.empty()) {
      made.steps.push_back(step(made, false));
      made.steps.back().offset = 0;
    }
    if (once_in(4)) add_failures(made);
    if (once_in(3)) {
      for (std::size_t i = 0; i < made.values.size(); ++i) {
        if (once_in(2)) made.before.push_back(i);
      }
    }
    for (Step& each : made.steps) each.instances.resize(instance_count(made, each));
    run_in_order(made);
    return made;
  }

 private:
  int pick(const int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  bool once_in(const int times) { return pick(times) == 0; }

  static std::size_t instance_count(const LoopProgram& program, const Step& step) {
    return static_cast<std::size_t>((program.count - step.offset + program.period - 1) /
                                    program.period);
  }

  Kind kind() {
    int total = 0;
    for (const int weight : weights_) total += weight;
    int at = pick(total);
    for (int k = 0; k < 5; ++k) {
      if (at < weights_[k]) return static_cast<Kind>(k);
      at -= weights_[k];
    }
    return Kind::inout;
  }

  Step step(const LoopProgram& program, const bool decided) {
    Step made;
    made.id = ++last_id_;
    made.name = "step " + std::to_string(made.id);
    made.offset = pick(static_cast<int>(program.period));
    add_accesses(made, program.values.size());
    made.yields = once_in(2) ? pick(4) : 0;
    made.children = once_in(4) ? 1 + pick(3) : 0;
    made.nested = once_in(3);
    made.suspends = once_in(5);
    made.foreign = foreign_ && once_in(2);
    made.bound = once_in(8);
    made.tied = once_in(6);
    made.after_failure = once_in(4);
    made.by_parameter = once_in(2);
    made.priority = once_in(3) ? pick(5) - 2 : 0;
    made.decides = decided && once_in(3);
    if (made.decides && once_in(3)) made.stops_at = iteration_of(program, made);
    return made;
  }

  // An iteration in which the step has an instance, or a bit more than the last one.
  std::int64_t iteration_of(const LoopProgram& program, const Step& step) {
    const int rounds = static_cast<int>((program.count - 1) / program.period) + 1;
    return step.offset + pick(rounds) * program.period;
  }

  void add_failures(LoopProgram& program) {
    for (int failures = 1 + pick(2); failures > 0; --failures) {
      Step& step = program.steps[static_cast<std::size_t>(
          pick(static_cast<int>(program.steps.size())))];
      step.fails = step.children > 0 && once_in(2) ? Fails::by_child : Fails::itself;
      step.fails_at = iteration_of(program, step);
    }
  }

  // Each variable once, so that the model knows what the task sees there.
  void add_accesses(Step& step, const std::size_t variables) {
    std::vector<std::size_t> free(variables);
    for (std::size_t i = 0; i < free.size(); ++i) free[i] = i;
    for (int count = pick(5); count > 0 && !free.empty(); --count) {
      const auto at = static_cast<std::size_t>(pick(static_cast<int>(free.size())));
      StepAccess access;
      access.variable = free[at];
      access.kind = kind();
      access.early = false;
      access.end = once_in(6) ? AccessEnd::early
                              : once_in(8) ? AccessEnd::by_event : AccessEnd::with_task;
      if (ranges_ && once_in(2)) {
        access.range = true;
        const auto most = static_cast<std::size_t>(1 + pick(5));
        while (access.count < most && at + access.count < free.size() &&
               free[at + access.count] == access.variable + access.count) {
          ++access.count;
        }
      }
      step.accesses.push_back(access);
      const auto first = free.begin() + static_cast<std::ptrdiff_t>(at);
      free.erase(first, first + static_cast<std::ptrdiff_t>(access.count));
    }
  }

  // The sequential model: fills Instance::expected. Effects inside a set commute, so program order
  // stands for every order.
  static void run_in_order(LoopProgram& program) {
    std::vector<std::uint64_t>& values = program.expected;
    values.assign(program.values.size(), 0);
    for (const std::size_t variable : program.before) values[variable] = mix(7, variable);
    for (std::int64_t i = 0; i <= program.last(); ++i) {
      for (Step& step : program.steps) {
        if (step.offset != i % program.period) continue;
        const std::uint64_t id = step.id + 100 * static_cast<std::uint64_t>(i);
        for (const StepAccess& access : step.accesses) {
          std::uint64_t seen = 0;
          for (std::size_t at = access.variable; at < access.variable + access.count; ++at) {
            seen = seen_too(seen, effect(access.kind, id, values[at]));
          }
          program.at(step, i).expected.push_back(seen);
        }
      }
    }
  }
  static std::uint64_t effect(const Kind kind, const std::uint64_t id, std::uint64_t& value) {
    const std::uint64_t before = value;
    switch (kind) {
      case Kind::in: return before;
      case Kind::out: value = mix(0, id); return 0;
      case Kind::inout: value = mix(before, id); return before;
      default: value += mix(id, 2); return 0;
    }
  }

  std::mt19937_64 random_;
  const bool foreign_;
  bool ranges_ = false;
  std::uint64_t last_id_ = 0;
  int weights_[5];
};

}  // namespace imbrex::test
