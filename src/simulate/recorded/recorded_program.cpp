// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/recorded/recorded_program.hpp"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "imbrex/error.hpp"
#include "simulate/recorded/recorded_rank.hpp"

namespace imbrex::simulate {

namespace {

class Recorded final : public Program {
 public:
  Recorded(std::vector<RecordedRank> ranks, const std::vector<TraceHead>& heads)
      : ranks_(std::move(ranks)) {
    std::map<std::string, std::uint16_t> numbers;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      std::vector<std::uint16_t>& its = kernel_of_.emplace_back(heads[rank].names.size(), 0);
      for (const RecordedTask& task : ranks_[rank].tasks) {
        if (task.name >= its.size()) continue;
        its[task.name] = kernel(numbers, heads[rank].names[task.name]);
      }
    }
  }
  const std::vector<Kernel>& kernels() const override { return kernels_; }
  bool next(int, Batch&) override { return false; }
  const TaskSteps* steps(const int rank, const std::uint32_t number) override {
    return &of(rank).tasks[number].steps;
  }
  std::uint32_t signals(const int rank) const override {
    return ranks_[static_cast<std::size_t>(rank)].signals;
  }
  void add_task(int rank, std::uint32_t number, Batch& batch) override;
  void add_operation(int rank, std::uint32_t number, Batch& batch) override;

 private:
  [[nodiscard]] RecordedRank& of(const int rank) noexcept {
    return ranks_[static_cast<std::size_t>(rank)];
  }
  [[nodiscard]] std::uint16_t kernel(std::map<std::string, std::uint16_t>& numbers,
                                     const std::string& name) {
    constexpr std::size_t most = std::numeric_limits<std::uint16_t>::max();
    const auto [found, is_new] =
        numbers.emplace(name, static_cast<std::uint16_t>(kernels_.size()));
    if (is_new && kernels_.size() == most) {
      throw Error(fmt::format("the trace has more than {} names of tasks", most));
    }
    if (is_new) kernels_.push_back({name, 0});
    return found->second;
  }

  std::vector<RecordedRank> ranks_;
  std::vector<Kernel> kernels_{{"message", 0}};
  std::vector<std::vector<std::uint16_t>> kernel_of_;  // by rank and name
};

void Recorded::add_task(const int rank, const std::uint32_t number, Batch& batch) {
  const RecordedRank& its_rank = of(rank);
  const RecordedTask& task = its_rank.tasks[number];
  TaskPlan plan{.kernel = kernel_of_[static_cast<std::size_t>(rank)][task.name],
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
  if (operation.kind != RecordedOperation::Kind::collective) {
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

std::unique_ptr<Program> make_recorded(const RecordedSetup& setup,
                                       std::map<std::string, std::uint64_t>& left_out) {
  const std::vector<TraceHead> heads = read_heads(setup.heads);
  if (static_cast<int>(heads.size()) != setup.ranks) {
    throw Error(fmt::format("the trace is of {} ranks, and cannot be simulated on {}", heads.size(),
                            setup.ranks));
  }
  std::vector<RecordedRank> ranks;
  for (const TraceHead& head : heads) {
    RecordedRank& rank = ranks.emplace_back(rebuild(head, setup.creator_ns));
    scale(rank, head, setup.speed);
    for (const auto& [what, count] : rank.left_out) left_out[what] += count;
  }
  match(ranks, heads);
  return std::make_unique<Recorded>(std::move(ranks), heads);
}

}  // namespace imbrex::simulate
