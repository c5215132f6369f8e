// SPDX-License-Identifier: BSD-3-Clause
// taskloop: a loop cut into tasks.
#include <algorithm>
#include <cstdint>

#include "omp/region/iterations.hpp"
#include "omp/tasks/reductions.hpp"
#include "omp/tasks/tasks.hpp"

namespace imbrex::omp {

namespace {

// Bounds of a task, which the compiler's code finds in the first words of its data.
struct Bounds {
  std::uint64_t start, end;
};
void set_bounds(void* const data, const void* const bounds) {
  *static_cast<Bounds*>(data) = *static_cast<const Bounds*>(bounds);
}

// The number of tasks for `count` iterations: by the clause grainsize, which asks for at least this
// many iterations in each task (strict: exactly, except in the last task), or by num_tasks.
struct Cut {
  std::uint64_t tasks;
  std::uint64_t each;  // iterations
  std::uint64_t more;  // number of tasks, the first ones, with one more iteration
};
Cut cut_of(const Context& context, const std::uint64_t count, const unsigned flags,
           const std::uint64_t clause) {
  if ((flags & task_flag::grainsize) != 0) {
    const std::uint64_t grain = std::max<std::uint64_t>(clause, 1);
    if ((flags & task_flag::strict) != 0) return {(count - 1) / grain + 1, grain, 0};
    const std::uint64_t tasks = std::max<std::uint64_t>(count / grain, 1);
    return {tasks, count / tasks, count % tasks};
  }
  const std::uint64_t wanted =
      clause != 0 ? clause : static_cast<std::uint64_t>(context.team->size);
  const std::uint64_t tasks = std::min(count, wanted);
  return {tasks, count / tasks, count % tasks};
}

void create_tasks(Context& context, const TaskData& data, const unsigned flags,
                  const std::uint64_t clause, const int priority, const Iterations& loop) {
  const Cut cut = cut_of(context, loop.count, flags, clause);
  const TaskClauses clauses{.is_final = (flags & task_flag::final) != 0,
                            .priority = (flags & task_flag::priority) != 0 ? priority : 0};
  const bool deferrable = (flags & task_flag::if_clause) != 0;
  std::uint64_t begin = 0;
  for (std::uint64_t task = 0; task < cut.tasks; ++task) {
    const std::uint64_t wanted = cut.each + (task < cut.more ? 1 : 0);
    const std::uint64_t end = begin + std::min(wanted, loop.count - begin);
    const Bounds bounds{loop.value(begin), loop.value(end)};
    if (tools::on()) [[unlikely]] {
      tools::begin_part(told_flags(flags), bounds.start, end - begin);
    }
    begin_task(context, data, clauses, deferrable, &set_bounds, &bounds);
    begin = end;
  }
}

// The beginning of the compiler's data if there are reductions.
struct Head {
  std::uint64_t start, end;
  std::uintptr_t* reductions;
};

void taskloop(const TaskData& data, const unsigned flags, const std::uint64_t clause,
              const int priority, const Iterations& loop) {
  Context& context = current();
  if (is_cancelled(context)) return;
  const bool grouped = (flags & task_flag::nogroup) == 0;
  if (loop.count == 0 && !grouped) return;
  if (grouped) (void)begin_taskgroup(context);
  if (tools::on()) [[unlikely]] tools::begin_work(tools::Work::taskloop, loop.count);
  if (grouped && (flags & task_flag::reduction) != 0) {
    std::uintptr_t* const reductions = static_cast<Head*>(data.data)->reductions;
    allocate_reductions(reductions, context.team->size);
    context.taskgroup->reductions.push_back(reductions);
  }
  if (loop.count != 0) create_tasks(context, data, flags, clause, priority, loop);
  if (tools::on()) [[unlikely]] tools::end_work(tools::Work::taskloop, loop.count);
  if (grouped) end_taskgroup(context);
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

void GOMP_taskloop(Function function, void* data, void (*copy)(void*, void*), long bytes,
                   long alignment, unsigned flags, unsigned long clause, int priority, long start,
                   long end, long step) {
  tools::entered();
  taskloop({function, data, copy, bytes, alignment}, flags, clause, priority,
           iterations_of(start, end, step));
}

void GOMP_taskloop_ull(Function function, void* data, void (*copy)(void*, void*), long bytes,
                       long alignment, unsigned flags, unsigned long clause, int priority,
                       Ull start, Ull end, Ull step) {
  tools::entered();
  taskloop({function, data, copy, bytes, alignment}, flags, clause, priority,
           iterations_of((flags & task_flag::up) != 0, start, end, step));
}

}
#pragma GCC visibility pop
