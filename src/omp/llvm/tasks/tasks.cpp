// SPDX-License-Identifier: BSD-3-Clause
// Explicit tasks as LLVM's compilers call them. All are tied: an untied task submits itself again
// at a scheduling point and returns, and then continues on its thread.
#include <atomic>
#include <cstdint>
#include <span>

#include "imbrex/detail/waist.hpp"
#include "omp/environment/fatal.hpp"
#include "omp/region/ident.hpp"
#include "omp/region/team.hpp"
#include "omp/tasks/llvm_task.hpp"
#include "omp/tasks/tasks.hpp"

namespace imbrex::omp {

namespace {

std::span<const LlvmDepend> list_of(const std::int32_t count, const LlvmDepend* const first) {
  return count > 0 ? std::span(first, static_cast<std::size_t>(count))
                   : std::span<const LlvmDepend>{};
}

// Submits a task. One that is running is untied and has more to do.
void submit(const Ident* const where, LlvmTask* task, const Depends& depend) {
  LlvmBlock& block = block_of(task);
  if (block.runs) {
    block.again = true;
    return;
  }
  begin_task(current(), data_of(task),
             {.is_final = (block.flags & llvm_flag::final) != 0,
              .priority = (block.flags & llvm_flag::priority) != 0 ? task->second.priority : 0,
              .depend = depend,
              .detached = block.detached,
              .where = where},
             true, nullptr, nullptr);
}

[[gnu::cold, gnu::noinline]] void submit_heard(const Ident* const where, LlvmTask* const task,
                                               const tools::Call call) {
  tools::enter_task(call, told_llvm_flags(block_of(task).flags));
  submit(where, task, {});
}

bool is_plain(const LlvmBlock& block) noexcept {
  constexpr std::int32_t with_clauses = llvm_flag::final | llvm_flag::priority;
  return !block.runs && (block.flags & with_clauses) == 0 && block.detached == nullptr;
}

// `call`: of the face's function.
[[gnu::always_inline]] inline void submit_without_depend(const Ident* const where,
                                                         LlvmTask* const task,
                                                         const tools::Call call) {
  if (tools::on()) [[unlikely]] return submit_heard(where, task, call);
  if (is_plain(block_of(task))) [[likely]] return begin_plain(*task, where);
  submit(where, task, {});
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

LlvmTask* __kmpc_omp_task_alloc(const Ident*, std::int32_t, std::int32_t flags,
                                std::size_t task_bytes, std::size_t shared_bytes,
                                LlvmTask::Routine routine) {
  const std::size_t aligned = (task_bytes + alignof(void*) - 1) & ~(alignof(void*) - 1);
  LlvmBlock& block = take_block(sizeof(LlvmBlock) + aligned + shared_bytes);
  block.task_bytes = aligned;
  block.flags = flags;
  LlvmTask* const task = block.task();
  std::byte* const end = reinterpret_cast<std::byte*>(task) + aligned;
  task->shareds = shared_bytes != 0 ? end : nullptr;
  task->routine = routine;
  task->part = 0;
  if ((flags & llvm_flag::proxy) != 0) {
    block.detached = new Detached;
    block.references.store(2, std::memory_order_relaxed);
  }
  return task;
}

LlvmTask* __kmpc_omp_target_task_alloc(const Ident* where, std::int32_t thread,
                                       std::int32_t flags, std::size_t task_bytes,
                                       std::size_t shared_bytes, LlvmTask::Routine routine,
                                       std::int64_t) {
  return __kmpc_omp_task_alloc(where, thread, flags, task_bytes, shared_bytes, routine);
}

std::int32_t __kmpc_omp_task(const Ident* where, std::int32_t, LlvmTask* task) {
  submit_without_depend(where, task, tools::this_call());
  return 0;
}
std::int32_t __kmpc_omp_task_parts(const Ident* where, std::int32_t, LlvmTask* task) {
  submit_without_depend(where, task, tools::this_call());
  return 0;
}
std::int32_t __kmpc_omp_task_with_deps(const Ident* where, std::int32_t, LlvmTask* task,
                                       std::int32_t count, const LlvmDepend* depends,
                                       std::int32_t more, const LlvmDepend* more_depends) {
  tools::entered_task(told_llvm_flags(block_of(task).flags));
  submit(where, task, {.llvm = {list_of(count, depends), list_of(more, more_depends)}});
  return 0;
}

// Between these two the compiler runs the task in place.
void __kmpc_omp_task_begin_if0(const Ident*, std::int32_t, LlvmTask* task) {
  tools::entered_task(told_llvm_flags(block_of(task).flags));
  LlvmBlock& block = block_of(task);
  block.runs = true;
  block.included = begin_included(current(), (block.flags & llvm_flag::final) != 0).release();
}
void __kmpc_omp_task_complete_if0(const Ident*, std::int32_t, LlvmTask* task) {
  LlvmBlock& block = block_of(task);
  end_included(*block.included);
  delete block.included;
  end_block(block);
}

void __kmpc_omp_wait_deps(const Ident*, std::int32_t, std::int32_t count,
                          const LlvmDepend* depends, std::int32_t more,
                          const LlvmDepend* more_depends) {
  if (count + more == 0) return;
  tools::entered();
  taskwait_depend(current(), {.llvm = {list_of(count, depends), list_of(more, more_depends)}});
}
void __kmpc_omp_taskwait_deps_51(const Ident*, std::int32_t, std::int32_t count,
                                 const LlvmDepend* depends, std::int32_t more,
                                 const LlvmDepend* more_depends, std::int32_t no_wait) {
  if (count + more == 0) return;
  tools::entered();
  const Depends all{.llvm = {list_of(count, depends), list_of(more, more_depends)}};
  if (no_wait == 0) {
    taskwait_depend(current(), all);
  } else {
    defer_empty(current(), all);
  }
}

std::int32_t __kmpc_omp_taskwait(const Ident*, std::int32_t) {
  tools::entered();
  taskwait();
  return 0;
}
std::int32_t __kmpc_omp_taskyield(const Ident*, std::int32_t, std::int32_t) {
  tools::entered();
  taskyield();
  return 0;
}

void __kmpc_taskgroup(const Ident*, std::int32_t) {
  tools::entered();
  (void)begin_taskgroup(current());
}

void* __kmpc_task_allow_completion_event(const Ident*, std::int32_t, LlvmTask* task) {
  LlvmBlock& block = block_of(task);
  if (block.detached == nullptr) block.detached = new Detached;
  return block.detached;
}
// The work of a proxy task, which another thread may do, has ended.
void __kmpc_proxy_task_completed(std::int32_t, LlvmTask* task) {
  LlvmBlock& block = block_of(task);
  fulfill(*block.detached);
  drop_block(block);
}
void __kmpc_proxy_task_completed_ooo(LlvmTask* task) { __kmpc_proxy_task_completed(0, task); }

// The values that GCC's ABI has are 1, 2, 4, 8.
std::int32_t __kmpc_cancel(const Ident*, std::int32_t, std::int32_t kind) {
  tools::entered();
  return kind > 0 && cancel(1 << (kind - 1)) ? 1 : 0;
}
std::int32_t __kmpc_cancellationpoint(const Ident*, std::int32_t, std::int32_t kind) {
  tools::entered();
  return kind > 0 && is_cancelled_at(1 << (kind - 1)) ? 1 : 0;
}

// The affinity clause is a hint.
std::int32_t __kmpc_omp_reg_task_with_affinity(const Ident*, std::int32_t, LlvmTask*, std::int32_t,
                                               void*) {
  return 0;
}
bool __kmpc_omp_has_task_team(std::int32_t) { return current().team->group != nullptr; }
std::uint64_t __kmpc_get_taskid() { return reinterpret_cast<std::uintptr_t>(&current()); }
std::uint64_t __kmpc_get_parent_taskid() { return 0; }
void* __kmpc_omp_get_target_async_handle_ptr(std::int32_t) { return nullptr; }

}
#pragma GCC visibility pop
