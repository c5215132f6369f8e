// SPDX-License-Identifier: BSD-3-Clause
// What happens to threads, regions and tasks, for the tool. A construct calls these functions if
// on() says that there may be a tool; they do nothing if there is none. They are about the running
// task, unless a task is given.
//
// Why a task's record is the right one after a suspension: each thread knows the task that it runs
// (ThreadRecord::current). The runtime says when a task leaves its stack and when it goes on
// (leave(), resume()). The tool hears of a switch when the thread begins another task, or goes on
// with one; a thread without work stays in the task that has left last.
//
// Thread safety: a thread calls them for what it does itself.
#pragma once

#include <cstdint>
#include <span>

#include "omp/tools/ompt.hpp"
#include "omp/tools/records.hpp"
#include "omp/tools/tool.hpp"

namespace imbrex::omp::tools {

// A call of a function of a face: where it returns to, and where the frame of its caller ends.
struct Call {
  const void* code;
  void* frame;
};
// The call of the function that this is inlined into.
[[nodiscard, gnu::always_inline]] inline Call this_call() noexcept {
  return {__builtin_return_address(0), __builtin_dwarf_cfa()};
}
// The running task has called the runtime. Each function of a face that has events calls it first.
// Where every instruction counts, the function of the face asks on() alone, and jumps to another
// function for the tool: that needs no register of the usual way.
void enter(Call call);
[[gnu::always_inline]] inline void entered() {
  if (on()) [[unlikely]] enter(this_call());
}
// enter() for a function that creates a task with these of task_flag.
void enter_task(Call call, unsigned flags);
[[gnu::always_inline]] inline void entered_task(const unsigned flags) {
  if (on()) [[unlikely]] enter_task(this_call(), flags);
}

// ---- threads and tasks -------------------------------------------------------------------------

// The runtime tells of the calling thread's switches from now on: its present task leaves its
// stack, and a task goes on (null: the code outside of all regions).
void leave(bool gives_way) noexcept;
void resume(TaskRecord* task) noexcept;

// The running task creates a task.
[[nodiscard]] TaskRecord* create_task(unsigned flags, std::span<const Dependence> dependences);
// It begins, and ends. Null: the tool has not heard of it.
void begin_task(TaskRecord* task, int number);
void end_task(TaskRecord* task, Status status);
// The event of a task with detach is fulfilled.
void fulfill(TaskRecord* task);
// An empty task with dependences has been waited for, or will not be waited for.
void end_taskwait(TaskRecord* task);

// Calls function(data), a function that the compiler has made of the running task.
void call(void (*function)(void*), void* data);
// Where the frame of such a call is noted.
[[nodiscard]] void** exit_frame() noexcept;

// ---- regions -----------------------------------------------------------------------------------

void begin_parallel(ParallelRecord& region, unsigned requested, unsigned flags);
// The running task is the region's creator again; `code` is where the end of the region was called.
void end_parallel(ParallelRecord& region, const void* code);
[[nodiscard]] TaskRecord* begin_implicit(ParallelRecord& region, int size, int number);
// Its code is over, and its last barrier begins; that barrier has ended, and with it the task.
void end_code();
// Returns where the end of the region was called.
const void* end_implicit(int size);

// ---- constructs --------------------------------------------------------------------------------

void begin_sync(Sync kind);
void end_sync(Sync kind);
void begin_sync_region(Sync kind);  // without a wait
void begin_sync_wait(Sync kind);
void begin_reduction();
void end_reduction();
// A loop or sections: the running task has one at a time. The end of any other is given the kind.
void begin_loop(Work kind, std::uint64_t count);
void end_loop();
[[gnu::always_inline]] inline void end_loop_here() {
  if (!on()) [[likely]] return;
  enter(this_call());
  end_loop();
}
void begin_work(Work kind, std::uint64_t count);
void end_work(Work kind, std::uint64_t count);
// The runtime is not told of this single's end: the next barrier, loop or single ends it.
void begin_open_single();
// The next task that the running one creates is a part of a taskloop.
void begin_part(unsigned flags, std::uint64_t first, std::uint64_t count);
void dispatch_chunk(Dispatch kind, std::uint64_t first, std::uint64_t count);
void dispatch_section();
void masked(Endpoint endpoint);
void cancel(int flags);
void flush();
void error(bool is_fatal, const char* message);
[[nodiscard]] int control(int command, int modifier, void* argument);

// ---- locks -------------------------------------------------------------------------------------

void init_lock(Mutex kind, const void* lock, unsigned hint);
void destroy_lock(Mutex kind, const void* lock);
void acquire(Mutex kind, const void* lock);
void acquired(Mutex kind, const void* lock);
void released(Mutex kind, const void* lock);
// The owner of a nestable lock takes it once more, or gives it back but for the last time.
void nest(Endpoint endpoint, const void* lock);

}  // namespace imbrex::omp::tools
