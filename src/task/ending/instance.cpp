// SPDX-License-Identifier: BSD-3-Clause
#include "task/ending/instance.hpp"

#include <memory>
#include <utility>

#include "task/access/accesses.hpp"
#include "task/access/inheritance.hpp"
#include "task/access/releases.hpp"
#include "task/ending/complete.hpp"

namespace imbrex::task {

namespace {

// Arrivals at nodes of one loop, with count_retired() at their end.
class CountedArrivals : public Arrivals {
 public:
  CountedArrivals(const Node& node, Outcome& outcome) noexcept
      : Arrivals(outcome), outcome_(outcome), scope_(*node.cycle->scope) {}
  ~CountedArrivals() {
    if (!is_finished()) count_retired(*this, scope_, outcome_);
  }
  CountedArrivals(const CountedArrivals&) = delete;
  CountedArrivals& operator=(const CountedArrivals&) = delete;

 private:
  Outcome& outcome_;
  Scope& scope_;
};

Waiter* arrive_by_edge(Waiter& waiter, Outcome& outcome) noexcept {
  Node& follower = *static_cast<EdgeWaiter&>(waiter).follower;
  CountedArrivals(follower, outcome).at(follower);
  return nullptr;
}

// The edges, one by one: some wait for an access that is still open, or pass a failure on.
[[gnu::cold, gnu::noinline]] void let_edges_go(Task& task, Outcome& outcome) noexcept {
  put_edges_on_event(task);
  std::uintptr_t head = EventWord::fired;
  (void)event::exchange(task.event, head);
  Waiter* first = event::first_waiter(head);
  if ((head & event::swept_bit) != 0) first = fire_apart(task, first);
  end_accesses(task, first, outcome.ready);
  event::let_go_all(first, outcome);
}

constexpr std::uint8_t dirty = AccessBlock::failed | AccessBlock::apart;

// A failure that was inherited stays. If it does not concern the instance that has ended, this has
// ended the access early, and a task that the next instance follows has failed already. Otherwise
// there is no next instance.
[[gnu::cold, gnu::noinline]] void clean(AccessBlock& block) noexcept {
  std::atomic_ref(block.marks)
      .fetch_and(static_cast<std::uint8_t>(~AccessBlock::apart), std::memory_order_relaxed);
  if (Rare* const rare = block.rare.load(std::memory_order_acquire)) {
    const std::unique_ptr<Releases> releases(
        rare->releases.exchange(nullptr, std::memory_order_acq_rel));
    if (releases != nullptr) releases->forget_failures();
  }
  for (Access& access : block.accesses()) {
    access.end.store(End::with_task, std::memory_order_relaxed);
  }
}

void begin_again(Task& task, Arrivals& arrivals) noexcept {
  Node& node = node_of(task);
  AccessBlock& block = *task.accesses;
  if (block.has_mark(dirty)) [[unlikely]] clean(block);
  block.acquired = 0;
  if (node.extras != nullptr) node.extras->edges_wait = false;
  task.event.head.store(0, std::memory_order_relaxed);
  task.wishes = Task::repeats;
  task.locks = 0;
  arrive_at_itself(node, arrivals);
}

void end_instance(Task& task, Arrivals& arrivals, Outcome& outcome) noexcept {
  Family* const family = task.family;
  if (family == nullptr && task.failure == nullptr) [[likely]] return begin_again(task, arrivals);
  if (family != nullptr && family->children.failures != nullptr) {
    task.scope->fail_with(family->children);
    node_of(task).cycle->end_before(node_of(task).iteration + 1);
  }
  outcome.dead.push(task);
}

}  // namespace

void put_edges_on_event(Task& task) noexcept {
  Node& node = node_of(task);
  if (node.extras == nullptr) node.extras = std::make_unique<NodeExtras>();
  NodeExtras& extras = *node.extras;
  if (std::exchange(extras.edges_wait, true)) return;
  if (extras.edges.empty()) extras.edges = std::vector<EdgeWaiter>(node.follower_count);
  for (std::size_t i = 0; i < extras.edges.size(); ++i) {
    EdgeWaiter& edge = extras.edges[i];
    edge.follower = node.followers()[i];
    edge.task = edge.follower->task;
    edge.notify = &arrive_by_edge;
    edge.follows.store(reinterpret_cast<std::uintptr_t>(&task), std::memory_order_relaxed);
    (void)event::add(task.event, edge);  // the task runs: the event has not fired
  }
}

void count_retired(Arrivals& arrivals, Scope& scope, Outcome& outcome) noexcept {
  Tally tally{&scope, arrivals.finish() * (Scope::one_complete | Scope::one_deep)};
  flush(tally, outcome);
}

void complete_unusual(Task& task, Outcome& outcome) noexcept {
  Node& node = node_of(task);
  CountedArrivals arrivals(node, outcome);
  if ((task.wishes & Task::skipped) != 0) {
    end_accesses(task, nullptr, outcome.ready);  // it has the mutexes, since it was ready
    return arrivals.retire(node);
  }
  if (task.failure != nullptr) [[unlikely]] {
    task.scope->fail(*task.failure);
    node.cycle->end_before(node.iteration + 1);
  }
  task.state.store(State::complete, std::memory_order_release);
  if (task.failure != nullptr || task.accesses->has_mark(dirty)) [[unlikely]] {
    let_edges_go(task, outcome);
  } else {
    end_accesses(task, nullptr, outcome.ready);
    arrivals.at_followers(node);
  }
  if (node.extras != nullptr && node.extras->decides != nullptr) {
    arrivals.decide(*node.extras->decides);
  }
  // The last descendant, on another worker, may end the life at once.
  if (task.family == nullptr || task.family->children.begin_wait(Await::life)) {
    end_instance(task, arrivals, outcome);
  }
}

void end_instance(Task& task, Outcome& outcome) noexcept {
  CountedArrivals arrivals(node_of(task), outcome);
  end_instance(task, arrivals, outcome);
}

void begin_again(Task& task, Outcome& outcome) noexcept {
  CountedArrivals arrivals(node_of(task), outcome);
  begin_again(task, arrivals);
}

void start_nodes(const std::span<Node* const> nodes, const std::span<const std::int32_t> first,
                 Outcome& outcome) noexcept {
  if (nodes.empty()) return;
  CountedArrivals arrivals(*nodes.front(), outcome);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (first[i] == 0) arrivals.all_arrived(*nodes[i]);
  }
}

}  // namespace imbrex::task
