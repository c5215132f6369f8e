// SPDX-License-Identifier: BSD-3-Clause
// iterate(): records the tasks of one period, makes nodes of a cyclic graph of them, and waits
// until they have retired (task/cycle/node.hpp).
#include "imbrex/detail/loops.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"
#include "sched/run/dead.hpp"
#include "sched/run/ready.hpp"
#include "sched/waist/caller.hpp"
#include "task/access/accesses.hpp"
#include "task/access/conflicts.hpp"
#include "task/cycle/graph.hpp"
#include "task/ending/complete.hpp"
#include "task/ending/instance.hpp"

namespace imbrex::detail {

using task::AccessBlock;
using task::Cycle;
using task::Node;

namespace {

void set_priorities(const Node& node) noexcept;

// ---- bodies of nodes -------------------------------------------------------------------------

// Runs an instance; the loop of a worker does it by itself where nothing has to be looked at.
void run_node(void* const closure) {
  Node& node = task::node_of(Task::of_closure(closure));
  Cycle& cycle = *node.cycle;
  std::int64_t look_at = cycle.look_at.load(std::memory_order_relaxed);
  const std::int64_t limit = cycle.limit.load(std::memory_order_relaxed);
  if (node.iteration >= limit) [[unlikely]] {
    node.task->wishes |= Task::skipped;  // it was ready before another task has ended the loop
    return;
  }
  if (node.iteration >= look_at &&
      cycle.look_at.compare_exchange_strong(look_at, limit, std::memory_order_relaxed)) {
    set_priorities(node);
  }
  node.run(closure);
}

// The body of an instance that does not run is kept for the next one.
void keep_body(void*) noexcept {}

const void* code_of_node(const void* const closure) noexcept {
  const Node& node = task::node_of(Task::of_closure(const_cast<void*>(closure)));
  return node.ops->code != nullptr ? node.ops->code(closure)
                                   : reinterpret_cast<const void*>(node.run);
}

constexpr BodyOps node_ops{&run_node, &keep_body, nullptr, &code_of_node};

// ---- the loop --------------------------------------------------------------------------------

struct Recorded {
  Task* task;
  const BodyOps* ops;    // its own
  std::uint32_t offset;  // of its iteration in the period
  int priority;          // as the program gave it
  bool decides;
  bool owns_block;       // it named no access
};

struct DeleteNode {
  void operator()(Node* const node) const noexcept {
    node->~Node();
    ::operator delete(node, std::align_val_t{base::cache_line_bytes});
  }
};

// The tasks of an iterate() from their creation to the end of the loop.
class Loop {
 public:
  explicit Loop(const IterateSpec& spec) noexcept : spec_(spec) {}
  ~Loop() {
    for (const Recorded& each : tasks_) forget(each);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // ---- while the body runs
  void begin_iteration(const std::int64_t offset) noexcept {
    offset_ = static_cast<std::uint32_t>(offset);
  }
  void check(const TaskSpec& spec, const BodyOps& ops);
  [[noreturn]] void refuse(const TaskLabel& task, const char* reason) const;
  void add(Task& task) noexcept;
  // From now on tasks are compared with those that are there, and forgotten.
  void begin_comparison() noexcept { comparing_ = true; }
  void end_comparison();
  [[nodiscard]] std::size_t size() const noexcept { return tasks_.size(); }
  [[nodiscard]] const IterateSpec& spec() const noexcept { return spec_; }

  // ---- afterwards
  void build(Worker& worker, Scope& scope);
  void start() noexcept;
  // A task before the loop has failed whose data the loop needs: no iteration begins.
  void cancel() noexcept { cycle_.end_before(0); }
  // All that its tasks access.
  [[nodiscard]] std::vector<AccessSpec> accesses() const;
  void set_priorities() noexcept;

 private:
  void forget(const Recorded& recorded) noexcept;
  void compare(const TaskSpec& spec) const;
  void compare_captured(Task& task);
  [[nodiscard]] std::string difference(const Task& task, const std::string& how) const;
  void make_nodes(const std::vector<task::CycleEdges>& edges);
  void make_gates(const std::vector<task::CycleEdges>& edges);

  const IterateSpec spec_;
  std::uint32_t offset_ = 0;
  bool decides_ = false;           // the task that is being created
  std::vector<Recorded> tasks_;
  bool comparing_ = false;
  std::size_t compared_ = 0;       // number of tasks
  std::string difference_;         // the first one
  Cycle cycle_;
  std::vector<std::unique_ptr<Node, DeleteNode>> nodes_;
  std::vector<std::unique_ptr<task::Gate>> gates_;  // by offset; null: no task decides there
  std::vector<std::int32_t> first_;                 // number of edges in the first round
  task::Lineage* lineage_ = nullptr;                // null: no priorities to set
};

void set_priorities(const Node& node) noexcept {
  static_cast<Loop*>(node.cycle->owner)->set_priorities();
}

[[nodiscard]] std::string place_of_loop(const IterateSpec& spec) {
  return fmt::format("{} at {}", spec.call, text_of(spec.where));
}

[[nodiscard]] std::string text_of_task(const TaskSpec& spec) {
  return describe(TaskLabel{spec.name, spec.where, 0});
}

void Loop::refuse(const TaskLabel& task, const char* const reason) const {
  throw Error(fmt::format("imbrex: task {} cannot be part of {}: {}", describe(task),
                          place_of_loop(spec_), reason));
}

void Loop::check(const TaskSpec& spec, const BodyOps& ops) {
  const TaskLabel task{spec.name, spec.where, 0};
  if (ops.repeat == nullptr) {
    refuse(task,
           "its graph is built once, so its tasks have no futures; launch() makes them in C++");
  }
  for (const AccessSpec& access : spec.accesses) {
    if (access.kind == AccessKind::after) {
      refuse(task, "it names a future or a named event, which happens once");
    }
  }
  decides_ = spec.decides;
  if (!comparing_) {
    if (tasks_.size() == tasks_.capacity()) tasks_.reserve(2 * tasks_.size() + 16);  // for add()
  } else {
    compare(spec);
  }
}

// ---- the second period -----------------------------------------------------------------------

[[nodiscard]] auto key_of(const AccessSpec& spec) noexcept {
  return std::tuple(spec.address, spec.kind, spec.bytes);
}

std::string Loop::difference(const Task& task, const std::string& how) const {
  return fmt::format(
      "imbrex: IMBREX_CHECK: {}: the body does not create the same tasks again: task {} of the "
      "first period, task {} of {}, {}. Let each task use iteration() for what changes, or set the "
      "period",
      place_of_loop(spec_), describe(task::label_of(task)), compared_ + 1, tasks_.size(), how);
}

void Loop::compare(const TaskSpec& spec) const {
  if (!difference_.empty()) throw Error(difference_);
  if (compared_ == tasks_.size()) {
    throw Error(fmt::format(
        "imbrex: IMBREX_CHECK: {}: the body does not create the same tasks again: after {} tasks, "
        "as in the first period, it has created task {}",
        place_of_loop(spec_), tasks_.size(), text_of_task(spec)));
  }
  const Task& before = *tasks_[compared_].task;
  if (tasks_[compared_].offset != offset_) {
    throw Error(difference(before, fmt::format("belongs to iteration {}, and task {} in the second "
                                               "to iteration {}",
                                               tasks_[compared_].offset, text_of_task(spec),
                                               spec_.period + offset_)));
  }
  if (std::string_view(before.name) != spec.name || before.where.line() != spec.where.line() ||
      std::string_view(before.where.file_name()) != spec.where.file_name()) {
    throw Error(difference(before, "is task " + text_of_task(spec) + " in the second"));
  }
  std::vector<AccessSpec> accesses = task::specs_of(before);  // perhaps sorted
  std::vector<AccessSpec> again(spec.accesses.begin(), spec.accesses.end());
  for (std::vector<AccessSpec>* const each : {&accesses, &again}) {
    std::ranges::stable_sort(*each, {}, [](const AccessSpec& it) { return it.address; });
  }
  if (!std::ranges::equal(accesses, again, {}, &key_of, &key_of)) {
    throw Error(difference(before, "names other accesses in the second"));
  }
}

void Loop::compare_captured(Task& task) {
  const Recorded& before = tasks_[compared_];
  if (before.decides != decides_) difference_ = difference(task, "decides in one of them only");
  const std::span<const std::byte> mine = task.ops->repeat->captured(task.closure());
  const std::span<const std::byte> other = before.ops->repeat->captured(before.task->closure());
  if (std::ranges::equal(mine, other)) return;
  const auto at = std::ranges::mismatch(mine, other).in1 - mine.begin();
  difference_ = difference(
      task, fmt::format("has captured another value in the second, at byte {} of {}", at,
                        mine.size()));
}

void Loop::add(Task& task) noexcept {
  const Recorded recorded{&task, task.ops, offset_, task.priority.load(std::memory_order_relaxed),
                          decides_, false};
  (void)task.ops->repeat->captured(task.closure());  // clears the padding
  if (!comparing_) {
    tasks_.push_back(recorded);
    return;
  }
  if (difference_.empty()) compare_captured(task);
  ++compared_;
  forget(recorded);
}

void Loop::end_comparison() {
  if (!difference_.empty()) throw Error(difference_);
  // The last round of the loop may be shorter.
  const auto wanted = static_cast<std::size_t>(
      std::ranges::count_if(tasks_, [this](const Recorded& recorded) {
        return recorded.offset < spec_.count - spec_.period;
      }));
  if (compared_ != wanted) {
    throw Error(fmt::format(
        "imbrex: IMBREX_CHECK: {}: the body does not create the same tasks again: it has created "
        "{} in the first period, and {} in the second",
        place_of_loop(spec_), wanted, compared_));
  }
}

// ---- the graph -------------------------------------------------------------------------------

void Loop::forget(const Recorded& recorded) noexcept {
  Task& task = *recorded.task;
  recorded.ops->drop(task.closure());
  Worker& worker = *sched::current_worker();
  if (task.accesses != nullptr) {
    AccessBlock& block = *task.accesses;
    if (block.rare.load(std::memory_order_relaxed) != nullptr) block.mark(AccessBlock::apart);
    task::destroy_accesses(task, worker.small);
  }
  if (recorded.owns_block) {
    worker.small.give(task.accesses, base::slab_class(sizeof(AccessBlock)));
  }
  sched::recycle(worker, task);
}

void Loop::make_nodes(const std::vector<task::CycleEdges>& edges) {
  first_.assign(tasks_.size(), 0);
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const std::size_t count = edges[i].in_round.size() + edges[i].next_round.size();
    void* const memory = ::operator new(sizeof(Node) + count * sizeof(Node*),
                                        std::align_val_t{base::cache_line_bytes});
    Node& node = *nodes_.emplace_back(::new (memory) Node);
    const Recorded& recorded = tasks_[i];
    node.task = recorded.task;
    node.cycle = &cycle_;
    node.ops = recorded.ops;
    node.run = recorded.ops->repeat->run;
    node.iteration = recorded.offset;
    node.offset = recorded.offset;
    node.follower_count = static_cast<std::uint32_t>(count);
  }
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    Node** next = nodes_[i]->followers().data();
    for (const std::uint32_t follower : edges[i].in_round) {
      *next++ = nodes_[follower].get();
      ++nodes_[follower]->degree;
      ++first_[follower];
    }
    for (const std::uint32_t follower : edges[i].next_round) {
      *next++ = nodes_[follower].get();
      ++nodes_[follower]->degree;
    }
  }
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    nodes_[i]->needed.store(first_[i], std::memory_order_relaxed);  // published by the start
  }
}

// All tasks of an iteration follow those that decide in the last iteration before it that has such
// tasks: the first ones of the iteration wait at the gate, and the others follow these.
void Loop::make_gates(const std::vector<task::CycleEdges>& edges) {
  const auto decides = [](const Recorded& recorded) { return recorded.decides; };
  if (std::ranges::none_of(tasks_, decides)) return;
  gates_.resize(static_cast<std::size_t>(std::min(spec_.period, spec_.count)));
  task::Gate* last = nullptr;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (!tasks_[i].decides) continue;
    std::unique_ptr<task::Gate>& gate = gates_[tasks_[i].offset];
    if (gate == nullptr) {
      gate = std::make_unique<task::Gate>(std::int64_t{tasks_[i].offset} - spec_.period,
                                          spec_.period);
    }
    last = gate.get();
    gate->add_decider();
    nodes_[i]->extras = std::make_unique<task::NodeExtras>();
    nodes_[i]->extras->decides = gate.get();
  }
  std::vector<task::Gate*> gate_before;  // by offset; that of the last round, then of this one
  for (const std::unique_ptr<task::Gate>& gate : gates_) {
    gate_before.push_back(last);
    if (gate != nullptr) last = gate.get();
  }
  std::vector<bool> follows_within(tasks_.size());
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    for (const std::uint32_t follower : edges[i].in_round) {
      if (tasks_[follower].offset == tasks_[i].offset) follows_within[follower] = true;
    }
  }
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (follows_within[i]) continue;
    if (nodes_[i]->extras == nullptr) nodes_[i]->extras = std::make_unique<task::NodeExtras>();
    nodes_[i]->extras->gate = gate_before[tasks_[i].offset];
  }
}

void Loop::build(Worker& worker, Scope& scope) {
  std::vector<Task*> all;
  for (Recorded& recorded : tasks_) {
    Task& task = *recorded.task;
    if (task.accesses == nullptr) {
      task::build_accesses(task, worker.small.take(base::slab_class(sizeof(AccessBlock))), {});
      recorded.owns_block = true;
    }
    all.push_back(&task);
  }
  const std::vector<task::CycleEdges> edges = task::find_edges(all, worker.small);
  cycle_.period = spec_.period;
  cycle_.nodes = static_cast<std::uint32_t>(tasks_.size());
  cycle_.scope = &scope;
  cycle_.owner = this;
  cycle_.limit.store(spec_.count, std::memory_order_relaxed);
  cycle_.look_at.store(spec_.count, std::memory_order_relaxed);
  make_nodes(edges);
  make_gates(edges);
  task::Lineage& lineage = worker.runtime->lineage;
  for (std::size_t i = 0; i < all.size(); ++i) {
    Task& task = *all[i];
    if (lineage.marks()) lineage.mark(task);
    task.reach = task::Reach::entry;
    scope.count_spawned();
    task.accesses->node = nodes_[i].get();
    task.ops = &node_ops;
    task.wishes = Task::repeats;
    task.accesses->mark(AccessBlock::repeats);
    task.pending.store(0, std::memory_order_relaxed);
    task.references.store(2, std::memory_order_relaxed);  // one of the loop, one of its entry
  }
  if (!lineage.marks()) return;
  lineage_ = &lineage;
  set_priorities();
  if (lineage.flow().learns) {
    cycle_.look_at.store(std::min(2 * spec_.period, spec_.count), std::memory_order_relaxed);
  }
}

// Priorities flow up the edges: within a round exactly, and once from the next round.
void Loop::set_priorities() noexcept {
  const task::Flow& flow = lineage_->flow();
  for (const int round : {0, 1}) {
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      int priority = round == 0 ? lineage_->own_priority(*tasks_[i].task, tasks_[i].priority)
                                : tasks_[i].task->priority.load(std::memory_order_relaxed);
      for (const Node* const follower : nodes_[i]->followers()) {
        if (!flow.upward) break;
        priority = std::max(priority, follower->task->priority.load(std::memory_order_relaxed) -
                                          flow.step);
      }
      tasks_[i].task->priority.store(priority, std::memory_order_relaxed);
    }
  }
}

// The nodes belong to the scope from now on, which waits, or will wait, for this call.
void Loop::start() noexcept {
  std::vector<Node*> nodes;
  for (const auto& node : nodes_) nodes.push_back(node.get());
  task::Outcome outcome;
  task::start_nodes(nodes, first_, outcome);
  sched::act_on(*sched::current_worker(), outcome);
}

std::vector<AccessSpec> Loop::accesses() const {
  std::vector<AccessSpec> all;
  for (const Recorded& recorded : tasks_) {
    for (AccessSpec spec : task::specs_of(*recorded.task)) {
      const bool writes = spec.kind > AccessKind::in && spec.kind < AccessKind::after;
      if (writes) spec.kind = AccessKind::inout;
      all.push_back(spec);
    }
  }
  return all;
}

// ---- the call --------------------------------------------------------------------------------

// The scope of the loop, from which the functions of the waist find it while the body runs.
struct LoopScope {
  ScopeMemory memory;
  Loop* loop;
};
[[nodiscard]] Loop& loop_of(const Family& family) noexcept {
  Scope* const scope = family.current;
  return *reinterpret_cast<LoopScope*>(scope)->loop;
}

// The count of tasks after which a creator looks at what its tasks do: while the body of iterate()
// runs, each creation passes there, also without IMBREX_TASKS_AHEAD.
constexpr std::uint32_t each_time = UINT32_MAX;

void call_body(Loop& loop, const std::int64_t first, void (*const body)(void*, std::int64_t),
               void* const argument) {
  const std::int64_t period = loop.spec().period;
  for (std::int64_t i = 0; i < std::min(period, loop.spec().count - first); ++i) {
    loop.begin_iteration(i);
    body(argument, first + i);
  }
}

// Runs the body, and returns what it has thrown.
[[nodiscard]] std::exception_ptr record_all(LoopScope& opened,
                                            void (*const body)(void*, std::int64_t),
                                            void* const argument) {
  auto& scope = *std::launder(reinterpret_cast<Scope*>(opened.memory.bytes));
  Loop& loop = *opened.loop;
  Family& family = *scope.owner->family;
  const std::uint32_t unchecked = std::exchange(family.unchecked, each_time);
  std::exception_ptr error;
  try {
    call_body(loop, 0, body, argument);
    if (sched::current_worker()->runtime->options.CHECK && loop.spec().count > loop.spec().period) {
      loop.begin_comparison();
      call_body(loop, loop.spec().period, body, argument);
      loop.end_comparison();
    }
  } catch (...) {
    error = std::current_exception();
  }
  family.unchecked = unchecked;
  scope.kind = ScopeKind::iterate;
  return error;
}

// Earlier tasks of the same parent have accesses: a task that stands for all of the loop follows
// them, and starts it.
void start_after_siblings(Loop& loop) {
  struct Start {
    Loop* loop;
    static void run(void* const closure) { static_cast<const Start*>(closure)->loop->start(); }
    static void drop(void* const closure) noexcept {  // a task that it follows has failed
      Loop& failed = *static_cast<const Start*>(closure)->loop;
      failed.cancel();
      failed.start();
    }
  };
  static constexpr BodyOps ops{&Start::run, &Start::drop, nullptr};
  const std::vector<AccessSpec> accesses = loop.accesses();
  void* const memory = create_with_accesses(
      {.name = "begin of iterate()", .where = loop.spec().where, .accesses = accesses,
       .distinct = true},
      ops, sizeof(Start));
  ::new (memory) Start{&loop};
  (void)submit_with_accesses(memory, false);
}

}  // namespace

void check_recorded(Family& family, const TaskSpec& spec, const BodyOps& ops) {
  family.unchecked = each_time;
  loop_of(family).check(spec, ops);
}

Completion* record(Family& family, void* const closure) noexcept {
  Task& task = Task::of_closure(closure);
  task.scope = family.current;
  loop_of(family).add(task);
  return nullptr;
}

void refuse_recorded(const Family& family, const Task& task, const char* const reason) {
  loop_of(family).refuse(task::label_of(task), reason);
}

void refuse_in_recording(const Family& family, const char* const what) {
  throw Error(fmt::format("imbrex: {} in the body of {}: the body only creates tasks, which run "
                          "after it. Call it in a task, or outside of the loop",
                          what, place_of_loop(loop_of(family).spec())));
}

std::exception_ptr iterate(const IterateSpec& spec, void (*const body)(void*, std::int64_t),
                           void* const argument) {
  if (spec.period < 1 || spec.period > UINT32_MAX) {
    throw Error(fmt::format("imbrex: {} with .period = {}: valid: 1 to {}", place_of_loop(spec),
                            spec.period, UINT32_MAX));
  }
  if (spec.count <= 0) return nullptr;
  if (is_outside()) [[unlikely]] {  // the first use of the runtime may be a loop
    return sched::visit_to_spawn([&] { return iterate(spec, body, argument); });
  }
  check_may_wait(*sched::current_worker(), spec.call);
  Loop loop(spec);
  LoopScope opened{{}, &loop};
  open_scope(opened.memory, spec.where, ScopeKind::recording);
  auto& scope = *std::launder(reinterpret_cast<Scope*>(opened.memory.bytes));
  std::exception_ptr error = record_all(opened, body, argument);
  if (error == nullptr) {
    try {
      loop.build(*sched::current_worker(), scope);
      if (scope.owner->family->table != nullptr) {
        start_after_siblings(loop);
      } else {
        loop.start();
      }
    } catch (...) {  // no memory
      error = std::current_exception();
      loop.cancel();
      loop.start();
    }
  }
  if (error == nullptr) return close_scope(opened.memory);
  abandon_scope(opened.memory, error);
  std::rethrow_exception(error);
}

namespace {

// The node that the running code belongs to; null: none.
[[nodiscard]] const Task* running_node() noexcept {
  if (is_outside() || !in_task()) return nullptr;
  const Task* task = sched::current_worker()->task;
  while (task != nullptr && !task::is_node(*task)) task = task->is_root() ? nullptr : task->parent;
  return task;
}

}  // namespace

std::int64_t iteration() noexcept {
  const Task* const task = running_node();
  return task == nullptr ? -1 : task::node_of(*task).iteration;
}

void stop_iterating() {
  const Task* const task = running_node();
  if (task == nullptr || task != sched::current_worker()->task) {
    throw Error(fmt::format("imbrex: stop_iterating() in {}, which is no task of iterate(): call "
                            "it in a task that decides()",
                            describe_current_task()));
  }
  const Node& node = task::node_of(*task);
  if (node.extras == nullptr || node.extras->decides == nullptr) {
    throw Error(fmt::format("imbrex: stop_iterating() in task {}, which does not decide: tasks of "
                            "the next iteration may run by now. Declare it with decides()",
                            describe_current_task()));
  }
  node.cycle->end_before(node.iteration + 1);
}

bool is_last_iteration() noexcept {
  const Task* const task = running_node();
  if (task == nullptr) return false;
  const Node& node = task::node_of(*task);
  return node.cycle->limit.load(std::memory_order_relaxed) <= node.iteration + 1;
}

void check_iterates(const char* const what) {
  if (!is_outside() && in_task()) {
    const Family* const family = sched::current_worker()->task->family;
    if (family != nullptr && records(*family)) return;
  }
  throw Error(fmt::format("imbrex: {} in {}, outside of the body of iterate()", what,
                          describe_current_task()));
}

}  // namespace imbrex::detail
