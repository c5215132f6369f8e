// SPDX-License-Identifier: BSD-3-Clause
// The functions of waist.hpp: from the caller's thread to its worker, and down to task/.
#include "imbrex/detail/waist.hpp"

#include <fmt/format.h>

#include <climits>
#include <new>

#include "imbrex/error.hpp"
#include "imbrex/event.hpp"
#include "imbrex/runtime.hpp"
#include "sched/lineage.hpp"
#include "sched/observe/observe.hpp"
#include "sched/runtime.hpp"
#include "task/joint.hpp"

namespace imbrex::detail {

using sched::Worker;
using task::Family;
using task::Scope;
using task::State;
using task::Task;

namespace {

// The calling thread's worker, which may wait. Throws Error where waiting is not allowed.
[[noreturn, gnu::cold, gnu::noinline]] void refuse_to_wait(const char* const what) {
  const Worker* const worker = sched::current_worker();
  if (worker != nullptr && worker->calling != nullptr) {
    const std::source_location& where = worker->calling->spec.where;
    throw Error(fmt::format(
        "imbrex: {} inside the progress function registered at {}:{}: no task runs there, so none "
        "can be suspended nor have children; test what is under way, call trigger(), and return",
        what, where.file_name(), where.line()));
  }
  throw Error(fmt::format(
      "imbrex: {} inside a callback that MPI makes while it progresses: no task runs there, so "
      "none can be suspended; let the callback fire an Event, and wait for that in a task",
      what));
}

[[noreturn, gnu::cold, gnu::noinline]] void refuse_without_runtime(const char* const what) {
  throw Error(fmt::format("imbrex: {} before the runtime runs: spawn a task, open a finish scope "
                          "or make an imbrex::Runtime first",
                          what));
}

// `what` is read only to refuse.
Worker& waiting_worker(const char* const& what) {
  Worker* const here = sched::current_worker();
  if (here == nullptr && sched::runtime() == nullptr) [[unlikely]] refuse_without_runtime(what);
  Worker& worker = here != nullptr && here->runtime != nullptr ? *here : sched::here();
  if (worker.callbacks != 0 || worker.task == nullptr) [[unlikely]] refuse_to_wait(what);
  return worker;
}

[[gnu::noinline]] void make_family(Worker& worker, Task& task) {
  void* const memory = worker.small.take(base::slab_class(sizeof(Family)));
  task.family = ::new (memory) Family;
  task.family->children.owner = &task;
  task.family->current = &task.family->children;
  if (task.scope != nullptr) task.family->children.finish = task.scope->finish;
}

Family& family_of(Worker& worker, Task& task) {
  if (task.family == nullptr) [[unlikely]] make_family(worker, task);
  return *task.family;
}

[[gnu::noinline]] void make_table(const Worker& worker, Family& family) {
  task::Lineage& lineage = worker.runtime->lineage;
  family.table = new task::DependTable(lineage.marks() ? &lineage : nullptr);
}

std::size_t aligned(const std::size_t bytes) noexcept {
  return (bytes + base::cache_line_bytes - 1) & ~(base::cache_line_bytes - 1);
}

// The creator has spawned a window's worth since it last looked: if as many are still to run, ready
// ones go first. It never waits for a count: when nothing is ready it goes on.
[[gnu::noinline]] void run_ahead(Worker& worker, Family& family) noexcept {
  const auto window = static_cast<std::uint32_t>(worker.runtime->options.WINDOW);
  const std::uint32_t live = family.current->outstanding();
  if (live < window) {
    family.unchecked = live;
    return;
  }
  sched::give_way(worker, window / 2);
  family.unchecked = window / 2;
}

// The running task has waited: if none of its children is left, their table is empty, and the
// descriptors that it kept are reused.
void forget_children(Family& family) noexcept {
  if (family.table == nullptr) return;
  for (const Scope* scope = family.current; scope != nullptr; scope = scope->outer) {
    if (scope->outstanding() != 0) return;
  }
  task::Outcome outcome;
  family.table->clear(outcome);
  sched::settle(*sched::current_worker(), outcome);
}

// For the task that is about to be made, and others. While there is a trace, for that one alone: so
// each comes by here, and is recorded.
[[gnu::noinline]] void take_ids(Worker& worker, const TaskSpec& spec) {
  const std::uint64_t block = worker.recorder.tracing() ? 1 : 64;
  worker.next_id = worker.runtime->next_id.fetch_add(block, std::memory_order_relaxed);
  worker.last_id = worker.next_id + block;
  if (worker.recorder.tracing()) sched::observe::creation(worker, worker.next_id, spec);
}

void initialise(Worker& worker, Task& task, const TaskSpec& spec, const BodyOps& ops,
                const std::size_t slot_class) noexcept {
  if (worker.next_id == worker.last_id) [[unlikely]] take_ids(worker, spec);
  task.references.store(1, std::memory_order_relaxed);
  task.kind = CompletionKind::task;
  task.event.head.store(0, std::memory_order_relaxed);
  ::new (&task.error) std::exception_ptr;
  task.state.store(State::created, std::memory_order_relaxed);
  task.tied = spec.tied || worker.ties_all;
  task.root = false;
  task.ops = &ops;
  task.scope = nullptr;
  task.parent = worker.task;
  task.id = worker.next_id++;
  task.name = spec.name;
  task.where = spec.where;
  task.accesses = nullptr;
  task.fiber = nullptr;
  task.family = nullptr;
  task.priority.store(spec.priority, std::memory_order_relaxed);
  task.slot_class = static_cast<std::uint8_t>(slot_class);
  task.group = worker.task->group;
  task.held = false;
  task.blocks = false;
}

// A descriptor with `bytes` behind it.
Task& make_task(Worker& worker, const TaskSpec& spec, const BodyOps& ops, const std::size_t bytes) {
  const std::size_t total = sizeof(Task) + bytes;
  const bool large = total > base::slab_bytes_max;
  const std::size_t slot_class = large ? 0 : base::slab_class(total);
  void* const memory =
      large ? worker.runtime->task_slots.take_large(total) : worker.tasks.take(slot_class);
  auto& task = *static_cast<Task*>(memory);
  initialise(worker, task, spec, ops, slot_class);
  return task;
}

// The worker on which the caller's next child is made. May let other tasks run first.
Worker& creating_worker() {
  Worker* worker = &sched::here();
  if (worker->task == nullptr || worker->callbacks != 0) [[unlikely]] {
    refuse_to_wait("a task spawned");
  }
  Family& family = family_of(*worker, *worker->task);
  if (++family.unchecked > worker->window) [[unlikely]] {
    run_ahead(*worker, family);
    worker = sched::current_worker();
  }
  return *worker;
}

// The child is counted where its parent spawns now.
Task& count_child(Worker& worker, void* const closure, const bool keep) noexcept {
  Task& task = Task::of_closure(closure);
  Scope& scope = *worker.task->family->current;
  scope.count_spawned();
  task.scope = &scope;
  task.reach = keep ? task::Reach::future : task::Reach::entry;
  if (keep) task.references.store(2, std::memory_order_relaxed);
  return task;
}

}  // namespace

// ---- tasks -----------------------------------------------------------------------------------

[[gnu::flatten]] void* create(const TaskSpec& spec, const BodyOps& ops, const std::size_t bytes) {
  return make_task(creating_worker(), spec, ops, aligned(bytes)).closure();
}

[[gnu::flatten]] void* create_with_accesses(const TaskSpec& spec, const BodyOps& ops,
                                            const std::size_t bytes) {
  if (!spec.distinct && spec.accesses.size() > 1) task::check_accesses(spec.name, spec.accesses);
  const std::size_t closure_bytes = aligned(bytes);
  Task& task = make_task(creating_worker(), spec, ops,
                         closure_bytes + task::AccessBlock::bytes(spec.accesses.size()));
  task::build_accesses(task, static_cast<std::byte*>(task.closure()) + closure_bytes,
                       spec.accesses);
  return task.closure();
}

void discard(void* const closure) noexcept {
  Task& task = Task::of_closure(closure);
  Worker& worker = *sched::current_worker();
  if (task.accesses != nullptr) {
    task::release_futures(task, [&worker](Completion& completion) {
      sched::drop_reference(worker, completion);
    });
  }
  sched::discard(worker, task);
}

[[gnu::flatten]] Completion* submit(void* const closure, const bool keep) noexcept {
  Worker& worker = *sched::current_worker();
  Task& task = count_child(worker, closure, keep);
  task.pending.store(0, std::memory_order_relaxed);
  sched::enqueue(worker, task, sched::Origin::forked);
  return &task;
}

[[gnu::flatten]] Completion* submit_with_accesses(void* const closure, const bool keep) {
  Worker& worker = *sched::current_worker();
  Task& task = count_child(worker, closure, keep);
  Family& family = *worker.task->family;
  if (family.table == nullptr) [[unlikely]] make_table(worker, family);
  task::Outcome outcome;
  if (family.table->link(task, worker.small, outcome)) task::make_ready(task, outcome.ready);
  if (outcome.ready.head != nullptr || outcome.dead.head != nullptr) {
    sched::settle(worker, outcome);
  } else if (worker.queues != nullptr) {  // a creator far ahead of its tasks queues nothing
    worker.queues->lock.answer();
  }
  return &task;
}

void retain(Completion& completion) noexcept { task::add_reference(completion); }

void release(Completion& completion) noexcept {
  if (!task::drop(completion)) return;
  if (Worker* const worker = sched::current_worker(); worker != nullptr && worker->runtime) {
    sched::discard(*worker, completion);
  } else if (completion.kind != CompletionKind::task) {
    task::Outcome outcome;
    task::destroy_other(completion, outcome);  // its tasks are beyond the end of the runtime
  } else if (sched::runtime() != nullptr) {
    sched::discard(sched::here(), completion);
  } else {  // the runtime has stopped; it keeps the memory
    auto& task = static_cast<Task&>(completion);
    if (task.ops->destroy != nullptr && !task.error) task.ops->destroy(task.closure());
    task.error = nullptr;
    task.state.store(State::free, std::memory_order_relaxed);
  }
}

// ---- waiting ---------------------------------------------------------------------------------

bool in_task() noexcept {
  const Worker* const worker = sched::current_worker();
  return worker != nullptr && worker->task != nullptr && worker->callbacks == 0;
}

bool in_spawned_task() noexcept { return in_task() && !sched::current_worker()->task->root; }

void set_blocking(const bool blocks) { waiting_worker("set_blocking").task->blocks = blocks; }

bool is_blocking() noexcept {
  const Worker* const worker = sched::current_worker();
  return worker != nullptr && worker->task != nullptr && worker->task->blocks;
}

[[gnu::flatten]] void await(EventWord& event, const WaitReason& reason) {
  sched::wait_for(waiting_worker(reason.what), event, reason);
}

void await(Completion& completion) {
  Worker& worker = waiting_worker("wait for a future");
  if (task::is_task(completion)) {
    auto& other = static_cast<Task&>(completion);
    if (sched::run_in_place(worker, other) && completion.event.has_fired()) return;
  }
  sched::lineage::wait(*sched::current_worker(), completion);
  await(completion.event, {.what = "future", .completion = &completion});
  sched::lineage::waited(*sched::current_worker());
}

[[gnu::flatten]] void fire(EventWord& event) noexcept {
  task::Waiter* waiters = nullptr;
  if (!task::event::try_fire(event, waiters) || waiters == nullptr) return;
  sched::let_go(sched::here(), *waiters);  // someone waited, so the runtime runs
}

namespace {

void hold_running_task(EventWord& event, Completion* const source) {
  Worker& worker = waiting_worker("release_after");
  Task& task = *worker.task;
  if (task.root) {
    throw Error("imbrex: release_after outside a task: the program's main code has no dependents");
  }
  Family& family = family_of(worker, task);
  auto* const hold = ::new (worker.small.take(base::slab_class(sizeof(task::Hold)))) task::Hold;
  hold->following = family.holds;
  hold->source = source;
  if (source != nullptr) task::add_reference(*source);
  family.holds = hold;
  sched::observe::hold(worker);
  if (source != nullptr) sched::lineage::hold(worker, *source);
  task::hold_completion(task, event, *hold);
}

}  // namespace

void release_after(EventWord& event) { hold_running_task(event, nullptr); }
void release_after(Completion& completion) { hold_running_task(completion.event, &completion); }

Completion* held_task() noexcept {
  Task& task = *sched::current_worker()->task;
  if (!task.held) return nullptr;
  task::add_reference(task);
  return &task;
}

void release_access(const void* const address) {
  Worker& worker = waiting_worker("release");
  task::Outcome outcome;
  if (!task::release_access(*worker.task, address, outcome)) {
    throw Error(fmt::format("imbrex: release of {} in {}: this task declares no access to it",
                            address, sched::describe(*worker.task)));
  }
  sched::observe::release(worker, address);
  sched::settle(worker, outcome);
}

void yield() {
  Worker& worker = waiting_worker("yield");
  // After a find, what waited for it goes on first: it is nearer to being late than the next poll.
  if (!worker.foreign() && sched::poll(worker, true) == 0) {
    worker.runtime->last_poll.store(base::ticks(), std::memory_order_relaxed);
  }
  sched::give_way(worker, 0);
}

void wait_children() {
  Worker& worker = waiting_worker("taskwait");
  if (worker.task->family == nullptr) return;
  Family& family = *worker.task->family;  // the task's: the worker may be another after each wait
  static constexpr WaitReason reason{.what = "taskwait"};
  for (Scope* scope = family.current; scope != nullptr; scope = scope->outer) {
    sched::wait_for(*sched::current_worker(), *scope, task::Await::children, reason);
  }
  forget_children(family);
}

void wait_descendants() {
  Worker& worker = waiting_worker("barrier");
  if (worker.task->family == nullptr) return;
  Family& family = *worker.task->family;
  static constexpr WaitReason reason{.what = "taskwait"};
  for (Scope* scope = family.current; scope != nullptr; scope = scope->outer) {
    sched::wait_for(*sched::current_worker(), *scope, task::Await::descendants, reason);
  }
  forget_children(family);
}

ScopeMemory* innermost_scope() noexcept {
  if (!in_task()) return nullptr;
  const Family* const family = sched::current_worker()->task->family;
  if (family == nullptr || family->current->outer == nullptr) return nullptr;
  return reinterpret_cast<ScopeMemory*>(family->current);
}

namespace {

// Of names and progress functions. Suspends.
[[gnu::noinline]] void close_region(Scope* const scope) {
  sched::Triggers& triggers = sched::current_worker()->runtime->triggers;
  const std::exception_ptr error = triggers.close(scope);
  if (!error) return;
  if (scope != nullptr) {
    scope->fail(error, 1);
    return;
  }
  try {
    std::rethrow_exception(error);
  } catch (const Error& left) {
    constexpr std::string_view mark = "imbrex: ";  // as report() writes
    base::report(std::string(std::string_view(left.what()).substr(mark.size())));
  }
}

}  // namespace

void drain() noexcept {
  const Worker& worker = *sched::current_worker();
  if (worker.task->family != nullptr) {
    Family& family = *worker.task->family;
    static constexpr WaitReason reason{.what = "end of the program"};
    sched::wait_for(*sched::current_worker(), family.children, task::Await::descendants, reason);
    forget_children(family);
  }
  close_region(nullptr);
  // Entries that are left belong to tasks that have been raised, and have run by another entry.
  sched::give_way(*sched::current_worker(), 0);
}

void open_scope(ScopeMemory& memory, const std::source_location& where) {
  (void)sched::here();  // the first use may be a scope
  Worker& worker = waiting_worker("finish");
  Family& family = family_of(worker, *worker.task);
  auto* const scope = ::new (memory.bytes) Scope;
  scope->owner = worker.task;
  scope->where = where;
  scope->outer = family.current;
  scope->finish = scope;
  family.current = scope;
}

std::exception_ptr close_scope(ScopeMemory& memory) noexcept {
  auto& scope = *std::launder(reinterpret_cast<Scope*>(memory.bytes));
  static constexpr WaitReason reason{.what = "finish"};
  sched::wait_for(*sched::current_worker(), scope, task::Await::descendants, reason);
  Family& family = *scope.owner->family;
  family.current = scope.outer;
  forget_children(family);
  if (scope.has_region.load(std::memory_order_relaxed)) [[unlikely]] close_region(&scope);
  std::exception_ptr error = scope.take_error();
  scope.~Scope();
  return error;
}

// ---- completions that are no tasks -----------------------------------------------------------

namespace {

Completion* join(const std::span<Completion* const> parts, const bool all, const char* what) {
  if (parts.empty()) throw Error(fmt::format("imbrex: {} of no futures", what));
  for (const Completion* const part : parts) {
    if (part == nullptr) throw Error(fmt::format("imbrex: {} with an empty future", what));
  }
  task::Outcome outcome;
  task::Joint& joint = task::join(parts, all, outcome);
  if (!outcome.ready.empty() || !outcome.dead.empty()) sched::settle(sched::here(), outcome);
  return &joint;
}

}  // namespace

Completion* join_all(const std::span<Completion* const> parts) {
  return join(parts, true, "when_all");
}
Completion* join_any(const std::span<Completion* const> parts) {
  return join(parts, false, "when_any");
}
std::size_t joint_index(const Completion& joint) noexcept {
  return static_cast<const task::Joint&>(joint).index;
}

bool take(PromiseState& state) noexcept {
  return !state.taken.exchange(true, std::memory_order_acq_rel);
}
void complete(PromiseState& state) noexcept { fire(state.event); }

void throw_set_twice(const PromiseState& state) {
  throw Error(fmt::format("imbrex: promise \"{}\" ({}:{}) set twice, the second time in {}",
                          state.name, state.where.file_name(), state.where.line(),
                          describe_current_task()));
}

void drop_holder(PromiseState& state) noexcept {
  if (state.holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (take(state)) {
    state.error = std::make_exception_ptr(BrokenPromise(
        fmt::format("imbrex: promise \"{}\" ({}:{}) was given up without a value: its last holder "
                    "is gone",
                    state.name, state.where.file_name(), state.where.line())));
    complete(state);
  }
  release(state);
}

// ---- named events ----------------------------------------------------------------------------

Completion* name_event(const EventName& name, const std::source_location& where) {
  Worker& worker = sched::here();
  if (worker.callbacks != 0) refuse_to_wait("an event named");
  return worker.runtime->triggers.name(worker, name, where);
}

void trigger(const EventName& name) {
  if (sched::runtime() == nullptr) refuse_without_runtime("trigger");
  Worker& worker = sched::here();
  worker.runtime->triggers.trigger(worker, name);
}

void add_progress(const ProgressSpec& spec) {
  Worker& worker = waiting_worker("progress");
  const Family* const family = worker.task->family;
  if (family == nullptr || family->current->outer == nullptr) {
    throw Error(fmt::format(
        "imbrex: progress function registered at {}:{} in {}, which has no finish() open: call "
        "progress() in the body of the finish() whose tasks need it",
        spec.where.file_name(), spec.where.line(), describe_current_task()));
  }
  worker.runtime->triggers.add(*family->current, spec);
}

// ---- plug-ins --------------------------------------------------------------------------------

bool nothing_ready() noexcept {
  const Worker* const worker = sched::current_worker();
  return worker != nullptr && worker->runtime->in_place.load(std::memory_order_relaxed) &&
         !worker->has_others() && !worker->some_ready() && !worker->runtime->triggers.active();
}

bool workers_share() noexcept {
  const sched::Runtime* const runtime = sched::runtime();
  return runtime != nullptr && runtime->workers_share();
}

bool may_spin(std::uint64_t& last) noexcept {
  const Worker* const worker = sched::current_worker();
  return worker != nullptr && worker->runtime->may_spin(last);
}

bool main_is_alone() noexcept {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr || worker->id != 0 || worker->task == nullptr ||
      worker->task != worker->root || worker->task->family != nullptr) {
    return false;
  }
  for (const auto& other : worker->runtime->workers) {
    if (other->joined) return false;
  }
  const std::lock_guard guard(worker->runtime->foreign_lock);
  return worker->runtime->foreign.empty();
}

void begin_idle() noexcept {
  if (Worker* const worker = sched::current_worker()) {
    worker->recorder.enter(trace::Activity::idle);
  }
}
void end_idle() noexcept {
  if (Worker* const worker = sched::current_worker()) {
    worker->recorder.enter(trace::Activity::task);
  }
}

void enter_callback() noexcept { enter_callback(nullptr); }
void enter_callback(const char* const call) noexcept {
  if (Worker* const worker = sched::current_worker()) {
    ++worker->callbacks;
    worker->callback_call = call;
  }
}
void leave_callback() noexcept {
  if (Worker* const worker = sched::current_worker()) --worker->callbacks;
}
const char* callback_call() noexcept {
  const Worker* const worker = sched::current_worker();
  return worker != nullptr && worker->callbacks != 0 ? worker->callback_call : nullptr;
}

// ---- trace -----------------------------------------------------------------------------------

bool tracing() noexcept {
  const Worker* const worker = sched::current_worker();
  return worker != nullptr && worker->recorder.tracing();
}

bool learns_sends() noexcept {
  const sched::Runtime* const runtime = sched::runtime();
  return runtime != nullptr && runtime->lineage.flow().learns;
}

bool learns_paths() noexcept { return learns_sends() && sched::runtime()->lineage.flow().times(); }

namespace {

// The lineage of a running task that is not the code of a thread, if it learns; else null.
task::Lineage* lineage_of(const Worker* const worker) noexcept {
  if (worker == nullptr || worker->runtime == nullptr || worker->task == nullptr ||
      worker->task->root || !worker->runtime->lineage.flow().learns) {
    return nullptr;
  }
  return &worker->runtime->lineage;
}

}  // namespace

void about_to_send() noexcept {
  const Worker* const worker = sched::current_worker();
  if (task::Lineage* const lineage = lineage_of(worker)) lineage->sends(*worker->task);
}

void message_leaves(const std::uint64_t message) noexcept {
  const Worker* const worker = sched::current_worker();
  if (task::Lineage* const lineage = lineage_of(worker)) lineage->sends(*worker->task, message);
}

void message_arrives(const std::uint64_t message) noexcept {
  const Worker* const worker = sched::current_worker();
  if (task::Lineage* const lineage = lineage_of(worker)) lineage->receives(*worker->task, message);
}

void report_paths(const PathReport report) noexcept {
  if (sched::Runtime* const runtime = sched::runtime()) runtime->lineage.report(report);
}

void learn_path(const std::uint64_t message, const float length_us) noexcept {
  if (sched::Runtime* const runtime = sched::runtime()) runtime->lineage.learn(message, length_us);
}

void trace_message(const MessageRecord& message) noexcept {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr || !worker->recorder.tracing()) return;
  const std::uint64_t peer_and_tag = static_cast<std::uint32_t>(message.peer) |
                                     static_cast<std::uint64_t>(
                                         static_cast<std::uint32_t>(message.tag)) << 32;
  const std::uint64_t running = worker->task != nullptr ? worker->task->id : 0;
  worker->recorder.record(message.sent ? trace::Kind::message_sent : trace::Kind::message_received,
                          message.task != 0 ? message.task : running, message.bytes, peer_and_tag,
                          message.communicator);
}

void trace_collective(const CollectiveRecord& collective) noexcept {
  Worker* const worker = sched::current_worker();
  if (worker == nullptr || !worker->recorder.tracing()) return;
  worker->recorder.record(
      collective.begins ? trace::Kind::collective_begin : trace::Kind::collective_end,
      worker->task != nullptr ? worker->task->id : 0, trace::intern(collective.call, nullptr),
      collective.bytes, collective.communicator);
}

// ---- reports ---------------------------------------------------------------------------------

void keep_message(const std::string& text) noexcept {
  Worker* const worker = sched::current_worker();
  if (worker != nullptr && worker->runtime != nullptr) {
    worker->message = text;
  } else {
    constexpr std::string_view mark = "imbrex: ";  // as report() writes
    base::report(text.starts_with(mark) ? text.substr(mark.size()) : text);
  }
}

const char* kept_message() noexcept {
  const Worker* const worker = sched::current_worker();
  if (worker != nullptr && worker->runtime != nullptr) return worker->message.c_str();
  return "imbrex: outside of the runtime what went wrong is said on standard error at once";
}

std::string describe_current_task() { return describe(current_task()); }

TaskLabel current_task() noexcept {
  const Worker* const worker = sched::current_worker();
  if (worker == nullptr || worker->task == nullptr) return {};
  return sched::label_of(*worker->task);
}

Footprint footprint() noexcept {
  const Worker* const worker = sched::current_worker();
  if (worker == nullptr || worker->task == nullptr) return {};
  return {worker->task, worker->fiber};
}

std::string describe(const TaskLabel& task) {
  if (task.name == nullptr) return "no task";
  if (task.where.line() == 0) return fmt::format("\"{}\"", task.name);  // main, or a thread
  return fmt::format("\"{}\" ({}:{})", task.name, task.where.file_name(), task.where.line());
}

}  // namespace imbrex::detail

namespace imbrex {

[[noreturn, gnu::cold, gnu::noinline]] static void throw_fired_twice() {
  throw Error(fmt::format("imbrex: an event fired twice, the second time in {}",
                          detail::describe_current_task()));
}

[[gnu::flatten]] void Event::fire() {
  task::Waiter* waiters = nullptr;
  if (!task::event::try_fire(word_, waiters)) [[unlikely]] throw_fired_twice();
  if (waiters != nullptr) sched::let_go(sched::here(), *waiters);
}

}  // namespace imbrex
