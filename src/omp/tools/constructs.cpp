// SPDX-License-Identifier: BSD-3-Clause
// Events of constructs and locks.
#include <cstring>
#include <utility>

#include "omp/tools/events.hpp"

namespace imbrex::omp::tools {

namespace {

Data* region_of(const TaskRecord& task) noexcept {
  return task.parallel != nullptr ? &task.parallel->data : nullptr;
}

template <Event event>
void emit_sync(ThreadRecord& thread, const Sync kind, const Endpoint endpoint) {
  TaskRecord& task = *thread.current;
  emit<event>(thread, kind, endpoint, region_of(task), &task.data, task.code);
}

void emit_work(ThreadRecord& thread, const Work kind, const Endpoint endpoint,
               const std::uint64_t count) {
  TaskRecord& task = *thread.current;
  emit<Event::work>(thread, kind, endpoint, region_of(task), &task.data, count, task.code);
}

void end_open_single(ThreadRecord& thread) {
  if (std::exchange(thread.current->in_single, false)) {
    emit_work(thread, Work::single_executor, Endpoint::end, 1);
  }
}

State waiting_for(const Sync kind) noexcept {
  switch (kind) {
    case Sync::barrier_explicit: return State::wait_barrier_explicit;
    case Sync::barrier_implementation: return State::wait_barrier_implementation;
    case Sync::taskwait: return State::wait_taskwait;
    case Sync::taskgroup: return State::wait_taskgroup;
    case Sync::reduction: return State::work_reduction;
    case Sync::barrier_workshare: return State::wait_barrier_workshare;
    case Sync::barrier_parallel: return State::wait_barrier_parallel;
  }
  return State::undefined;
}

State waiting_for(const Mutex kind) noexcept {
  switch (kind) {
    case Mutex::critical: return State::wait_critical;
    case Mutex::atomic: return State::wait_atomic;
    case Mutex::ordered: return State::wait_ordered;
    default: return State::wait_lock;
  }
}

State working(const ThreadRecord& thread) noexcept {
  return thread.current == &thread.outside ? State::work_serial : State::work_parallel;
}

std::uint64_t id_of(const void* const lock) noexcept {
  return reinterpret_cast<std::uintptr_t>(lock);
}

bool is_barrier(const Sync kind) noexcept {
  return kind != Sync::taskwait && kind != Sync::taskgroup && kind != Sync::reduction;
}

}  // namespace

void begin_sync(const Sync kind) {
  begin_sync_region(kind);
  begin_sync_wait(kind);
}

void begin_sync_region(const Sync kind) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  if (is_barrier(kind)) end_open_single(*thread);
  emit_sync<Event::sync_region>(*thread, kind, Endpoint::begin);
}

void begin_sync_wait(const Sync kind) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  thread->current->state = waiting_for(kind);
  emit_sync<Event::sync_region_wait>(*thread, kind, Endpoint::begin);
}

void end_sync(const Sync kind) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  emit_sync<Event::sync_region_wait>(*thread, kind, Endpoint::end);
  thread->current->state = working(*thread);
  emit_sync<Event::sync_region>(*thread, kind, Endpoint::end);
}

void begin_reduction() {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  thread->current->state = State::work_reduction;
  emit_sync<Event::reduction>(*thread, Sync::reduction, Endpoint::begin);
}

void end_reduction() {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  emit_sync<Event::reduction>(*thread, Sync::reduction, Endpoint::end);
  thread->current->state = working(*thread);
}

void begin_loop(const Work kind, const std::uint64_t count) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  end_open_single(*thread);
  thread->current->loop = kind;
  thread->current->loop_count = count;
  emit_work(*thread, kind, Endpoint::begin, count);
}

void end_loop() {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  const Work kind = std::exchange(thread->current->loop, Work::none);
  if (kind == Work::none) return;
  emit_work(*thread, kind, Endpoint::end, thread->current->loop_count);
}

void begin_work(const Work kind, const std::uint64_t count) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  if (kind != Work::taskloop) end_open_single(*thread);
  emit_work(*thread, kind, Endpoint::begin, count);
}

void end_work(const Work kind, const std::uint64_t count) {
  if (ThreadRecord* const thread = listener()) emit_work(*thread, kind, Endpoint::end, count);
}

void begin_open_single() {
  begin_work(Work::single_executor, 1);
  if (ThreadRecord* const thread = listener()) thread->current->in_single = true;
}

void begin_part(const unsigned flags, const std::uint64_t first, const std::uint64_t count) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  thread->current->next_flags = flags;
  thread->current->part = {first, count};
}

void dispatch_chunk(const Dispatch kind, const std::uint64_t first, const std::uint64_t count) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  TaskRecord& task = *thread->current;
  Iterations chunk{first, count};
  Data instance{};
  instance.pointer = &chunk;
  emit<Event::dispatch>(*thread, region_of(task), &task.data, kind, instance);
}

void dispatch_section() {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  TaskRecord& task = *thread->current;
  Data instance{};
  instance.pointer = const_cast<void*>(task.code);
  emit<Event::dispatch>(*thread, region_of(task), &task.data, Dispatch::section, instance);
}

void masked(const Endpoint endpoint) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  TaskRecord& task = *thread->current;
  emit<Event::masked>(*thread, endpoint, region_of(task), &task.data, task.code);
}

void cancel(const int flags) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  TaskRecord& task = *thread->current;
  emit<Event::cancel>(*thread, &task.data, flags, task.code);
}

void flush() {
  ThreadRecord* const thread = listener();
  if (thread != nullptr) emit<Event::flush>(*thread, &thread->data, thread->current->code);
}

void error(const bool is_fatal, const char* const message) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  emit<Event::error>(*thread, is_fatal ? 2 : 1, message, std::strlen(message),
                     thread->current->code);
}

int control(const int command, const int modifier, void* const argument) {
  constexpr int no_tool = -2, no_function = -1;
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return no_tool;
  const auto call = call_for<Event::control_tool>();
  if (call == nullptr) return no_function;
  ++thread->in_tool;
  const int answer = call(static_cast<std::uint64_t>(command), static_cast<std::uint64_t>(modifier),
                          argument, thread->current->code);
  --thread->in_tool;
  return answer;
}

// ---- locks -------------------------------------------------------------------------------------

namespace {
constexpr unsigned implementation = 1;  // its name: queries.cpp
}  // namespace

void init_lock(const Mutex kind, const void* const lock, const unsigned hint) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  emit<Event::lock_init>(*thread, kind, hint, implementation, id_of(lock), thread->current->code);
}

void destroy_lock(const Mutex kind, const void* const lock) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  emit<Event::lock_destroy>(*thread, kind, id_of(lock), thread->current->code);
}

void acquire(const Mutex kind, const void* const lock) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  thread->current->state = waiting_for(kind);
  thread->current->lock = id_of(lock);
  emit<Event::mutex_acquire>(*thread, kind, 0U, implementation, id_of(lock),
                             thread->current->code);
}

void acquired(const Mutex kind, const void* const lock) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  thread->current->state = working(*thread);
  emit<Event::mutex_acquired>(*thread, kind, id_of(lock), thread->current->code);
}

void released(const Mutex kind, const void* const lock) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  emit<Event::mutex_released>(*thread, kind, id_of(lock), thread->current->code);
}

void nest(const Endpoint endpoint, const void* const lock) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  emit<Event::nest_lock>(*thread, endpoint, id_of(lock), thread->current->code);
}

}  // namespace imbrex::omp::tools
