// SPDX-License-Identifier: BSD-3-Clause
#include "sched/run/notes.hpp"

#include <fmt/format.h>

#include <atomic>

#include "base/check.hpp"
#include "sched/run/ready.hpp"
#include "sched/run/runtime_state.hpp"
#include "task/access/accesses.hpp"
#include "task/access/order_keys.hpp"
#include "task/cycle/node.hpp"
#include "task/ending/complete.hpp"
#include "task/failure.hpp"
#include "trace/trace.hpp"

namespace imbrex::sched {

std::string lines(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += "\n  " + text;
  return all;
}

std::string lines(const task::Untold& untold) {
  if (untold.others == 0) return lines(untold.texts);
  return lines(untold.texts) + fmt::format("\n  ... and {} more", untold.others);
}

std::string describe(const Task& task) { return detail::describe(label_of(task)); }

namespace {

bool report_untold(task::Untold untold) {
  untold.others += task::take_lost_failures();
  if (untold.empty()) return false;
  base::report((untold.count() == 1
                    ? "an exception that neither get() nor finish() has rethrown:"
                    : fmt::format("{} exceptions that neither get() nor finish() has rethrown:",
                                  untold.count())) +
               lines(untold));
  return true;
}

}  // namespace

bool report_failures(RuntimeState& runtime) { return report_untold(runtime.unowned.take_untold()); }

bool report_all_failures() noexcept { return report_untold(task::Scope::take_all_untold()); }

}  // namespace imbrex::sched

namespace imbrex::sched::notes {

using trace::Activity;
using trace::Awaited;
using trace::Kind;
namespace order = trace::happens_before;
namespace keys = task::order_keys;

namespace {

[[nodiscard]] std::uint64_t name_of(const char* const name, const std::source_location& where) {
  if (const void* const code = detail::code_at(where)) return trace::intern_at(name, code);
  return trace::intern(name, where.line() == 0 ? nullptr : &where);
}

[[nodiscard]] std::uint64_t word(const int number) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(number));
}

[[nodiscard]] std::uint64_t address(const detail::AccessSpec& access) noexcept {
  return reinterpret_cast<std::uint64_t>(access.address);
}

// The bytes of a range, 0 of other accesses.
[[nodiscard]] std::uint64_t range_bytes(const detail::AccessSpec& access) noexcept {
  if (access.bytes != 0) return 0;
  const detail::AccessSpec& end = *(&access + 1);
  return end.kind == detail::AccessKind::range_end ? address(end) - address(access) : 0;
}

// A completion in the trace's form: tasks are reused, so a task is named by its id. The memory of
// other completions is reused, too: whether it was set tells apart the two that an address names.
struct Named {
  std::uint64_t number;
  Awaited what;
};
[[nodiscard]] Named named(const detail::Completion& completion) noexcept {
  if (task::is_task(completion)) {
    return {static_cast<const Task&>(completion).id, Awaited::task};
  }
  return {reinterpret_cast<std::uint64_t>(&completion) | (completion.event.has_fired() ? 1u : 0u),
          Awaited::future};
}

void record_access(Worker& worker, const std::uint64_t id, const detail::AccessSpec& access) {
  if (access.kind >= detail::AccessKind::object_end) return;  // recorded with the access before it
  std::uint64_t place = address(access);
  std::uint64_t more = 0;
  if (access.kind == detail::AccessKind::after) {
    const Named earlier = named(*static_cast<const detail::Completion*>(access.address));
    place = earlier.what == Awaited::task ? earlier.number : 0;
    more = earlier.what == Awaited::task ? 0 : earlier.number;
  } else {
    more = range_bytes(access);
  }
  worker.recorder.record(Kind::task_access, id, place, static_cast<std::uint64_t>(access.kind),
                         more);
}

void record_begin(Worker& worker, const Task& task) {
  const void* const code = code_of(label_of(task));
  const std::uint64_t name = code != nullptr ? trace::intern_code(code, task.name)
                                             : name_of(task.name, task.where);
  worker.recorder.record(Kind::task_begin, task.id, name,
                         word(task.priority.load()), task.parent->id);
}

template <class Act>
void apply(Worker& worker, Act act) {
  task::Outcome outcome;
  act(worker.runtime->lineage, outcome);
  if (!outcome.dead.empty()) act_on(worker, outcome);
}

// ---- order -----------------------------------------------------------------------------------

// Accesses to ranges are in use: from the first such task on, accesses precede ranges, too.
// Relaxed: the order forgets everything before that.
std::atomic<bool> orders_ranges{false};

struct Tell {
  order::Code code;
  void after(const void* const key) const noexcept { order::after(code, key); }
  void before(const void* const key) const noexcept { order::before(code, key); }
  void after_end(const detail::Completion& other) const noexcept {
    if (task::is_task(other)) {
      order::follow(code, static_cast<const Task&>(other).id);
    } else {  // set by any code, perhaps by what a message has brought
      order::follow_everything(code);
    }
  }
  static bool has_ranges() noexcept { return orders_ranges.load(std::memory_order_relaxed); }
  static bool mutexes_order() noexcept { return false; }  // the schedule orders them
};

void order_begin(const Task& task) noexcept {
  if (task.accesses != nullptr && task.accesses->linked_at != 0 &&
      !orders_ranges.exchange(true, std::memory_order_relaxed)) {
    order::forget();
  }
  order::after(task.id, task::key_of_holds());
  keys::begin(task, Tell{task.id});
}

void order_end(const Task& task) noexcept {
  keys::end(task, Tell{task.id});
  order::before(task.id, keys::key_of_children(*task.scope));
  order::before(task.id, keys::key_of_descendants(*task.scope));
}

// The run time of the body of `task`, which ends now; 0 if it was suspended.
std::uint64_t time_of(const Worker& worker, const Task& task) noexcept {
  const Worker::Begun& begun = worker.begun;
  if (begun.task != task.id || begun.suspensions != worker.recorder.suspensions.get()) return 0;
  const std::uint64_t ticks = base::ticks() - begun.at;
  return 1 + ticks * 500 / worker.runtime->brief;  // which is 500 ns
}

}  // namespace

void creation(Worker& worker, const std::uint64_t id, const detail::TaskSpec& spec) {
  if (order::is_kept()) order::spawn(ordered_code(worker), id);
  if (!worker.recorder.tracing()) return;
  worker.recorder.record(Kind::task_create, id, name_of(spec.name, spec.where),
                         word(spec.priority), worker.task->id);
  if (spec.tied || worker.ties_all) worker.recorder.record(Kind::task_bound, id, 0, 1, 0);
  for (const detail::AccessSpec& access : spec.accesses) record_access(worker, id, access);
}

void creation_by_library(Worker& worker, const Task& task) {
  if (!worker.recorder.tracing()) return;
  worker.recorder.record(Kind::task_create, task.id, name_of(task.name, task.where),
                         word(task.priority.load()), 0);
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

void asks(Worker& worker, const detail::Completion& other) {
  if (!worker.recorder.tracing() || worker.task == nullptr) return;
  const Named asked = named(other);
  worker.recorder.record(Kind::future_awaited, worker.task->id, 0, asked.number,
                         static_cast<std::uint64_t>(asked.what));
}

void opens_scope(Worker& worker) {
  worker.recorder.record(Kind::scope_begin, worker.task->id, 0, 0, 0);
}

void ends_scope(Worker& worker) {
  worker.recorder.record(Kind::scope_end, worker.task->id, 0, 0, 0);
}

void awaits_children(Worker& worker, const bool with_descendants) {
  worker.recorder.record(Kind::children_awaited, worker.task->id, with_descendants ? 1 : 0, 0, 0);
}

void sets(const detail::PromiseState& promise) {
  Worker* const worker = current_worker();
  if (worker == nullptr || !worker->recorder.tracing()) return;
  worker->recorder.record(Kind::future_set, worker->task != nullptr ? worker->task->id : 0,
                          name_of(promise.name, promise.where), 0,
                          reinterpret_cast<std::uint64_t>(&promise));
}

void joins(const detail::Completion& joint, const std::span<detail::Completion* const> parts,
           const bool all) {
  Worker* const worker = current_worker();
  if (worker == nullptr || !worker->recorder.tracing()) return;
  for (const detail::Completion* const part : parts) {
    const Named other = named(*part);
    worker->recorder.record(Kind::future_joins, other.number,
                            static_cast<std::uint64_t>(other.what), all ? 0 : 1,
                            reinterpret_cast<std::uint64_t>(&joint));
  }
}

void bind(Worker& worker, const Task& task, const int place) {
  if (!worker.recorder.tracing()) return;
  worker.recorder.record(Kind::task_bound, task.id, word(place + 1), task.tied ? 1 : 0, 0);
}

std::atomic<const detail::SwitchOps*> switch_ops{nullptr};

void suspension(Worker& worker, const Task& task, const detail::WaitReason& reason) {
  if (!worker.foreign()) worker.recorder.enter(Activity::overhead);
  if (const detail::SwitchOps* const ops = switch_ops.load(std::memory_order_acquire)) {
    ops->leaves(reason.kind);
  }
  if (!worker.recorder.tracing()) return;
  std::uint64_t what = 0;
  Awaited awaited = Awaited::unknown;
  if (reason.completion != nullptr) {
    const Named other = named(*reason.completion);
    what = other.number;
    awaited = other.what;
  } else if (reason.kind == detail::WaitKind::mpi) {
    what = static_cast<std::uint32_t>(reason.peer) |
           static_cast<std::uint64_t>(static_cast<std::uint32_t>(reason.tag)) << 32;
    awaited = Awaited::message;
  }
  worker.recorder.record(Kind::task_suspend, task.id, trace::intern(reason.what, nullptr), what,
                         static_cast<std::uint64_t>(awaited));
}

void resumption(Worker& worker, const Task& task) {
  worker.recorder.enter(Activity::task);
  if (const detail::SwitchOps* const ops = switch_ops.load(std::memory_order_acquire)) {
    ops->resumes({task.ops, const_cast<Task&>(task).closure()});
  }
  if (!worker.recorder.tracing()) return;
  worker.recorder.record(Kind::task_resume, task.id, 0, 0, 0);
}

void mark(Worker& worker, Task& task) noexcept {
  task::Lineage& lineage = worker.runtime->lineage;
  lineage.mark(task);
  if (!lineage.flow().learns) return;
  apply(worker, [&](task::Lineage&, task::Outcome& outcome) { lineage.remember(task, outcome); });
}

namespace {

// Each instance of a node is a task of its own to a trace, and to the order of tasks. The first one
// has been noted at its creation.
void note_instance(Worker& worker, Task& task) {
  const task::Node& node = task::node_of(task);
  if (node.iteration < node.cycle->period) return;
  task.id = worker.runtime->next_id.fetch_add(1, std::memory_order_relaxed);
  if (order::is_kept()) order::spawn(task.parent->id, task.id);
  if (!worker.recorder.tracing()) return;
  worker.recorder.record(Kind::task_create, task.id, name_of(task.name, task.where),
                         word(task.priority.load()), task.parent->id);
  worker.recorder.record(Kind::task_iteration, task.id, static_cast<std::uint64_t>(node.iteration),
                         0, 0);
  if (task.tied) worker.recorder.record(Kind::task_bound, task.id, 0, 1, 0);
  const std::vector<detail::AccessSpec> specs = task::specs_of(task);
  for (const detail::AccessSpec& spec : specs) record_access(worker, task.id, spec);
}

}  // namespace

void begins(Worker& worker, Task& task) noexcept {
  if (task::is_node(task)) [[unlikely]] note_instance(worker, task);
  if (worker.recorder.tracing()) record_begin(worker, task);
  if (worker.flight.has_tasks()) {
    worker.flight.add(detail::FlightEvent::task_begin, task.id, task.name);
  }
  if (order::is_kept()) order_begin(task);
  apply(worker, [&](task::Lineage& lineage, task::Outcome& outcome) {
    lineage.begins(task, outcome);
  });
  if (notes_end(worker, task)) {
    worker.begun = {task.id, worker.recorder.suspensions.get(), base::ticks()};
  }
}

void enters(Worker& worker, Task& task) noexcept {
  if (worker.runtime->lineage.marks()) worker.runtime->lineage.mark(task);
  begins(worker, task);
  // It may be in order with tasks beside it: the members of a team are, by a barrier.
  if (order::is_kept()) order::hide(task.id);
}

void leaves(Worker& worker, Task& task) noexcept {
  (void)ends(worker, task);
  if (order::is_kept()) order::show(task.id);
}

void wait(Worker& worker, detail::Completion& other) {
  if (other.event.has_fired()) return;
  apply(worker, [&](task::Lineage& lineage, task::Outcome& outcome) {
    lineage.wait(*worker.task, other, worker.small, outcome);
  });
}

void waited(Worker& worker) noexcept {
  Task& task = *worker.task;
  if (!worker.runtime->lineage.flow().control || task.accesses == nullptr) return;
  task::end_lineage(task, worker.small, [&](Task& done) { drop_reference(worker, done); });
}

void hold(Worker& worker, detail::Completion* const source) {
  if (worker.recorder.tracing()) {
    const Named other = source != nullptr ? named(*source) : Named{0, Awaited::unknown};
    worker.recorder.record(Kind::task_hold, worker.task->id, 0, other.number,
                           static_cast<std::uint64_t>(other.what));
  }
  if (source == nullptr) return;
  apply(worker, [&](task::Lineage& lineage, task::Outcome& outcome) {
    lineage.hold(*worker.task, *source, outcome);
  });
}

task::Step ends(Worker& worker, Task& task) noexcept {
  if (worker.recorder.tracing()) {
    worker.recorder.record(trace::Kind::task_end, task.id, 0, 0, 0);
  }
  if (order::is_kept()) order_end(task);
  if (worker.flight.has_tasks()) {
    worker.flight.add(detail::FlightEvent::task_end, task.id, task.name);
  }
  return worker.runtime->lineage.ends(task, time_of(worker, task));
}

void follow(Worker& worker, const task::Step& step, const task::Outcome& outcome) noexcept {
  if (step.trail == 0) return;
  worker.runtime->lineage.follow(step, outcome.ready);
  worker.runtime->lineage.leave(step);
}

void catch_up(Worker& worker) noexcept {
  apply(worker, [](task::Lineage& lineage, task::Outcome& outcome) { lineage.catch_up(outcome); });
}

// ---- order -----------------------------------------------------------------------------------

order::Code ordered_code(const Worker& worker) noexcept {
  const Task* const task = worker.task;
  if (worker.callbacks != 0 || task == nullptr) return order::unknown;
  return task->is_root() && worker.id != 0 ? order::unknown : task->id;
}

void follows(const Worker& worker, const detail::Completion& completion) noexcept {
  Tell{ordered_code(worker)}.after_end(completion);
}

void follows_everything() noexcept {
  if (const Worker* const worker = current_worker()) {
    order::follow_everything(ordered_code(*worker));
  }
}

void follows(const task::Scope& scope, const task::Await what) noexcept {
  const order::Code code = ordered_code(*current_worker());
  order::after(code, keys::key_of_children(scope));
  if (what == task::Await::descendants) order::after(code, keys::key_of_descendants(scope));
  order::after(code, task::key_of_holds());
}

void follows(const detail::WaitReason& reason) noexcept {
  if (reason.kind == detail::WaitKind::mpi) return;
  if (reason.completion == nullptr) return follows_everything();
  follows(*current_worker(), *reason.completion);
  order::after(ordered_code(*current_worker()), task::key_of_holds());
}

void precedes(const Worker& worker, const void* const address, const std::size_t bytes) noexcept {
  keys::release(*worker.task, address, bytes, Tell{ordered_code(worker)});
}

}  // namespace imbrex::sched::notes
