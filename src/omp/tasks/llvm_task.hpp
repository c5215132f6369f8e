// SPDX-License-Identifier: BSD-3-Clause
// The tasks of LLVM's compilers. The compiler asks for the memory of a task, fills it in, and then
// submits the task: this memory is a block of its own, which is freed when the task has run. Used
// by llvm/tasks/, which creates tasks, and by tasks.cpp, which runs them.
//
// Thread safety: the creator of a block uses it until the task is submitted, then the task's thread
// does, except `references`.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "omp/tasks/tasks.hpp"

namespace imbrex::omp {

// The compiler's part of the memory, `kmp_task_t`; after it come private variables, and the
// addresses of shared ones.
struct LlvmTask {
  using Routine = std::int32_t (*)(std::int32_t thread, LlvmTask* task);
  union Word {
    std::int32_t priority;
    Routine destructors;
  };
  void* shareds;
  Routine routine;
  std::int32_t part;  // the compiler's: where an untied task continues
  Word first;
  Word second;
};

// The flags that the compiler passes for a task.
namespace llvm_flag {
inline constexpr std::int32_t tied = 1, final = 2, destructors = 8, proxy = 16, priority = 32,
                              detachable = 64;
}  // namespace llvm_flag
// As a tool hears of them.
[[nodiscard]] constexpr unsigned told_llvm_flags(const std::int32_t flags) noexcept {
  return (flags & llvm_flag::tied) == 0 ? tools::task_flag::untied : 0;
}

// Precedes the compiler's part.
struct alignas(16) LlvmBlock {
  std::size_t bytes = 0;
  std::size_t task_bytes = 0;         // of the compiler's part, without the shared addresses
  Detached* detached = nullptr;       // of detach(event), or of a proxy task
  Included* included = nullptr;       // while the compiler runs the task in place (if(0))
  std::int32_t flags = 0;
  std::atomic<std::int32_t> references{1};  // the task; and the completion of a proxy task, which
                                            // names the block
  bool runs = false;
  bool again = false;                 // an untied task has submitted itself

  [[nodiscard]] LlvmTask* task() noexcept { return reinterpret_cast<LlvmTask*>(this + 1); }
};
[[nodiscard]] inline LlvmBlock& block_of(LlvmTask* const task) noexcept {
  return *(reinterpret_cast<LlvmBlock*>(task) - 1);
}

[[nodiscard]] inline LlvmBlock& take_block(const std::size_t bytes) {
  auto& block = *::new (initial().blocks.take(bytes)) LlvmBlock;
  block.bytes = bytes;
  return block;
}
void drop_block(LlvmBlock& block) noexcept;
// Destroys private variables, if the task has some to destroy, and drops the block.
void end_block(LlvmBlock& block);

// Calls the compiler's function, unless the task is cancelled, and ends the block.
void run_block(LlvmBlock& block);
// The function of the tasks: their data is a pointer to an LlvmTask.
void run_llvm_task(void* data);
// The data of the task in `task`, a variable that is there until the task has been created.
[[nodiscard]] inline TaskData data_of(LlvmTask*& task) noexcept {
  return {&run_llvm_task, static_cast<void*>(&task), nullptr, sizeof task, alignof(LlvmTask*),
          true};
}
// The function that the compiler has made of the construct.
[[nodiscard]] const void* llvm_routine(const void* data) noexcept;

}  // namespace imbrex::omp
