// SPDX-License-Identifier: BSD-3-Clause
#include "sched/life/waits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "sched/life/visit.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/phasers/turn.hpp"
#include "task/access/accesses.hpp"
#include "task/failure.hpp"
#include "task/joint.hpp"

namespace imbrex::sched {

using detail::CompletionKind;
using diagnosis::WaitKind;
using task::Joint;
using task::State;

const char* state_text(const Task& task) noexcept {
  switch (task.state.load(std::memory_order_acquire)) {
    case State::free: return "free";
    case State::created: return "not started";
    case State::ready: return "ready";
    case State::running: return "running";
    case State::suspended: return "suspended";
    case State::resumable: return "about to resume";
    case State::ended: return "ended, completion held";
    case State::complete: return "complete";
  }
  return "?";
}

std::vector<const Task*> tasks_on_workers(RuntimeState& runtime) {
  std::vector<const Task*> tasks;
  for (const auto& worker : runtime.workers) tasks.push_back(worker->task.glance());
  const std::lock_guard guard(runtime.foreign_lock);
  for (Worker* const worker : runtime.foreign) tasks.push_back(worker->task.glance());
  return tasks;
}

bool is_below(const Task& task, const std::vector<const Task*>& on_workers) {
  return task.state.load(std::memory_order_acquire) == State::running &&
         std::ranges::find(on_workers, &task) == on_workers.end();
}

namespace {

// Visits the completions that `task`, or a finish() of its own, owns and that have not completed.
template <class Visit>
void for_each_owned(const Task& task, Visit visit) {
  if (task.family == nullptr) return;
  for (const task::Hold* hold = task.family->holds; hold != nullptr; hold = hold->following) {
    if (is_owned(*hold) && !hold->source->event.has_fired()) visit(*hold->source);
  }
}

bool is_complete(const Task& task) noexcept {
  return task.state.load(std::memory_order_acquire) == State::complete;
}

// Whether another task may wait for `task`: for its end, for an access that is open longer, or for
// a completion that it has handed over.
bool matters(const Task& task) noexcept {
  if (alive(task) || task::holds_access(task)) return true;
  bool owned = false;
  if (is_complete(task)) for_each_owned(task, [&owned](const auto&) { owned = true; });
  return owned;
}

std::vector<Task*> live_tasks(RuntimeState& runtime) {
  std::vector<Task*> tasks;
  runtime.task_slots.for_each([&tasks](std::byte* const slot) {
    auto* const task = reinterpret_cast<Task*>(slot);
    if (matters(*task)) tasks.push_back(task);
  });
  return tasks;
}

std::string describe(const detail::Completion& completion);

// Describes `joint` by the first part that it waits for, if that is no joint, because chains may be
// long.
std::string describe(const Joint& joint) {
  const std::string text = fmt::format("when_{} of {}", joint.all ? "all" : "any", joint.count);
  for (std::size_t i = 0; i < joint.count; ++i) {
    const detail::Completion& part = *joint.parts[i].of;
    if (part.event.has_fired()) continue;
    const bool nested = part.kind == CompletionKind::joint;
    return text + " (" + (nested ? "another when_all or when_any" : describe(part)) + ")";
  }
  return text;
}

// ---- phasers ---------------------------------------------------------------------------------

// Calls visit(registration) for the parties that hold back the end of `phase`.
template <class Visit>
void for_each_owing(const task::Phases& phases, const std::uint64_t phase, Visit visit) {
  const std::lock_guard guard(phases.lock);
  for (const task::Registration* one = phases.first; one != nullptr; one = one->after) {
    if (task::signals(one->mode) && one->signalled.load(std::memory_order_relaxed) <= phase) {
      visit(*one);
    }
  }
}
// The parties that hold back a signaller that would run too far ahead of them.
template <class Visit>
void for_each_slowest(const task::Phases& phases, Visit visit) {
  const std::lock_guard guard(phases.lock);
  for (const task::Registration* one = phases.first; one != nullptr; one = one->after) {
    if (task::waits(one->mode) && one->waited.load(std::memory_order_relaxed) == phases.slowest) {
      visit(*one);
    }
  }
}

std::string describe(const task::Phases& phases) {
  return fmt::format("phaser \"{}\"{}", phases.name, detail::in_parentheses(phases.where));
}

// Lists the tasks that are visited.
class Tasks {
 public:
  void operator()(const task::Registration& one) {
    constexpr int shown_max = 4;
    ids_.push_back(one.task->id);
    if (++count_ > shown_max) return;
    text_ += (count_ == 1 ? "" : ", ") + sched::describe(*one.task);
  }
  [[nodiscard]] const std::vector<std::uint64_t>& ids() const noexcept { return ids_; }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::string text() const {
    if (count_ == 0) return "no task";
    return count_ <= 4 ? text_ : text_ + fmt::format(" and {} more", count_ - 4);
  }

 private:
  int count_ = 0;
  std::string text_;
  std::vector<std::uint64_t> ids_;
};

Tasks owing(const task::Phases& phases, const std::uint64_t phase) {
  Tasks tasks;
  for_each_owing(phases, phase, std::ref(tasks));
  return tasks;
}

std::string describe_phase(const task::Phases& phases, const std::uint64_t phase) {
  const Tasks tasks = owing(phases, phase);
  return fmt::format("phase {} of {}, for {}", phase, describe(phases),
                     tasks.empty() && phases.backend != nullptr
                         ? "the signals of other ranks"
                         : "the signal of " + tasks.text());
}

// The phaser that the suspended `task` waits at, and its registration there; null if there is none.
const task::Registration* registration_of(const Task& task) {
  const auto* const reason = reason_of(task);
  if (reason == nullptr || reason->kind != detail::WaitKind::members || task.family == nullptr) {
    return nullptr;
  }
  const task::Registration* one = task.family->registrations;
  while (one != nullptr && one->phases != reason->completion) one = one->following;
  return one;
}
bool waits_to_signal(const detail::WaitReason& reason) {
  return std::string_view(reason.what) == "signal";
}

Wait wait_at_phaser(const task::Registration& mine, const detail::WaitReason& reason,
                    const bool foreign) {
  if (!waits_to_signal(reason)) {
    const std::uint64_t phase = mine.waited.load(std::memory_order_relaxed);
    return {fmt::format("{}: {}", reason.what, describe_phase(*mine.phases, phase)), foreign,
            WaitKind::phaser, owing(*mine.phases, phase).ids()};
  }
  Tasks slowest;
  for_each_slowest(*mine.phases, std::ref(slowest));
  return {fmt::format("signal of phase {} of {}, which is {} phases ahead of {}",
                      mine.signalled.load(std::memory_order_relaxed), describe(*mine.phases),
                      mine.phases->ahead, slowest.text()),
          foreign, WaitKind::phaser, slowest.ids()};
}

// A registered thread of the program that is not waiting may still signal. The code of a worker's
// thread may not: all workers sleep, so it waits for a task that runs on its stack.
bool runs_outside(const task::Registration& one) {
  if (!one.task->is_root() || one.task->state.load(std::memory_order_acquire) != State::running) {
    return false;
  }
  RuntimeState* const present = runtime();
  return present != nullptr && std::ranges::none_of(present->workers, [&](const auto& worker) {
    return worker->root == one.task;
  });
}
bool foreign_could_end(const task::Phases& phases, const std::uint64_t phase) {
  bool could = false;
  bool all_here_have = true;
  for_each_owing(phases, phase, [&](const task::Registration& one) {
    all_here_have = false;
    could = could || runs_outside(one);
  });
  return could || (all_here_have && phases.backend != nullptr);  // other ranks could
}
bool foreign_could_advance(const task::Registration& mine, const detail::WaitReason& reason) {
  if (!waits_to_signal(reason)) {
    return foreign_could_end(*mine.phases, mine.waited.load(std::memory_order_relaxed));
  }
  bool could = false;
  for_each_slowest(*mine.phases, [&could](const task::Registration& one) {
    could = could || runs_outside(one);
  });
  return could;
}

const sched::PassedPromise& passed_of(const detail::Completion& completion) {
  return static_cast<const sched::PassedPromise&>(completion);
}

std::string describe(const detail::Completion& completion) {
  if (task::is_task(completion)) {
    return fmt::format("task {}", sched::describe(static_cast<const Task&>(completion)));
  }
  if (completion.kind == CompletionKind::joint) {
    return describe(static_cast<const Joint&>(completion));
  }
  if (completion.kind == CompletionKind::phase) {
    const sched::PassedPromise& passed = passed_of(completion);
    return describe_phase(*passed.phases, passed.wait.until - 1);
  }
  const auto& promise = static_cast<const detail::PromiseState&>(completion);
  if (completion.kind == CompletionKind::remote) {
    const auto& remote = static_cast<const detail::RemoteState&>(promise);
    std::string text;
    remote.describe(remote, text);
    return text;
  }
  if (completion.kind == CompletionKind::named) {
    return fmt::format("a trigger of {} (named at {})", promise.name,
                       detail::text_of(promise.where));
  }
  if (promise.where.line() == 0) return promise.name;  // a promise of the runtime
  return fmt::format("promise \"{}\"{}", promise.name, detail::in_parentheses(promise.where));
}

}  // namespace

const detail::WaitReason* reason_of(const Task& task) noexcept {
  const auto* const fiber = static_cast<const fiber::Fiber*>(task.fiber);
  return fiber == nullptr ? nullptr : static_cast<const detail::WaitReason*>(fiber->reason);
}

bool asks_in_vain(const detail::WaitReason& reason) noexcept {
  const std::string_view what = reason.what;
  return reason.kind == detail::WaitKind::turn && what != text_of(reason.kind);
}

WaitKind kind_of(const detail::WaitReason& reason) noexcept {
  switch (reason.kind) {
    case detail::WaitKind::event: return WaitKind::promise;
    case detail::WaitKind::children:
    case detail::WaitKind::finish: return WaitKind::finish;
    case detail::WaitKind::turn: return WaitKind::asks;
    default: return WaitKind::other;
  }
}

std::string describe_reason(const detail::WaitReason& reason) {
  if (asks_in_vain(reason)) return fmt::format("{} repeatedly, without success", reason.what);
  if (reason.kind != detail::WaitKind::mpi) return reason.what;
  // the wait names no message
  if (reason.peer < 0 && reason.tag < 0 && reason.bytes == 0) return reason.what;
  if (reason.tag < 0 && reason.bytes == 0) {
    return fmt::format("{} (peer {})", reason.what, reason.peer);
  }
  return fmt::format("{} (peer {}, tag {}, {} bytes)", reason.what, reason.peer, reason.tag,
                     reason.bytes);
}

namespace {

// foreign_could_fire() for a completion that is no joint.
bool foreign_could_fire_one(const detail::Completion& completion) {
  if (completion.kind == CompletionKind::phase) {
    const sched::PassedPromise& passed = passed_of(completion);
    return foreign_could_end(*passed.phases, passed.wait.until - 1);
  }
  return !task::is_task(completion);
}

// Joints may form long chains, and be shared: each is judged once, its parts first.
class Judgement {
 public:
  // Whether a thread that is no worker could decide `first`.
  [[nodiscard]] bool judge(const Joint& first) {
    open_.push_back(&first);
    while (!open_.empty()) {
      const Joint& joint = *open_.back();
      const std::size_t before = open_.size();
      bool all = true;
      bool any = false;
      for (std::size_t i = 0; i < joint.count && !known_.contains(&joint); ++i) {
        const bool could = could_fire(*joint.parts[i].of);
        all = all && could;
        any = any || could;
      }
      if (open_.size() != before) continue;
      known_.try_emplace(&joint, joint.all ? all : any);
      open_.pop_back();
    }
    return known_.at(&first);
  }

 private:
  [[nodiscard]] bool could_fire(const detail::Completion& part) {
    if (part.event.has_fired()) return true;
    if (part.kind != CompletionKind::joint) return foreign_could_fire_one(part);
    const auto& joint = static_cast<const Joint&>(part);
    const auto found = known_.find(&joint);
    if (found != known_.end()) return found->second;
    open_.push_back(&joint);
    return true;
  }

  std::unordered_map<const Joint*, bool> known_;
  std::vector<const Joint*> open_;
};

// Whether a thread that is no worker could fire the event, or has done so and is about to wake the
// waiters.
bool foreign_could_fire(const detail::Completion& completion) {
  if (completion.event.has_fired()) return true;
  if (completion.kind != CompletionKind::joint) return foreign_could_fire_one(completion);
  return Judgement().judge(static_cast<const Joint&>(completion));
}

}  // namespace

bool foreign_could_end_scope(const Task& task) {
  bool could = false;
  for_each_owned(task, [&could](const detail::Completion& owned) {
    could = could || foreign_could_fire(owned);
  });
  return could;
}

bool foreign_could_resume(const Task& task) {
  const auto* const reason = reason_of(task);
  if (reason == nullptr) return true;
  switch (reason->kind) {
    case detail::WaitKind::completion: return foreign_could_fire(*reason->completion);
    case detail::WaitKind::children:
    case detail::WaitKind::finish:
    case detail::WaitKind::end: return foreign_could_end_scope(task);
    case detail::WaitKind::members:
      if (const task::Registration* const mine = registration_of(task)) {
        return foreign_could_advance(*mine, *reason);
      }
      return false;
    case detail::WaitKind::event:
    case detail::WaitKind::turn:
    case detail::WaitKind::mpi: break;
  }
  return true;
}

namespace {

// The wait for a completion. A joint names no tasks: one of its parts may be enough.
Wait wait_for(const detail::Completion& completion, const bool foreign) {
  Wait wait{describe(completion), foreign, WaitKind::promise, {}};
  switch (completion.kind) {
    case CompletionKind::task:
      wait.kind = WaitKind::dependency;
      wait.tasks = {static_cast<const Task&>(completion).id};
      break;
    case CompletionKind::phase: {
      const sched::PassedPromise& passed = passed_of(completion);
      wait.kind = WaitKind::phaser;
      wait.tasks = owing(*passed.phases, passed.wait.until - 1).ids();
      break;
    }
    case CompletionKind::remote: wait.kind = WaitKind::future; break;
    default: break;
  }
  return wait;
}

// The live tasks, by the scope that counts them and by their parent; for waits for many tasks.
class Kin {
 public:
  explicit Kin(const std::vector<Task*>& tasks) {
    for (const Task* const task : tasks) {
      if (task->is_root() || !alive(*task)) continue;
      add(in_scope_[task->scope], *task);
      add(children_[task->parent], *task);
    }
  }
  [[nodiscard]] std::vector<std::uint64_t> in_scope(const task::Scope* const scope) const {
    const auto found = in_scope_.find(scope);
    return found == in_scope_.end() ? std::vector<std::uint64_t>() : found->second;
  }
  [[nodiscard]] std::vector<std::uint64_t> children(const Task* const task) const {
    const auto found = children_.find(task);
    return found == children_.end() ? std::vector<std::uint64_t>() : found->second;
  }

 private:
  static void add(std::vector<std::uint64_t>& ids, const Task& task) {
    constexpr std::size_t ids_max = 1000;
    if (ids.size() < ids_max) ids.push_back(task.id);
  }
  std::unordered_map<const task::Scope*, std::vector<std::uint64_t>> in_scope_;
  std::unordered_map<const Task*, std::vector<std::uint64_t>> children_;
};

Wait suspended_wait(const Task& task, const Kin& kin) {
  const auto* const reason = reason_of(task);
  if (reason == nullptr) return {"unknown", true};
  if (reason->kind == detail::WaitKind::completion) {
    return wait_for(*reason->completion, foreign_could_resume(task));
  }
  if (const task::Registration* const mine = registration_of(task)) {
    return wait_at_phaser(*mine, *reason, foreign_could_resume(task));
  }
  std::vector<std::uint64_t> tasks;
  if (reason->kind == detail::WaitKind::children) tasks = kin.children(&task);
  std::string text = describe_reason(*reason);
  if (reason->kind == detail::WaitKind::finish && task.family != nullptr) {
    const task::Scope& scope = *task.family->current;
    tasks = kin.in_scope(&scope);
    if (scope.kind != detail::ScopeKind::finish && scope.kind != detail::ScopeKind::of_c &&
        scope.kind != detail::ScopeKind::of_hcmpi) {
      text = "the end of " + task::describe(scope);
    } else {
      text += detail::in_parentheses(scope.where);
    }
    for_each_owned(task, [&text](const detail::Completion& owned) {
      text += " which owns " + describe(owned);
    });
  }
  return {text, foreign_could_resume(task), kind_of(*reason), std::move(tasks),
          reason->kind == detail::WaitKind::mpi};
}

// Calls visit(earlier) for the tasks that `task`, which has not begun, follows by address. It takes
// no lock and writes nothing: it reads the edges from this end, since the holder of an event's lock
// must not hold it while its task ends and its descriptor is reused. An edge does not say whether
// it was released, nor whether the descriptor belongs to another task by now; but a live sibling
// with a conflicting access is one to wait for.
template <class Visit>
void for_each_followed(Task& task, Visit visit) {
  if (task.accesses == nullptr) return;
  const auto look = [&](const task::Waiter& edge) {
    constexpr std::uintptr_t lock_bit = 1;  // lineage.hpp
    auto* const earlier =
        reinterpret_cast<Task*>(edge.follows.load(std::memory_order_acquire) & ~lock_bit);
    if (earlier == nullptr || earlier == &task) return;
    if (!matters(*earlier)) return;
    if (earlier->parent != task.parent || earlier->accesses == nullptr) return;
    if (task::blocks(*earlier, task)) visit(*earlier);
  };
  for (const task::Access& access : task.accesses->accesses()) look(access.edge);
  const task::ExtraEdge* extra = task.accesses->extra;
  for (; extra != nullptr; extra = extra->next) look(extra->edge);
}

// The task that holds the mutex of `access`; null: no mutex, or no holder.
const Task* holder_of(const task::Access& access) noexcept {
  task::Mutex* const mutex = access.mutex();
  if (mutex == nullptr) return nullptr;
  const std::lock_guard guard(mutex->lock);
  return mutex->owner;
}

void created_waits(Task& task, std::vector<Wait>& waits) {
  if (task.accesses == nullptr) return;
  for_each_followed(task, [&waits](const Task& earlier) {
    waits.push_back({"dependency on task " + sched::describe(earlier), false,
                     WaitKind::dependency, {earlier.id}});
  });
  for (task::Access& access : task.accesses->accesses()) {
    if (access.kind != detail::AccessKind::after) {
      const Task* const holder = holder_of(access);
      if (holder != nullptr && holder != &task) {
        waits.push_back({"mutexinoutset held by " + sched::describe(*holder), false,
                         WaitKind::dependency, {holder->id}});
      }
      continue;
    }
    const auto& completion = *static_cast<const detail::Completion*>(access.address);
    if (!completion.event.has_fired()) {
      waits.push_back(wait_for(completion, foreign_could_fire(completion)));
    }
  }
}

// Visits the incomplete completions that hold back the completion of `task`.
template <class Visit>
void for_each_holder(const Task& task, Visit visit) {
  if (task.is_root() || task.family == nullptr) return;
  for (const task::Hold* hold = task.family->holds; hold != nullptr; hold = hold->following) {
    if (hold->scope != nullptr || hold->source == nullptr) continue;  // of a scope, or unknown
    if (!hold->source->event.has_fired()) visit(*hold->source);
  }
}

// An event itself does not tell which completion it belongs to.
void ended_waits(const Task& task, std::vector<Wait>& waits) {
  for_each_holder(task, [&waits](const detail::Completion& source) {
    waits.push_back(wait_for(source, foreign_could_fire(source)));
    waits.back().text += " given to release_after";
  });
  if (waits.empty() && !task.is_root()) {
    // Not a literal: GCC 12 warns of the move of a short string.
    waits.push_back({fmt::format("{} given to release_after", "an event"), true});
  }
}

}  // namespace

Waits collect(RuntimeState& runtime) {
  Waits waits;
  const std::vector<Task*> tasks = live_tasks(runtime);
  const std::vector<const Task*> on_workers = tasks_on_workers(runtime);
  const Kin kin(tasks);
  for (Task* const task : tasks) {
    std::vector<Wait>& mine = waits[task];
    const State state = task->state.load(std::memory_order_acquire);
    if (is_below(*task, on_workers)) mine.push_back({waits_in_place, false});
    if (state == State::suspended) mine.push_back(suspended_wait(*task, kin));
    if (state == State::created) created_waits(*task, mine);
    if (state == State::ended) ended_waits(*task, mine);
    if (state != State::complete) continue;
    for_each_owned(*task, [&mine](const detail::Completion& owned) {
      mine.push_back(wait_for(owned, foreign_could_fire(owned)));
      mine.back().text += " given to finish_owns";
    });
    if (task::holds_access(*task)) {
      mine.push_back({fmt::format("{}, given to release_after, to end its access", "an event"),
                      true});
    }
  }
  return waits;
}

std::string join(const std::vector<Wait>& waits) {
  std::string text;
  for (std::size_t index = 0; index < waits.size(); ++index) {
    text += (index == 0 ? "" : ", ") + waits[index].text;
    if (index == 7 && waits.size() > 8) {
      return text + fmt::format(", and {} more", waits.size() - 8);
    }
  }
  return text;
}

namespace {

// A task that has not begun waits for no visible event: the code that released it is about to queue
// it.
bool is_on_its_way(Task& task) {
  if (task.accesses == nullptr) return false;
  std::vector<Wait> waits;
  created_waits(task, waits);
  return waits.empty();
}

}  // namespace

bool foreign_could_begin(Task& task) {
  if (task.accesses == nullptr) return false;
  bool could = false;
  for (const task::Access& access : task.accesses->accesses()) {
    if (access.kind != detail::AccessKind::after) continue;
    const auto& completion = *static_cast<const detail::Completion*>(access.address);
    if (completion.event.has_fired()) continue;
    if (!foreign_could_fire(completion)) return false;
    could = true;
  }
  return could || is_on_its_way(task);
}

bool foreign_could_complete(const Task& task) {
  bool could = !task.is_root();
  for_each_holder(task, [&could](const detail::Completion& source) {
    could = could && foreign_could_fire(source);
  });
  return could;
}

}  // namespace imbrex::sched
