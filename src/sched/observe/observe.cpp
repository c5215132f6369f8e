// SPDX-License-Identifier: BSD-3-Clause
#include "sched/observe/observe.hpp"

#include "task/depend.hpp"
#include "trace/trace.hpp"

namespace imbrex::sched::observe {

using trace::Activity;
using trace::Awaited;
using trace::Kind;

namespace {

[[nodiscard]] std::uint64_t name_of(const char* const name, const std::source_location& where) {
  return trace::intern(name, where.line() == 0 ? nullptr : &where);
}

[[nodiscard]] std::uint64_t word(const int number) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(number));
}

// An access as the trace has it: tasks are reused, so a future of one is named by its id.
void record_access(Worker& worker, const std::uint64_t id, const detail::AccessSpec& access) {
  auto place = reinterpret_cast<std::uint64_t>(access.address);
  if (access.kind == detail::AccessKind::after) {
    const auto& earlier = *static_cast<const detail::Completion*>(access.address);
    place = task::is_task(earlier) ? static_cast<const Task&>(earlier).id : 0;
  }
  worker.recorder.record(Kind::task_access, id, place, static_cast<std::uint64_t>(access.kind), 0);
}

}  // namespace

void creation(Worker& worker, const std::uint64_t id, const detail::TaskSpec& spec) {
  worker.recorder.record(Kind::task_create, id, name_of(spec.name, spec.where),
                         word(spec.priority), worker.task->id);
  for (const detail::AccessSpec& access : spec.accesses) record_access(worker, id, access);
}

void begin(Worker& worker, const Task& task) {
  worker.recorder.record(Kind::task_begin, task.id, name_of(task.name, task.where),
                         word(task.priority.load()), task.parent->id);
}

void rise(const Task& task, const int priority) {
  Worker* const worker = current_worker();
  if (worker == nullptr || !worker->recorder.tracing()) return;
  worker->recorder.record(Kind::task_priority, task.id, word(priority), 0, 0);
}

void release(Worker& worker, const void* const address) {
  if (!worker.recorder.tracing()) return;
  worker.recorder.record(Kind::access_released, worker.task->id,
                         reinterpret_cast<std::uint64_t>(address), 0, 0);
}

void hold(Worker& worker) {
  if (!worker.recorder.tracing()) return;
  worker.recorder.record(Kind::task_hold, worker.task->id, 0, 0, 0);
}

void suspension(Worker& worker, const Task& task, const detail::WaitReason& reason) {
  if (!worker.foreign()) worker.recorder.enter(Activity::overhead);
  if (!worker.recorder.tracing()) return;
  std::uint64_t what = 0;
  Awaited awaited = Awaited::unknown;
  if (reason.completion != nullptr && task::is_task(*reason.completion)) {
    what = static_cast<const Task&>(*reason.completion).id;
    awaited = Awaited::task;
  } else if (reason.mpi) {
    what = static_cast<std::uint32_t>(reason.peer) |
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(reason.tag)) << 32;
    awaited = Awaited::message;
  }
  worker.recorder.record(Kind::task_suspend, task.id, trace::intern(reason.what, nullptr), what,
                         static_cast<std::uint64_t>(awaited));
}

void resumption(Worker& worker, const Task& task) {
  worker.recorder.enter(Activity::task);
  if (!worker.recorder.tracing()) return;
  worker.recorder.record(Kind::task_resume, task.id, 0, 0, 0);
}

}  // namespace imbrex::sched::observe
