// SPDX-License-Identifier: BSD-3-Clause
// OMPT, the interface of OpenMP 5.2 (chapter 19) for tools, as far as imbrex has it: the standard's
// values, structures and functions. The names are imbrex's; the layout is the standard's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace imbrex::omp::tools {

// A word of the tool, for a thread, a region, or a task.
union Data {
  std::uint64_t value;
  void* pointer;
};

struct Frame {
  Data exit{};   // where the runtime calls the task's code
  Data enter{};  // where the task's code has called the runtime; null: it has not
  int exit_flags = 0;
  int enter_flags = 0;
};
namespace frame_flag {
inline constexpr int runtime = 0, canonical_address = 0x10, frame_pointer = 0x20;
}  // namespace frame_flag

enum class Event : int {
  thread_begin = 1, thread_end = 2, parallel_begin = 3, parallel_end = 4, task_create = 5,
  task_schedule = 6, implicit_task = 7, control_tool = 11, sync_region_wait = 16,
  mutex_released = 17, dependences = 18, task_dependence = 19, work = 20, masked = 21,
  sync_region = 23, lock_init = 24, lock_destroy = 25, mutex_acquire = 26, mutex_acquired = 27,
  nest_lock = 28, flush = 29, cancel = 30, reduction = 31, dispatch = 32, error = 37
};
inline constexpr int events_end = 38;  // above all events of the standard

enum class SetResult : int { error = 0, never = 1, sometimes = 3, always = 5 };
enum class ThreadKind : int { initial = 1, worker = 2 };
enum class Endpoint : int { begin = 1, end = 2 };
enum class Sync : int {
  barrier_explicit = 3, barrier_implementation = 4, taskwait = 5, taskgroup = 6, reduction = 7,
  barrier_workshare = 8, barrier_parallel = 9
};
enum class Work : int {
  none = 0, sections = 2, single_executor = 3, single_other = 4, distribute = 6, taskloop = 7,
  scope = 8, loop_static = 10, loop_dynamic = 11, loop_guided = 12, loop_other = 13
};
enum class Dispatch : int { section = 2, loop_chunk = 3, taskloop_chunk = 4 };
enum class Mutex : int {
  lock = 1, test_lock = 2, nest_lock = 3, test_nest_lock = 4, critical = 5, atomic = 6, ordered = 7
};
enum class Status : int {
  complete = 1, yield = 2, cancel = 3, detach = 4, early_fulfill = 5, late_fulfill = 6,
  change = 7, taskwait_complete = 8
};
enum class DependKind : int {
  in = 1, out = 2, inout = 3, mutexinoutset = 4, inoutset = 7, out_all_memory = 34
};
enum class State : int {
  work_serial = 0x000, work_parallel = 0x001, work_reduction = 0x002,
  wait_barrier_parallel = 0x011, wait_barrier_workshare = 0x012, wait_barrier_explicit = 0x014,
  wait_barrier_implementation = 0x015, wait_taskwait = 0x020, wait_taskgroup = 0x021,
  wait_lock = 0x041, wait_critical = 0x042, wait_atomic = 0x043, wait_ordered = 0x044,
  undefined = 0x102
};

namespace task_flag {
inline constexpr unsigned initial = 1, implicit = 2, is_explicit = 4, taskwait = 0x10,
                          undeferred = 0x08000000, untied = 0x10000000, final = 0x20000000,
                          mergeable = 0x40000000;
}  // namespace task_flag
namespace parallel_flag {
inline constexpr unsigned by_program = 1, by_runtime = 2, team = 0x80000000;
}  // namespace parallel_flag
namespace cancel_flag {
inline constexpr int parallel = 1, sections = 2, loop = 4, taskgroup = 8, activated = 0x10,
                     detected = 0x20, discarded_task = 0x40;
}  // namespace cancel_flag

struct Dependence {
  Data variable;
  DependKind kind;
};
struct Iterations {
  std::uint64_t first;
  std::uint64_t count;
};

using AnyFunction = void (*)();
using Lookup = AnyFunction (*)(const char* name);
struct StartResult {
  int (*initialize)(Lookup lookup, int initial_device, Data* tool_data);
  void (*finalize)(Data* tool_data);
  Data tool_data;
};

// The type of the tool's function for an event.
template <Event event>
struct CallOf;
template <>
struct CallOf<Event::thread_begin> {
  using Type = void (*)(ThreadKind kind, Data* thread);
};
template <>
struct CallOf<Event::thread_end> {
  using Type = void (*)(Data* thread);
};
template <>
struct CallOf<Event::parallel_begin> {
  using Type = void (*)(Data* task, const Frame* frame, Data* parallel, unsigned requested,
                        unsigned flags, const void* code);
};
template <>
struct CallOf<Event::parallel_end> {
  using Type = void (*)(Data* parallel, Data* task, unsigned flags, const void* code);
};
template <>
struct CallOf<Event::task_create> {
  using Type = void (*)(Data* task, const Frame* frame, Data* created, unsigned flags,
                        int has_dependences, const void* code);
};
template <>
struct CallOf<Event::task_schedule> {
  using Type = void (*)(Data* prior, Status status, Data* next);
};
template <>
struct CallOf<Event::implicit_task> {
  using Type = void (*)(Endpoint endpoint, Data* parallel, Data* task, unsigned size,
                        unsigned number, unsigned flags);
};
template <>
struct CallOf<Event::control_tool> {
  using Type = int (*)(std::uint64_t command, std::uint64_t modifier, void* argument,
                       const void* code);
};
template <>
struct CallOf<Event::sync_region> {
  using Type = void (*)(Sync kind, Endpoint endpoint, Data* parallel, Data* task,
                        const void* code);
};
template <>
struct CallOf<Event::sync_region_wait> : CallOf<Event::sync_region> {};
template <>
struct CallOf<Event::reduction> : CallOf<Event::sync_region> {};
template <>
struct CallOf<Event::mutex_released> {
  using Type = void (*)(Mutex kind, std::uint64_t lock, const void* code);
};
template <>
struct CallOf<Event::mutex_acquired> : CallOf<Event::mutex_released> {};
template <>
struct CallOf<Event::lock_destroy> : CallOf<Event::mutex_released> {};
template <>
struct CallOf<Event::mutex_acquire> {
  using Type = void (*)(Mutex kind, unsigned hint, unsigned implementation, std::uint64_t lock,
                        const void* code);
};
template <>
struct CallOf<Event::lock_init> : CallOf<Event::mutex_acquire> {};
template <>
struct CallOf<Event::nest_lock> {
  using Type = void (*)(Endpoint endpoint, std::uint64_t lock, const void* code);
};
template <>
struct CallOf<Event::dependences> {
  using Type = void (*)(Data* task, const Dependence* first, int count);
};
template <>
struct CallOf<Event::task_dependence> {
  using Type = void (*)(Data* before, Data* after);
};
template <>
struct CallOf<Event::work> {
  using Type = void (*)(Work kind, Endpoint endpoint, Data* parallel, Data* task,
                        std::uint64_t count, const void* code);
};
template <>
struct CallOf<Event::masked> {
  using Type = void (*)(Endpoint endpoint, Data* parallel, Data* task, const void* code);
};
template <>
struct CallOf<Event::flush> {
  using Type = void (*)(Data* thread, const void* code);
};
template <>
struct CallOf<Event::cancel> {
  using Type = void (*)(Data* task, int flags, const void* code);
};
template <>
struct CallOf<Event::dispatch> {
  using Type = void (*)(Data* parallel, Data* task, Dispatch kind, Data instance);
};
template <>
struct CallOf<Event::error> {
  using Type = void (*)(int severity, const char* message, std::size_t length, const void* code);
};

}  // namespace imbrex::omp::tools
