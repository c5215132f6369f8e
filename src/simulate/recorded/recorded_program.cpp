// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/recorded/recorded_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/text/brief.hpp"
#include "imbrex/error.hpp"
#include "simulate/recorded/recorded_rank.hpp"

namespace imbrex::simulate {

namespace {

class Recorded final : public Program {
 public:
  explicit Recorded(RecordedRun run) : run_(std::move(run)), kernel_of_(run_.names.size(), 0) {
    constexpr std::size_t most = std::numeric_limits<std::uint16_t>::max();
    for (const RecordedRank& rank : run_.ranks) {
      for (const RecordedTask& task : rank.tasks) {
        if (task.name >= kernel_of_.size() || kernel_of_[task.name] != 0) continue;
        if (kernels_.size() == most) {
          throw Error(fmt::format("the trace has more than {} names of tasks", most));
        }
        kernel_of_[task.name] = static_cast<std::uint16_t>(kernels_.size());
        kernels_.push_back({run_.names[task.name], 0});
      }
    }
  }
  const std::vector<Kernel>& kernels() const override { return kernels_; }
  bool next(int, Batch&) override { return false; }
  const TaskSteps* steps(const int rank, const std::uint32_t number) override {
    return &of(rank).tasks[number].steps;
  }
  std::uint32_t signals(const int rank) const override {
    return run_.ranks[static_cast<std::size_t>(rank)].signals;
  }
  void add_task(int rank, std::uint32_t number, Batch& batch) override;
  void add_operation(int rank, std::uint32_t number, Batch& batch) override;

 private:
  [[nodiscard]] RecordedRank& of(const int rank) noexcept {
    return run_.ranks[static_cast<std::size_t>(rank)];
  }

  RecordedRun run_;
  std::vector<Kernel> kernels_{{"message", 0}};
  std::vector<std::uint16_t> kernel_of_;  // by name
};

void Recorded::add_task(const int rank, const std::uint32_t number, Batch& batch) {
  const RecordedRank& its_rank = of(rank);
  const RecordedTask& task = its_rank.tasks[number];
  TaskPlan plan{.kernel = kernel_of_.at(task.name),
                .priority = task.priority,
                .signal = task.signal};
  const bool only_computes = task.steps.empty() ||
                             (task.steps.size() == 1 && task.steps[0].act == Act::compute);
  if (only_computes) {
    plan.duration = task.steps.empty() ? 0 : task.steps[0].amount;
  } else {
    plan.creates = number;
    plan.tied = task.is_tied;
  }
  batch.add(plan);
  for (std::uint32_t i = 0; i < task.accesses; ++i) {
    batch.access(its_rank.accesses[task.first_access + i]);
  }
}

void Recorded::add_operation(const int rank, const std::uint32_t number, Batch& batch) {
  const RecordedRank& its_rank = of(rank);
  const RecordedOperation& operation = its_rank.operations[number];
  if (operation.parts == 0) {
    batch.add({.role = operation.kind == RecordedOperation::Kind::send ? Role::send
                                                                       : Role::receive,
               .by_library = true,
               .peer = operation.peer,
               .tag = operation.tag,
               .message = operation.message,
               .signal = operation.signal,
               .bytes = operation.bytes});
    if (operation.after != 0) batch.after(operation.after);
    return;
  }
  for (std::uint32_t i = 0; i < operation.parts; ++i) {
    const RecordedPart& part = its_rank.parts[operation.first_part + i];
    batch.add(part.plan);
    for (const std::uint32_t signal : part.after) batch.after(signal);
  }
}

}  // namespace

std::unique_ptr<Program> make_recorded(const RecordedSetup& setup) {
  RecordedRun run = read_steps(setup.steps, setup.creator_ns);
  if (static_cast<int>(run.ranks.size()) != setup.ranks) {
    throw Error(fmt::format("the trace is of {} ranks, and cannot be simulated on {}",
                            run.ranks.size(), setup.ranks));
  }
  std::vector<Time> times(run.names.size(), -1);
  for (const Kernel& kernel : setup.times) {
    const auto found = std::ranges::find(run.names, kernel.name);
    if (found == run.names.end()) {
      throw Error(fmt::format("the trace has no name {}", base::text::brief(kernel.name)));
    }
    times[static_cast<std::size_t>(found - run.names.begin())] = kernel.duration;
  }
  for (RecordedRank& rank : run.ranks) scale(rank, times, setup.speed);
  build_collectives(run);
  return std::make_unique<Recorded>(std::move(run));
}

}  // namespace imbrex::simulate
