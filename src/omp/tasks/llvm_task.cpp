// SPDX-License-Identifier: BSD-3-Clause
#include "omp/tasks/llvm_task.hpp"

namespace imbrex::omp {

namespace {

void drop(LlvmBlock& block, Initial& thread) noexcept {
  if (block.references.load(std::memory_order_acquire) != 1 &&
      block.references.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  thread.blocks.give(&block, block.bytes);
}

void end(LlvmBlock& block, Initial& thread) {
  LlvmTask* const task = block.task();
  if ((block.flags & llvm_flag::destructors) != 0) {
    (void)task->first.destructors(thread.thread, task);
  }
  drop(block, thread);
}

}  // namespace

void drop_block(LlvmBlock& block) noexcept { drop(block, initial()); }
void end_block(LlvmBlock& block) { end(block, initial()); }

namespace {

// A tool hears where the program's code was called.
[[gnu::cold, gnu::noinline]] void call_heard(LlvmTask& task, const int thread) {
  struct Call {
    LlvmTask& task;
    int thread;
  } made{task, thread};
  tools::call(
      [](void* const data) {
        const auto& call = *static_cast<const Call*>(data);
        *tools::exit_frame() = __builtin_frame_address(0);
        (void)call.task.routine(call.thread, &call.task);
        *tools::exit_frame() = nullptr;  // also: this is no jump to the routine
      },
      &made);
}

void call_routine(LlvmTask& task, const int thread) {
  if (tools::on()) [[unlikely]] return call_heard(task, thread);
  (void)task.routine(thread, &task);
}

}  // namespace

void run_block(LlvmBlock& block) {
  LlvmTask* const task = block.task();
  Initial& thread = initial();  // to the end: the task is tied
  const bool cancelled = settings().cancellation && is_cancelled(current());
  if (!cancelled && task->routine != nullptr) {  // null: a taskwait that does not wait
    block.runs = true;
    // The first part of an untied task does nothing but submit the rest. Other tasks have no turn
    // then: this thread would begin all of them, and none would be left for other threads.
    for (bool begun = false;; begun = true) {
      call_routine(*task, thread.thread);
      if (!block.again) break;
      block.again = false;
      if (begun) detail::yield();
    }
  }
  end(block, thread);
}

void run_llvm_task(void* const data) { run_block(block_of(*static_cast<LlvmTask**>(data))); }

const void* llvm_routine(const void* const data) noexcept {
  return reinterpret_cast<const void*>((*static_cast<LlvmTask* const*>(data))->routine);
}

}  // namespace imbrex::omp
