// SPDX-License-Identifier: BSD-3-Clause
// Regions and tasks, and which task each thread runs.
#include <utility>

#include "omp/tools/events.hpp"

// The beginning and the end of this library, which the linker defines.
extern "C" [[gnu::visibility("hidden")]] const char __ehdr_start[];
extern "C" [[gnu::visibility("hidden")]] const char _end[];

namespace imbrex::omp::tools {

namespace {

// `task` begins on top of the running one.
void put_on_top(ThreadRecord& thread, TaskRecord& task) noexcept {
  task.below = thread.current;
  task.is_native = thread.current->is_native;
  if (task.is_native) thread.native = &task;
  // Where the program itself runs the task, its code begins behind the call that has begun it.
  task.frame.exit = thread.current->frame.enter;
  task.frame.exit_flags = thread.current->frame.enter_flags;
}

// `task` ends: the thread is in the task below again, or, if the stack ends with the task, in what
// waits on its native stack, which stays as it is while other stacks have the thread. (A task of
// another stack may have ended since this one began.)
TaskRecord& go_below(ThreadRecord& thread, TaskRecord& task) noexcept {
  thread.left = task.below == nullptr;
  thread.current = task.below != nullptr ? task.below : thread.native;
  if (task.is_native) thread.native = thread.current;
  return *thread.current;
}

// A call that ends a function may be a jump, and then returns to the runtime: no place is known.
const void* in_program(const void* const code) noexcept {
  const auto* const at = static_cast<const char*>(code);
  return at >= __ehdr_start && at < _end ? nullptr : code;
}

// `task` runs now, on the thread of `thread`.
void change_to(ThreadRecord& thread, TaskRecord& task) {
  TaskRecord* const prior = std::exchange(thread.current, &task);
  const Status status = std::exchange(thread.left, false) ? prior->left_as : Status::change;
  emit<Event::task_schedule>(thread, &prior->data, status, &task.data);
}

// Tells of the children of `creator` that `task` must wait for.
void tell_pairs(ThreadRecord& thread, TaskRecord& creator, TaskRecord& task,
                const std::span<const Dependence> dependences) {
  if (call_for<Event::task_dependence>() == nullptr) return;
  if (creator.children == nullptr) creator.children = std::make_unique<Children>();
  for (const Dependence& dependence : dependences) {
    creator.children->add(task, dependence, [&](TaskRecord& before) {
      emit<Event::task_dependence>(thread, &before.data, &task.data);
    });
  }
}

}  // namespace

void drop(TaskRecord* const task) noexcept {
  if (task->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete task;
}

// ---- pairs of tasks ----------------------------------------------------------------------------

Children::~Children() {
  for (auto& [address, uses] : uses_) {
    for (TaskRecord* const task : uses.last) drop(task);
    for (TaskRecord* const task : uses.before) drop(task);
  }
}

void Children::follow(Uses& uses, TaskRecord& task, const DependKind kind) {
  const bool together = kind != DependKind::inout && kind != DependKind::out_all_memory;
  if (!together || kind != uses.kind) {
    for (TaskRecord* const old : uses.before) drop(old);
    uses.before = std::exchange(uses.last, {});
    uses.kind = kind;
  }
  task.owners.fetch_add(1, std::memory_order_relaxed);  // its creator has one
  uses.last.push_back(&task);
}

template <class Pair>
void Children::add(TaskRecord& task, const Dependence& dependence, Pair pair) {
  const auto tell = [&](const std::vector<TaskRecord*>& earlier) {
    for (TaskRecord* const before : earlier) {
      if (before != &task && !before->complete.load(std::memory_order_acquire)) pair(*before);
    }
  };
  if (dependence.kind == DependKind::out_all_memory) {
    for (auto& [address, uses] : uses_) tell(uses.last);
  } else if (const auto all = uses_.find(nullptr); all != uses_.end()) {
    tell(all->second.last);
  }
  Uses& uses = uses_[dependence.variable.pointer];
  follow(uses, task, dependence.kind);
  if (dependence.kind != DependKind::out_all_memory) tell(uses.before);
}

void enter(const Call call) { enter_task(call, 0); }

void enter_task(const Call call, const unsigned flags) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  TaskRecord& task = *thread->current;
  task.code = in_program(call.code);
  task.frame.enter.pointer = call.frame;
  task.frame.enter_flags = frame_flag::runtime | frame_flag::canonical_address;
  task.next_flags = flags;
}

// ---- threads and tasks -------------------------------------------------------------------------

void leave(const bool gives_way) noexcept {
  ThreadRecord* const thread = known_thread();
  if (thread == nullptr || !on()) return;
  thread->current->left_as = gives_way ? Status::yield : Status::change;
  thread->left = true;
}

void resume(TaskRecord* task) noexcept {
  ThreadRecord* const thread = known_thread();
  if (thread == nullptr || !on()) return;
  if (task == nullptr) task = &thread->outside;
  if (task == thread->current) {
    thread->left = false;
    return;
  }
  change_to(*thread, *task);
}

TaskRecord* create_task(const unsigned flags, const std::span<const Dependence> dependences) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return nullptr;
  TaskRecord& creator = *thread->current;
  auto* const task = new TaskRecord;
  task->parallel = creator.parallel;
  const bool is_taskwait = (flags & task_flag::taskwait) != 0;
  task->flags = flags | (is_taskwait ? 0 : task_flag::is_explicit) |
                std::exchange(creator.next_flags, 0U);
  task->part = std::exchange(creator.part, Iterations{});
  emit<Event::task_create>(*thread, &creator.data, static_cast<const Frame*>(&creator.frame),
                           &task->data, task->flags, dependences.empty() ? 0 : 1, creator.code);
  if (!dependences.empty()) {
    emit<Event::dependences>(*thread, &task->data, dependences.data(),
                             static_cast<int>(dependences.size()));
    tell_pairs(*thread, creator, *task, dependences);
  }
  return task;
}

void begin_task(TaskRecord* const task, const int number) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr || task == nullptr) return;
  task->number = number;
  task->thread = thread;
  if (!thread->left) put_on_top(*thread, *task);
  change_to(*thread, *task);
  if (task->part.count == 0) return;
  const Iterations part = std::exchange(task->part, Iterations{});
  dispatch_chunk(Dispatch::taskloop_chunk, part.first, part.count);
}

void end_task(TaskRecord* const task, const Status status) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr || task == nullptr) return;
  TaskRecord& next = go_below(*thread, *task);
  // A task with detach is complete only when its event is fulfilled, too.
  const bool detached = status == Status::detach;
  const bool fulfilled = detached && task->half_ended.exchange(true, std::memory_order_acq_rel);
  if (!detached || fulfilled) task->complete.store(true, std::memory_order_release);
  emit<Event::task_schedule>(*thread, &task->data, fulfilled ? Status::complete : status,
                             &next.data);
  drop(task);
}

void fulfill(TaskRecord* const task) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr || task == nullptr) return;
  const bool late = task->half_ended.exchange(true, std::memory_order_acq_rel);
  if (late) task->complete.store(true, std::memory_order_release);
  emit<Event::task_schedule>(*thread, &task->data,
                             late ? Status::late_fulfill : Status::early_fulfill,
                             static_cast<Data*>(nullptr));
  drop(task);
}

void end_taskwait(TaskRecord* const task) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr || task == nullptr) return;
  emit<Event::task_schedule>(*thread, &task->data, Status::taskwait_complete,
                             static_cast<Data*>(nullptr));
  task->complete.store(true, std::memory_order_release);
  drop(task);
}

[[gnu::noinline]] void call(void (*const function)(void*), void* const data) {
  ThreadRecord* const thread = listener();
  TaskRecord* const task = thread != nullptr ? thread->current : nullptr;
  if (task != nullptr) {
    task->frame.exit.pointer = __builtin_frame_address(0);
    task->frame.exit_flags = frame_flag::runtime | frame_flag::frame_pointer;
  }
  function(data);
  if (task != nullptr) task->frame.exit.pointer = nullptr;  // also: this is no jump to `function`
}

void** exit_frame() noexcept {
  static void* nowhere;
  ThreadRecord* const thread = known_thread();
  if (thread == nullptr) return &nowhere;
  Frame& frame = thread->current->frame;
  frame.exit_flags = frame_flag::runtime | frame_flag::frame_pointer;
  return &frame.exit.pointer;
}

// ---- regions -----------------------------------------------------------------------------------

void begin_parallel(ParallelRecord& region, const unsigned requested, const unsigned flags) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  TaskRecord& creator = *thread->current;
  region.data.pointer = nullptr;
  region.creator = &creator;
  region.flags = flags | parallel_flag::team;
  emit<Event::parallel_begin>(*thread, &creator.data, static_cast<const Frame*>(&creator.frame),
                              &region.data, requested, region.flags, creator.code);
}

void end_parallel(ParallelRecord& region, const void* const code) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr || region.creator == nullptr) return;
  TaskRecord* const creator = std::exchange(region.creator, nullptr);
  emit<Event::parallel_end>(*thread, &region.data, &creator->data, region.flags, code);
}

TaskRecord* begin_implicit(ParallelRecord& region, const int size, const int number) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr || region.creator == nullptr) return nullptr;
  auto* const task = new TaskRecord;
  task->parallel = &region;
  if (number == 0) {
    put_on_top(*thread, *task);
    task->code = region.creator->code;
    region.size = size;
  } else {
    task->below = region.creator;
    task->is_native = true;
    thread->native = task;
  }
  task->flags = task_flag::implicit | (size == 1 ? task_flag::undeferred : 0);
  task->number = number;
  thread->current = task;
  thread->left = false;
  emit<Event::implicit_task>(*thread, Endpoint::begin, &region.data, &task->data,
                             static_cast<unsigned>(size), static_cast<unsigned>(number),
                             task_flag::implicit);
  return task;
}

void end_code() {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return;
  TaskRecord& task = *thread->current;
  task.frame = {};
  if (task.number != 0) {
    task.code = nullptr;
  } else if ((task.parallel->flags & parallel_flag::by_runtime) != 0) {
    task.code = task.parallel->creator->code;  // one call has begun and ends the region
  }
  begin_sync(Sync::barrier_parallel);
}

const void* end_implicit(const int size) {
  ThreadRecord* const thread = listener();
  if (thread == nullptr) return nullptr;
  TaskRecord* const task = thread->current;
  const int number = task->number;
  task->parallel = nullptr;  // the region has ended with the barrier, and its creator goes on
  if (number != 0) task->below = &thread->outside;
  end_sync(Sync::barrier_parallel);
  emit<Event::implicit_task>(*thread, Endpoint::end, static_cast<Data*>(nullptr), &task->data,
                             static_cast<unsigned>(size), static_cast<unsigned>(number),
                             task_flag::implicit);
  const void* const code = task->code;
  (void)go_below(*thread, *task);
  delete task;
  return code;
}

}  // namespace imbrex::omp::tools
