// SPDX-License-Identifier: BSD-3-Clause
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "imbrex/error.hpp"
#include "simulate/recorded/recorded_rank.hpp"
#include "task/access/accesses.hpp"

namespace imbrex::simulate {

namespace {

using detail::AccessKind;

class Reader {
 public:
  Reader(const std::string& path, const Time creator_ns)
      : path_(path), creator_ns_(creator_ns), file_(path, std::ios::binary) {}
  [[nodiscard]] RecordedRun read();

 private:
  void take_bytes(char* const bytes, const std::size_t count) {
    if (file_.read(bytes, static_cast<std::streamsize>(count))) return;
    throw Error(fmt::format("{}: not the steps of a run: start the simulation by `imbrex simulate "
                            "--trace`",
                            path_));
  }
  template <class Number>
  [[nodiscard]] Number take() {
    std::uint64_t word = 0;
    take_bytes(reinterpret_cast<char*>(&word), sizeof word);
    return static_cast<Number>(word);
  }
  [[nodiscard]] const void* take_address() {
    return reinterpret_cast<const void*>(take<std::uintptr_t>());
  }
  [[nodiscard]] std::string take_text();
  void take_task(RecordedRank& rank, const std::vector<std::string>& names);
  void take_access(RecordedRank& rank, RecordedTask& task);
  void take_step(TaskSteps& steps);
  void take_operation(RecordedRank& rank);

  const std::string& path_;
  const Time creator_ns_;
  std::ifstream file_;
};

RecordedRun Reader::read() {
  RecordedRun run;
  for (auto names = take<std::uint64_t>(); names > 0; --names) run.names.push_back(take_text());
  for (auto ranks = take<std::uint64_t>(); ranks > 0; --ranks) {
    RecordedRank& rank = run.ranks.emplace_back();
    for (auto tasks = take<std::uint64_t>(); tasks > 0; --tasks) take_task(rank, run.names);
  }
  for (RecordedRank& rank : run.ranks) {
    rank.signals = take<std::uint32_t>();
    for (auto operations = take<std::uint64_t>(); operations > 0; --operations) {
      take_operation(rank);
      run.messages = std::max(run.messages, rank.operations.back().message);
    }
  }
  return run;
}

std::string Reader::take_text() {
  constexpr std::size_t word = sizeof(std::uint64_t);
  const auto bytes = take<std::uint32_t>();
  std::string text((bytes + word - 1) / word * word, '\0');
  take_bytes(text.data(), text.size());
  text.resize(bytes);
  return text;
}

void Reader::take_task(RecordedRank& rank, const std::vector<std::string>& names) {
  RecordedTask& task = rank.tasks.emplace_back();
  task.name = take<std::uint32_t>();
  task.priority = take<int>();
  task.is_tied = take<std::uint64_t>() != 0;
  task.signal = take<std::uint32_t>();
  task.first_access = rank.accesses.size();
  std::vector<detail::AccessSpec> named;
  for (auto accesses = take<std::uint64_t>(); accesses > 0; --accesses) take_access(rank, task);
  for (std::size_t i = task.first_access; i < rank.accesses.size(); ++i) {
    if (rank.accesses[i].kind != AccessKind::after) named.push_back(rank.accesses[i]);
  }
  if (named.size() > 1) task::check_accesses(names.at(task.name).c_str(), named);
  for (auto steps = take<std::uint64_t>(); steps > 0; --steps) take_step(task.steps);
}

void Reader::take_access(RecordedRank& rank, RecordedTask& task) {
  const void* const address = take_address();
  const auto kind = take<AccessKind>();
  const void* const end = take_address();
  ++task.accesses;
  if (end == nullptr) {
    rank.accesses.emplace_back(address, kind);
    return;
  }
  rank.accesses.emplace_back(address, kind, std::uint16_t{0});
  rank.accesses.emplace_back(end, AccessKind::range_end);
  ++task.accesses;
}

void Reader::take_step(TaskSteps& steps) {
  const auto act = take<Act>();
  const auto number = take<std::uint32_t>();
  if (act == Act::create && !steps.empty() && steps.back().act == Act::compute) {
    steps.back().amount -= creator_ns_;
    if (steps.back().amount <= 0) steps.pop_back();
  }
  steps.push_back({act, number, take<std::int64_t>()});
}

void Reader::take_operation(RecordedRank& rank) {
  using Kind = RecordedOperation::Kind;
  RecordedOperation& operation = rank.operations.emplace_back();
  operation.kind = take<Kind>();
  operation.signal = take<std::uint32_t>();
  switch (operation.kind) {
    case Kind::none: return;
    case Kind::send:
    case Kind::receive:
      operation.peer = take<int>();
      operation.tag = take<int>();
      operation.message = take<std::uint32_t>();
      operation.bytes = take<std::int64_t>();
      operation.after = take<std::uint32_t>();
      return;
    case Kind::collective:
      operation.peer = take<int>();
      operation.name = take<std::uint32_t>();
      operation.call = take<std::uint32_t>();
      operation.bytes = take<std::int64_t>();
      return;
    case Kind::joint: {
      operation.first_part = rank.parts.size();
      operation.parts = 1;
      RecordedPart& part = rank.parts.emplace_back();
      part.plan = {.role = Role::compute, .by_library = true, .signal = operation.signal};
      for (auto count = take<std::uint64_t>(); count > 0; --count) {
        part.after.push_back(take<std::uint32_t>());
      }
      return;
    }
  }
}

}  // namespace

RecordedRun read_steps(const std::string& path, const Time creator_ns) {
  return Reader(path, creator_ns).read();
}

void scale(RecordedRank& rank, const std::vector<Time>& times, const double speed) {
  for (RecordedTask& task : rank.tasks) {
    Time sum = 0;
    for (const TaskStep& step : task.steps) sum += step.act == Act::compute ? step.amount : 0;
    const Time wanted = task.name < times.size() ? times[task.name] : -1;
    if (wanted >= 0 && sum == 0) {
      task.steps.insert(task.steps.begin(), {Act::compute, 0, wanted});
      continue;
    }
    const double factor = wanted >= 0 ? static_cast<double>(wanted) / static_cast<double>(sum)
                                      : 1 / speed;
    if (factor == 1) continue;
    for (TaskStep& step : task.steps) {
      if (step.act != Act::compute) continue;
      step.amount = time_of(static_cast<double>(step.amount) * factor);
    }
  }
}

}  // namespace imbrex::simulate
