// SPDX-License-Identifier: BSD-3-Clause
// taskloop as LLVM's compilers call it: they pass one task, of which each part of the loop gets a
// copy with its own bounds.
#include <algorithm>
#include <cstdint>
#include <cstring>

#include "omp/region/ident.hpp"
#include "omp/tasks/llvm_task.hpp"
#include "omp/tasks/tasks.hpp"

namespace imbrex::omp {

namespace {

// Copies private variables that need it; `last`: the copy runs the last iteration.
using Copy = void (*)(LlvmTask* to, LlvmTask* from, std::int32_t last);

struct Loop {
  const Ident* where;
  LlvmTask* task;
  std::uint64_t* lower;  // in the compiler's part of the task; both bounds are inclusive
  std::uint64_t* upper;
  std::int64_t step;
  Copy copy;
  bool deferrable;
};

// The number of iterations for each task: `sched` says what the clause gives.
struct Cut {
  std::uint64_t tasks;
  std::uint64_t each;
  std::uint64_t more;  // number of tasks, the first ones, with one more iteration
};
Cut cut_of(const std::uint64_t count, const int sched, const std::uint64_t clause,
           const bool strict) {
  constexpr int grainsize = 1, num_tasks = 2;
  constexpr std::uint64_t by_default = 10;  // tasks for each thread, as LLVM
  const std::uint64_t given = std::max<std::uint64_t>(clause, 1);
  if (sched == grainsize && strict) return {(count - 1) / given + 1, std::min(given, count), 0};
  std::uint64_t tasks = static_cast<std::uint64_t>(current().team->size) * by_default;
  if (sched == num_tasks) tasks = given;
  if (sched == grainsize) tasks = count / std::min(given, count);
  tasks = std::min(tasks, count);
  return {tasks, count / tasks, count % tasks};
}

// A copy of the task for the iterations from `lower` to `upper`.
LlvmTask& clone(const Loop& loop, const std::uint64_t lower, const std::uint64_t upper,
                const bool last) {
  LlvmBlock& from = block_of(loop.task);
  LlvmBlock& block = take_block(from.bytes);
  block.task_bytes = from.task_bytes;
  block.flags = from.flags;
  LlvmTask* const task = block.task();
  std::memcpy(static_cast<void*>(task), loop.task, from.bytes - sizeof(LlvmBlock));
  const auto inside = [&](const void* const address) {
    return reinterpret_cast<std::byte*>(task) +
           (static_cast<const std::byte*>(address) - reinterpret_cast<std::byte*>(loop.task));
  };
  if (task->shareds != nullptr) task->shareds = inside(task->shareds);
  *reinterpret_cast<std::uint64_t*>(inside(loop.lower)) = lower;
  *reinterpret_cast<std::uint64_t*>(inside(loop.upper)) = upper;
  if (loop.copy != nullptr) loop.copy(task, loop.task, last ? 1 : 0);
  return *task;
}

void create_tasks(const Loop& loop, const std::uint64_t count, const Cut& cut) {
  Context& context = current();
  const std::int32_t flags = block_of(loop.task).flags;
  const TaskClauses clauses{
      .is_final = (flags & llvm_flag::final) != 0,
      .priority = (flags & llvm_flag::priority) != 0 ? loop.task->second.priority : 0,
      .where = loop.where};
  const std::uint64_t first = *loop.lower;
  const auto step = static_cast<std::uint64_t>(loop.step);
  std::uint64_t begin = 0;
  for (std::uint64_t index = 0; index < cut.tasks; ++index) {
    const std::uint64_t end =
        std::min(begin + cut.each + (index < cut.more ? 1 : 0), count);
    LlvmTask* task = &clone(loop, first + begin * step, first + (end - 1) * step, end == count);
    if (tools::on()) [[unlikely]] {
      tools::begin_part(told_llvm_flags(flags), first + begin * step, end - begin);
    }
    begin_task(context, data_of(task), clauses, loop.deferrable, nullptr, nullptr);
    begin = end;
  }
}

void run(const Loop& loop, const bool grouped, const int sched, const std::uint64_t clause,
         const bool strict) {
  Context& context = current();
  if (grouped) (void)begin_taskgroup(context);
  const auto lower = static_cast<std::int64_t>(*loop.lower);
  const auto upper = static_cast<std::int64_t>(*loop.upper);
  std::uint64_t count = 0;
  const auto step = static_cast<std::uint64_t>(loop.step);
  if (loop.step > 0 && upper >= lower) count = (*loop.upper - *loop.lower) / step + 1;
  if (loop.step < 0 && lower >= upper) count = (*loop.lower - *loop.upper) / -step + 1;
  if (tools::on()) [[unlikely]] tools::begin_work(tools::Work::taskloop, count);
  if (count != 0) create_tasks(loop, count, cut_of(count, sched, clause, strict));
  end_block(block_of(loop.task));
  if (tools::on()) [[unlikely]] tools::end_work(tools::Work::taskloop, count);
  if (grouped) end_taskgroup(current());
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

void __kmpc_taskloop(const Ident* where, std::int32_t, LlvmTask* task, std::int32_t condition,
                     std::uint64_t* lower, std::uint64_t* upper, std::int64_t step,
                     std::int32_t no_group, std::int32_t sched, std::uint64_t clause, Copy copy) {
  tools::entered();
  run({where, task, lower, upper, step, copy, condition != 0}, no_group == 0, sched, clause, false);
}
void __kmpc_taskloop_5(const Ident* where, std::int32_t, LlvmTask* task, std::int32_t condition,
                       std::uint64_t* lower, std::uint64_t* upper, std::int64_t step,
                       std::int32_t no_group, std::int32_t sched, std::uint64_t clause,
                       std::int32_t modifier, Copy copy) {
  tools::entered();
  run({where, task, lower, upper, step, copy, condition != 0}, no_group == 0, sched, clause,
      modifier != 0);
}

}
#pragma GCC visibility pop
