// SPDX-License-Identifier: BSD-3-Clause
// The end of one instance of a node (cycle/node.hpp), and how the descriptor gets ready for the
// next one.
#pragma once

#include "task/cycle/node.hpp"

namespace imbrex::task {

// The instance of `task` is complete: it arrives at the followers, and its life ends with those of
// its descendants.
inline void complete_instance(Task& task, Outcome& outcome) noexcept;
// complete_instance() for an instance that leaves nothing behind, passes no failure on, and does
// not decide.
[[nodiscard]] inline bool ends_as_usual(const Task& task) noexcept;
inline void complete_usual(Task& task, Outcome& outcome) noexcept;
// The life of the instance has ended: the next one may follow. If the instance has left something
// behind that a worker must give back, `task` is among the dead of the outcome, and the worker
// calls begin_again() then.
void end_instance(Task& task, Outcome& outcome) noexcept;
void begin_again(Task& task, Outcome& outcome) noexcept;

// The running instance of `task` is about to end an access apart from itself: the edges wait at the
// task's event from now on, where Releases takes them over. No effect a second time in one
// instance.
[[gnu::cold, gnu::noinline]] void put_edges_on_event(Task& task) noexcept;

// The first instances may begin, as far as they wait for nothing. `first[i]` is the number of edges
// to nodes[i] in the first round. The scope must not end meanwhile.
void start_nodes(std::span<Node* const> nodes, std::span<const std::int32_t> first,
                 Outcome& outcome) noexcept;

// ---- bodies ----------------------------------------------------------------------------------

// complete_instance() for one that does not end as usual, or was skipped.
[[gnu::noinline]] void complete_unusual(Task& task, Outcome& outcome) noexcept;
// The last step after `arrivals` at nodes of the loop with this scope: counts those that have
// retired. With that the scope may end, and the nodes with it.
[[gnu::noinline]] void count_retired(Arrivals& arrivals, Scope& scope, Outcome& outcome) noexcept;

// From its arrival at itself on, another thread may run the node, or end the loop: nothing of the
// loop is touched then, unless a node retires here.
inline void arrive_at_itself(Node& node, Arrivals& arrivals) noexcept {
  const Cycle& cycle = *node.cycle;
  Task& task = *node.task;
  node.iteration += cycle.period;
  task.id += cycle.nodes;  // the queues take instances in the order of a loop that creates tasks
  task.state.store(State::created, std::memory_order_relaxed);  // published by the arrival
  arrivals.at(node);
}

inline bool ends_as_usual(const Task& task) noexcept {
  return task.wishes == Task::repeats && task.accesses->is_plain_node() &&
         task.failure == nullptr && task.family == nullptr && node_of(task).extras == nullptr;
}

inline void complete_instance(Task& task, Outcome& outcome) noexcept {
  ends_as_usual(task) ? complete_usual(task, outcome) : complete_unusual(task, outcome);
}

inline void complete_usual(Task& task, Outcome& outcome) noexcept {
  Node& node = node_of(task);
  Scope& scope = *task.scope;
  Arrivals arrivals(outcome);
  arrivals.at_followers(node);
  arrive_at_itself(node, arrivals);
  if (!arrivals.is_finished()) [[unlikely]] count_retired(arrivals, scope, outcome);
}

}  // namespace imbrex::task
