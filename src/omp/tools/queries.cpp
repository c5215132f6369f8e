// SPDX-License-Identifier: BSD-3-Clause
// What a tool may ask, and set.
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <vector>

#include "omp/tools/tool.hpp"

extern "C" {

int omp_get_num_procs();
int omp_get_num_places();
int omp_get_place_num_procs(int place);
void omp_get_place_proc_ids(int place, int* ids);
int omp_get_place_num();
int omp_get_partition_num_places();
void omp_get_partition_place_nums(int* places);

}

namespace imbrex::omp::tools {

namespace {

struct Named {
  int value;
  const char* name;
};

constexpr Named states[] = {
    {0x102, "ompt_state_undefined"},
    {0x000, "ompt_state_work_serial"},
    {0x001, "ompt_state_work_parallel"},
    {0x002, "ompt_state_work_reduction"},
    {0x011, "ompt_state_wait_barrier_implicit_parallel"},
    {0x012, "ompt_state_wait_barrier_implicit_workshare"},
    {0x014, "ompt_state_wait_barrier_explicit"},
    {0x015, "ompt_state_wait_barrier_implementation"},
    {0x020, "ompt_state_wait_taskwait"},
    {0x021, "ompt_state_wait_taskgroup"},
    {0x041, "ompt_state_wait_lock"},
    {0x042, "ompt_state_wait_critical"},
    {0x043, "ompt_state_wait_atomic"},
    {0x044, "ompt_state_wait_ordered"},
};
constexpr Named locks[] = {{0, "imbrex_mutex_none"}, {1, "imbrex_mutex_suspending"}};

// The entry behind `current`; 0: there is none.
int enumerate(const std::span<const Named> all, const int current, int* const next,
              const char** const name) {
  const auto found = std::ranges::find(all, current, &Named::value);
  if (found == all.end() || found + 1 == all.end()) return 0;
  *next = found[1].value;
  *name = found[1].name;
  return 1;
}
int enumerate_states(const int current, int* const next, const char** const name) {
  return enumerate(states, current, next, name);
}
int enumerate_locks(const int current, int* const next, const char** const name) {
  return enumerate(locks, current, next, name);
}

// GCC expands some constructs to code that does not call the runtime, so not all of their events
// are seen.
SetResult result_for(const Event event) noexcept {
  switch (event) {
    case Event::work:
    case Event::masked:
    case Event::flush:
    case Event::reduction:
    case Event::dispatch:
    case Event::error: return SetResult::sometimes;
    case Event::thread_begin:
    case Event::thread_end:
    case Event::parallel_begin:
    case Event::parallel_end:
    case Event::task_create:
    case Event::task_schedule:
    case Event::implicit_task:
    case Event::control_tool:
    case Event::sync_region_wait:
    case Event::mutex_released:
    case Event::dependences:
    case Event::task_dependence:
    case Event::sync_region:
    case Event::lock_init:
    case Event::lock_destroy:
    case Event::mutex_acquire:
    case Event::mutex_acquired:
    case Event::nest_lock:
    case Event::cancel: return SetResult::always;
  }
  return SetResult::never;
}

bool is_event(const int event) noexcept { return event > 0 && event < events_end; }

SetResult set_callback(const int event, const AnyFunction function) {
  if (!is_event(event)) return SetResult::error;
  const SetResult result = result_for(static_cast<Event>(event));
  if (result == SetResult::never) return result;
  calls[static_cast<std::size_t>(event)].store(function, std::memory_order_release);
  return result;
}
int get_callback(const int event, AnyFunction* const function) {
  if (!is_event(event)) return 0;
  *function = calls[static_cast<std::size_t>(event)].load(std::memory_order_acquire);
  return *function != nullptr ? 1 : 0;
}

Data* get_thread_data() {
  ThreadRecord* const thread = known_thread();
  if (thread == nullptr) return nullptr;
  return thread->speaks_for != nullptr ? &thread->speaks_for->data : &thread->data;
}

int get_state(std::uint64_t* const lock) {
  const ThreadRecord* const thread = known_thread();
  if (thread == nullptr) return static_cast<int>(State::undefined);
  if (lock != nullptr) *lock = thread->current->lock;
  return static_cast<int>(thread->current->state);
}

// The answers of get_parallel_info() and get_task_info().
constexpr int no_such_level = 0, known = 2;

int get_parallel_info(int level, Data** const data, int* const size) {
  const ThreadRecord* const thread = known_thread();
  ParallelRecord* region = thread != nullptr ? thread->current->parallel : nullptr;
  for (; region != nullptr && level > 0; --level) {
    region = region->creator != nullptr ? region->creator->parallel : nullptr;
  }
  if (region == nullptr) return no_such_level;
  if (data != nullptr) *data = &region->data;
  if (size != nullptr) *size = region->size;
  return known;
}

// A task that asks outside of the tool's functions runs code of the program: its frame has no call
// of the runtime.
void forget_call(const ThreadRecord& thread) noexcept {
  if (thread.in_tool == 0) thread.current->frame.enter.pointer = nullptr;
}

// The task around `task`; null: none is known. A stack of its own is below the native one of its
// thread, which is known on that thread only.
const TaskRecord* around(const ThreadRecord& thread, const TaskRecord& task) noexcept {
  if (task.below != nullptr || task.is_native) return task.below;
  return task.thread == &thread ? thread.native : nullptr;
}

int get_task_info(int level, int* const flags, Data** const data, Frame** const frame,
                  Data** const parallel, int* const number) {
  const ThreadRecord* const thread = known_thread();
  const TaskRecord* task = thread != nullptr ? thread->current : nullptr;
  if (task != nullptr) forget_call(*thread);
  for (; task != nullptr && level > 0; --level) task = around(*thread, *task);
  if (task == nullptr) return no_such_level;
  if (flags != nullptr) *flags = static_cast<int>(task->flags);
  if (data != nullptr) *data = const_cast<Data*>(&task->data);
  if (frame != nullptr) *frame = const_cast<Frame*>(&task->frame);
  if (parallel != nullptr) *parallel = task->parallel != nullptr ? &task->parallel->data : nullptr;
  if (number != nullptr) *number = task->number;
  return known;
}

int get_task_memory(void** const address, std::size_t* const bytes, int) {
  *address = nullptr;
  *bytes = 0;
  return 0;  // no memory is told of
}

std::uint64_t get_unique_id() {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

// The numbers of `list`, as many as the tool has room for; returns how many there are.
int copy_to(const std::vector<int>& list, const int room, int* const numbers) {
  const auto count = std::min(list.size(), static_cast<std::size_t>(std::max(room, 0)));
  std::copy_n(list.begin(), count, numbers);
  return static_cast<int>(list.size());
}
int get_place_proc_ids(const int place, const int room, int* const ids) {
  if (place < 0 || place >= omp_get_num_places()) return 0;
  std::vector<int> processors(static_cast<std::size_t>(omp_get_place_num_procs(place)));
  omp_get_place_proc_ids(place, processors.data());
  return copy_to(processors, room, ids);
}
int get_partition_place_nums(const int room, int* const numbers) {
  if (known_thread() == nullptr) return 0;
  std::vector<int> places(static_cast<std::size_t>(omp_get_partition_num_places()));
  omp_get_partition_place_nums(places.data());
  return copy_to(places, room, numbers);
}
int get_place_num() { return known_thread() != nullptr ? omp_get_place_num() : -1; }
int get_proc_id() { return known_thread() != nullptr ? sched_getcpu() : -1; }

int get_target_info(std::uint64_t*, std::uint64_t*, std::uint64_t*) { return 0; }  // no region
int get_num_devices() { return 0; }

template <class Function>
AnyFunction any(Function* const function) noexcept {
  return reinterpret_cast<AnyFunction>(function);
}

struct Entry {
  const char* name;
  AnyFunction function;
};

}  // namespace

AnyFunction look_up(const char* const name) {
  static const Entry entries[] = {
      {"ompt_set_callback", any(&set_callback)},
      {"ompt_get_callback", any(&get_callback)},
      {"ompt_get_thread_data", any(&get_thread_data)},
      {"ompt_get_parallel_info", any(&get_parallel_info)},
      {"ompt_get_task_info", any(&get_task_info)},
      {"ompt_get_task_memory", any(&get_task_memory)},
      {"ompt_get_state", any(&get_state)},
      {"ompt_enumerate_states", any(&enumerate_states)},
      {"ompt_enumerate_mutex_impls", any(&enumerate_locks)},
      {"ompt_get_unique_id", any(&get_unique_id)},
      {"ompt_get_num_procs", any(&omp_get_num_procs)},
      {"ompt_get_num_places", any(&omp_get_num_places)},
      {"ompt_get_place_proc_ids", any(&get_place_proc_ids)},
      {"ompt_get_place_num", any(&get_place_num)},
      {"ompt_get_partition_place_nums", any(&get_partition_place_nums)},
      {"ompt_get_proc_id", any(&get_proc_id)},
      {"ompt_get_target_info", any(&get_target_info)},
      {"ompt_get_num_devices", any(&get_num_devices)},
      {"ompt_finalize_tool", any(&finish)},
  };
  for (const Entry& entry : entries) {
    if (std::strcmp(entry.name, name) == 0) return entry.function;
  }
  return nullptr;
}

}  // namespace imbrex::omp::tools
