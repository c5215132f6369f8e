// SPDX-License-Identifier: BSD-3-Clause
#include "task/lineage.hpp"

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <new>
#include <unordered_set>
#include <vector>

#include "base/arch.hpp"
#include "task/joint.hpp"

namespace imbrex::task {

namespace {

// These bits lie below the address in Waiter::follows and AccessBlock::past.
constexpr std::uintptr_t locked = 1;    // held for a few instructions for each task that the word
                                        // leads to
constexpr std::uintptr_t declared = 2;  // for a past: futures among the accesses belong to it

// Takes the lock in `word` and returns its earlier value, without the lock. 0: the word leads to no
// task, and is not locked.
[[nodiscard]] std::uintptr_t lock(std::atomic<std::uintptr_t>& word) noexcept {
  for (int round = 0;; ++round) {
    std::uintptr_t now = word.load(std::memory_order_seq_cst);  // pairs with Lineage::wait()
    if (now == 0) return 0;
    if ((now & locked) == 0 &&
        word.compare_exchange_weak(now, now | locked, std::memory_order_acquire,
                                   std::memory_order_relaxed)) {
      return now;
    }
    round < 64 ? base::pause() : static_cast<void>(sched_yield());
  }
}
void unlock(std::atomic<std::uintptr_t>& word, const std::uintptr_t now) noexcept {
  word.store(now, std::memory_order_release);  // pairs with lock()
}

[[nodiscard]] Predecessors* list_of(const std::uintptr_t past) noexcept {
  return reinterpret_cast<Predecessors*>(past & ~declared);
}

// Returns `list` with `predecessor` in front, and a reference to it.
[[nodiscard]] Predecessors* enter(Task& predecessor, Predecessors* list, base::SlabCache& slots) {
  if (list == nullptr || list->count == std::size(list->tasks)) {
    void* const memory = slots.take(base::slab_class(sizeof(Predecessors)));
    list = ::new (memory) Predecessors{list, 0, {}};
  }
  add_reference(predecessor);
  list->tasks[list->count++] = &predecessor;
  return list;
}

// Visits the tasks that `joint` follows, also through other joints, if enter(joint) is true for
// them. Joints may form long chains, and may be shared, so there is no recursion.
template <class Enter, class Visit>
[[gnu::noinline]] void for_each_followed(Joint& first, Enter enter, Visit visit) {
  if (!enter(first)) return;
  alignas(Joint*) std::byte memory[256];
  std::pmr::monotonic_buffer_resource room(memory, sizeof(memory));
  std::pmr::vector<Joint*> entered({&first}, &room);
  while (!entered.empty()) {
    Joint& joint = *entered.back();
    entered.pop_back();
    for (std::size_t i = 0; i < joint.count; ++i) {
      detail::Completion& part = *joint.parts[i].of;
      if (is_task(part)) {
        visit(static_cast<Task&>(part));
      } else if (part.kind == detail::CompletionKind::joint && enter(static_cast<Joint&>(part))) {
        entered.push_back(&static_cast<Joint&>(part));
      }
    }
  }
}

// Visits the tasks that `completion` stands for and that shall rise to `level`: itself, or the
// parts of a when_all() or when_any(), unless they have risen with it before. The task that will
// complete a promise is unknown.
template <class Visit>
void for_each_to_raise(detail::Completion& completion, const int level, Visit visit) {
  if (is_task(completion)) return visit(static_cast<Task&>(completion));
  if (completion.kind != detail::CompletionKind::joint) return;
  for_each_followed(
      static_cast<Joint&>(completion),
      [level](Joint& joint) { return !joint.event.has_fired() && joint.lift(level); }, visit);
}

// Visits the incomplete tasks that `completion` is, or consists of.
template <class Visit>
void for_each_task(detail::Completion& completion, Visit visit) {
  const auto visit_unfinished = [&visit](Task& task) {
    if (!task.event.has_fired()) visit(task);
  };
  if (is_task(completion)) return visit_unfinished(static_cast<Task&>(completion));
  if (completion.kind != detail::CompletionKind::joint) return;
  std::unordered_set<const Joint*> seen;
  for_each_followed(
      static_cast<Joint&>(completion),
      [&seen](Joint& joint) { return !joint.event.has_fired() && seen.insert(&joint).second; },
      visit_unfinished);
}

template <class Visit>
void follow_edge(Waiter& edge, Visit visit) {
  const std::uintptr_t task = lock(edge.follows);
  if (task == 0) return;
  visit(*reinterpret_cast<Task*>(task));
  unlock(edge.follows, task);
}

template <class Visit>
void for_each_predecessor(const Task& task, const int level, Visit visit) {
  if (task.accesses == nullptr) return;
  AccessBlock& block = *task.accesses;
  for (Access& access : block.accesses()) follow_edge(access.edge, visit);
  for (ExtraEdge* extra = block.extra; extra != nullptr; extra = extra->next) {
    follow_edge(extra->edge, visit);
  }
  const std::uintptr_t past = lock(block.past);
  if (past == 0) return;
  if ((past & declared) != 0) {
    for (const Access& access : block.accesses()) {
      if (access.kind != AccessKind::after) continue;
      for_each_to_raise(*static_cast<detail::Completion*>(const_cast<void*>(access.address)),
                        level, visit);
    }
  }
  for (const Predecessors* part = list_of(past); part != nullptr; part = part->next) {
    for (std::uint64_t i = 0; i < part->count; ++i) visit(*part->tasks[i]);
  }
  unlock(block.past, past);
}

[[nodiscard]] bool has_not_begun(const Task& task) noexcept {
  const State state = task.state.load(std::memory_order_relaxed);
  return state == State::created || state == State::ready;
}

}  // namespace

void forget_edge(Waiter& edge) noexcept {
  (void)lock(edge.follows);
  unlock(edge.follows, 0);
}

void forget_edges(Waiter* const first) noexcept {
  for (Waiter* waiter = first; waiter != nullptr; waiter = waiter->next) {
    if (waiter->by_address()) forget_edge(*waiter);
  }
}

Predecessors* take_past(AccessBlock& block) noexcept {
  const std::uintptr_t past = lock(block.past);
  if (past != 0) unlock(block.past, 0);
  return list_of(past);
}

void Lineage::use(const Flow& flow, const Requeue requeue, void* const context) {
  flow_ = flow;
  requeue_ = requeue;
  context_ = context;
  if (flow.learns) knowledge_ = std::make_unique<Knowledge>();
}

int Lineage::worth(const Task& task, const Profile& profile) const noexcept {
  const auto level = static_cast<int>(profile.level.load(std::memory_order_relaxed));
  if (level == 0) {
    const bool tried = profile.begun.load(std::memory_order_relaxed) != 0;
    return tried ? 0 : rounds_.load(std::memory_order_relaxed) * flow_.untried;
  }
  const int urgency = flow_.urgent != 0 ? knowledge_->profiles.urgency(task) * flow_.urgent : 0;
  return flow_.marked + urgency - (level - 1) * flow_.step;
}

int Lineage::own_priority(const Task& task, const int given) const noexcept {
  if (!flow_.learns) return given > 0 ? flow_.marked : 0;
  const Profile* const profile = knowledge_->profiles.of(task);
  return profile == nullptr ? 0 : worth(task, *profile);
}

void Lineage::mark(Task& task) noexcept {
  int priority = 0;
  if (flow_.learns) {
    const Profile* const profile = knowledge_->profiles.enter(task);
    if (profile != nullptr) priority = worth(task, *profile);
    if (task.accesses != nullptr) task.accesses->step = {0, 0};
  } else if (task.priority.load(std::memory_order_relaxed) > 0) {
    priority = flow_.marked;
  }
  if (flow_.control) {
    const int inherited = task.parent->priority.load(std::memory_order_relaxed) - flow_.step;
    if (inherited > priority) priority = inherited;
  }
  const int given = task.priority.load(std::memory_order_relaxed);
  task.priority.store(priority, std::memory_order_relaxed);
  if (given != priority && rise_ != nullptr) [[unlikely]] rise_(task, priority);
  if (flow_.upward) task.reach = Reach::flow;  // (4)
}

void Lineage::remember(Task& task, Outcome& outcome) noexcept {
  const Profile* const profile = flow_.learns ? knowledge_->profiles.of(task) : nullptr;
  if (profile == nullptr) return;
  const auto sends = [profile] { return profile->level.load(std::memory_order_relaxed) != 0; };
  if (!sends()) {
    // A task is not expected to send if so many tasks of its kind have begun and none has sent.
    if (profile->begun.load(std::memory_order_relaxed) == Profile::seasoned) return;
  } else if (task.priority.load(std::memory_order_relaxed) >= worth(task, *profile)) {
    return;
  }
  knowledge_->recent.add(task, outcome);
  if (sends()) behind_.store(true, std::memory_order_release);  // (5)
  if (!has_not_begun(task)) knowledge_->recent.remove(task, outcome);
}

void Lineage::begins(Task& task, Outcome& outcome) noexcept {
  if (!flow_.learns) return;
  knowledge_->recent.remove(task, outcome);
  Profile* const profile = knowledge_->profiles.of(task);
  if (profile == nullptr) return;
  const std::uint32_t begun = profile->begun.load(std::memory_order_relaxed);
  if (begun == Profile::seasoned) return;
  profile->begun.store(begun + 1, std::memory_order_relaxed);
  if (begun == 0) try_others();
}

// Fewer kinds are left that may send, so each of them counts more than before.
void Lineage::try_others() noexcept {
  const int rounds = rounds_.load(std::memory_order_relaxed);
  if (rounds == rounds_max) return;
  rounds_.store(rounds + 1, std::memory_order_relaxed);
  behind_.store(true, std::memory_order_release);  // pairs with catch_up()
}

void Lineage::sends(const Task& task) noexcept {
  Profile* const profile = knowledge_->profiles.of(task);
  if (profile == nullptr || !Profiles::sends(*profile)) return;
  behind_.store(true, std::memory_order_release);  // pairs with catch_up()
}

void Lineage::catch_up(Outcome& outcome) noexcept {
  if (!behind_.exchange(false, std::memory_order_acquire)) return;
  knowledge_->recent.for_each([&](Task& task) {
    if (!has_not_begun(task)) return;
    const Profile* const profile = knowledge_->profiles.of(task);
    const int priority = profile != nullptr ? worth(task, *profile) : 0;
    if (priority != 0) raise(task, priority, outcome);
  });
}

void Lineage::sends(Task& task, const std::uint64_t message) noexcept {
  if (!flow_.times() || knowledge_->profiles.of(task) == nullptr) return;
  const float behind = knowledge_->profiles.sends(task, message);
  if (task.accesses == nullptr || task.accesses->step.trail == 0) return;
  knowledge_->trails.note(task.accesses->step, behind / 2);
}

void Lineage::receives(Task& task, const std::uint64_t message) noexcept {
  if (!flow_.times() || task.is_root() || task.accesses == nullptr) return;
  leave(task.accesses->step);
  task.accesses->step = {0, 0};
  knowledge_->trails.begin(task.accesses->step, message);
}

Step Lineage::ends(Task& task, const std::uint64_t duration_ns) noexcept {
  if (!flow_.times() || task.accesses == nullptr || task.accesses->step.trail == 0) return {0, 0};
  Step& step = task.accesses->step;
  step.length_us += static_cast<float>(duration_ns) * 1e-3F;
  knowledge_->trails.note(step, 0);
  return step;
}

void Lineage::follow(const Step& step, const ReadyList& ready) noexcept {
  for (const Task* task = ready.head; task != nullptr; task = task->next_ready) {
    // A task that resumes has been ready before.
    if (task->accesses == nullptr || task->fiber != nullptr) continue;
    knowledge_->trails.pass(step, task->accesses->step);
  }
}

void Lineage::leave(Step step) noexcept {
  Path ended;
  if (step.trail == 0 || !knowledge_->trails.leave(step, ended)) return;
  if (const Told told = told_.load(std::memory_order_acquire); told != nullptr) {
    told(ended.message, ended.length_us);
  }
}

int Lineage::worth_of_rank(const std::uint32_t rank) const noexcept {
  return flow_.times() ? knowledge_->profiles.urgency_at(rank) * flow_.urgent : 0;
}

void Lineage::learn(const std::uint64_t message, const float behind_us) noexcept {
  if (flow_.times()) knowledge_->profiles.learn(message, behind_us);
}

void Lineage::precede(detail::Completion& predecessor, const Waiter& edge,
                      Outcome& outcome) noexcept {
  if (!flow_.upward) return;
  const Task& task = *edge.task;
  // relaxed: published with the edges
  if (!edge.by_address()) task.accesses->past.store(declared, std::memory_order_relaxed);
  const int level = task.priority.load(std::memory_order_relaxed) - flow_.step;
  for_each_to_raise(predecessor, level, [&](Task& earlier) {
    if (level <= earlier.priority.load(std::memory_order_relaxed)) return;
    if (!earlier.event.has_fired()) raise(earlier, level, outcome);
  });
}

void Lineage::wait(Task& waiting, detail::Completion& other, base::SlabCache& slots,
                   Outcome& outcome) {
  hold(waiting, other, outcome);
  if (!flow_.control || !flow_.upward || waiting.is_root() || waiting.accesses == nullptr) return;
  Predecessors* list = nullptr;
  for_each_task(other, [&](Task& earlier) { list = enter(earlier, list, slots); });
  // seq_cst, as for the rise of a priority and the later read of the past: a thread that raises
  // this task sees the list, or has raised it before hold() reads its priority. Declared
  // predecessors are complete.
  waiting.accesses->past.store(reinterpret_cast<std::uintptr_t>(list), std::memory_order_seq_cst);
  hold(waiting, other, outcome);
}

void Lineage::hold(const Task& held, detail::Completion& other, Outcome& outcome) noexcept {
  if (marks() && !flow_.control) return;
  const int level = held.priority.load(std::memory_order_seq_cst) - flow_.step;
  for_each_to_raise(other, level, [&](Task& earlier) { raise(earlier, level, outcome); });
}

// Breadth first: with equal steps, the first path that reaches a task is the shortest; with unequal
// steps a task may rise again on a better path.
void Lineage::raise(Task& task, const int priority, Outcome& outcome) noexcept {
  if (!lift(task, priority) || !flow_.upward) return;
  alignas(Task*) std::byte memory[1024];
  std::pmr::monotonic_buffer_resource room(memory, sizeof(memory));
  std::pmr::vector<Task*> risen(&room);  // each with a reference
  add_reference(task);
  risen.push_back(&task);
  for (std::size_t next = 0; next < risen.size(); ++next) {
    Task& later = *risen[next];
    const int level = later.priority.load(std::memory_order_relaxed) - flow_.step;
    for_each_predecessor(later, level, [&](Task& predecessor) {
      if (!lift(predecessor, level)) return;
      add_reference(predecessor);
      risen.push_back(&predecessor);
    });
    lose(later, outcome);
  }
}

// Returns true if the priority has risen.
bool Lineage::lift(Task& task, const int priority) noexcept {
  int now = task.priority.load(std::memory_order_relaxed);
  do {
    if (priority <= now) return false;
  } while (!task.priority.compare_exchange_weak(now, priority, std::memory_order_seq_cst,
                                                std::memory_order_relaxed));
  if (rise_ != nullptr) [[unlikely]] rise_(task, priority);
  // relaxed: what must be seen is ordered by the priority; (3)
  if (task.state.load(std::memory_order_relaxed) == State::ready) {
    requeue_(context_, task, priority);
  }
  return true;
}

}  // namespace imbrex::task
