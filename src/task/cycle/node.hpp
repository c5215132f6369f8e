// SPDX-License-Identifier: BSD-3-Clause
// Node: a task of a loop's graph, which runs once in each round; and Cycle, what the nodes of one
// loop share (imbrex::iterate). The graph is built once: an edge leads to a follower in the same
// round, or from the last accesses of a round to the first of the next. (The idea of a cyclic graph
// without a barrier: Alvarez et al., taskiter, arXiv 2208.06332, 2022.)
//
// A node is an ordinary task while an instance of it runs. Between two instances its descriptor
// waits for arrivals: one of each edge, and one of its own instance before, whose descendants and
// holds have then ended.
//
// Invariants:
//   (1) `needed` counts the arrivals that the next instance waits for. The thread that brings it to
//       zero sets it again, before the instance may begin. No arrival comes too early for the
//       instance after that: an edge u -> v stands for two accesses that conflict. If it lies
//       within a round, v of this round and u of the next conflict, too, so a path leads from the
//       one to the other; u therefore cannot arrive for the next round before v of this round has
//       ended, or has ended the access early. If it leads to the next round, the same holds for v
//       there and u there. So one round is the most that two neighbours can be apart, and one count
//       is enough. tests/models/iterate.pml checks it.
//   (2) a task that decides has no path back to those that it lets go, so its arrivals are no edge:
//       they open a Gate, which counts iterations and keeps who comes early.
//   (3) `limit` only falls. An instance at or above it is skipped: it arrives at its followers, so
//       that they find out, too, and retires. A node that has retired touches no other node, and
//       what arrives there has no effect; the loop ends when all nodes have retired.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "task/access_block.hpp"

namespace imbrex::task {

struct Cycle;
struct Node;

// Nodes that wait until the deciding tasks of one iteration are complete.
class Gate {
 public:
  // Iterations up to `open`, and each `period`-th from there on.
  Gate(std::int64_t open, std::int64_t period) noexcept : open_(open), period_(period) {}
  void add_decider() noexcept IMBREX_LOCKS_NOT_SEEN { left_ = ++deciders_; }  // before the start

  // False: the node waits until the next iteration has decided, unless one from `iteration` on has.
  [[nodiscard]] bool let_through(Node& node, std::int64_t iteration) noexcept;
  // A deciding task of the next iteration is complete. Returns who may go.
  [[nodiscard]] ReadyList decide() noexcept;

 private:
  base::SpinLock lock_;
  std::int64_t open_ IMBREX_GUARDED_BY(lock_);  // the last one that has decided
  const std::int64_t period_;
  int deciders_ = 0;
  int left_ IMBREX_GUARDED_BY(lock_) = 0;       // that have not decided in the next one
  ReadyList waiting_ IMBREX_GUARDED_BY(lock_);
};

// An edge as a waiter: used in an instance that ends an access apart from itself, or fails.
struct EdgeWaiter : Waiter {
  Node* follower = nullptr;
};

// What few nodes need.
struct NodeExtras {
  Gate* gate = nullptr;     // that an instance must pass before it begins
  Gate* decides = nullptr;  // that an instance opens when it is complete
  std::vector<EdgeWaiter> edges;  // made by the first instance that needs them
  bool edges_wait = false;        // at the event of the task, in this instance
};

// Allocated with its followers behind it, at the beginning of a cache line. In a list, nodes are
// linked by Task::next_ready.
struct Node : Instance {
  std::atomic<std::int32_t> needed{0};   // (1)
  std::int32_t degree = 1;               // edges to this node, and one for its instance before
  Task* task = nullptr;
  Cycle* cycle = nullptr;
  void (*run)(void* closure) = nullptr;  // the body: RepeatOps::run
  const detail::BodyOps* ops = nullptr;  // the task's own; the descriptor has those of nodes
  std::uint32_t follower_count = 0;
  bool retired = false;                  // (3)
  std::unique_ptr<NodeExtras> extras;

  [[nodiscard]] std::span<Node*> followers() noexcept {
    return {reinterpret_cast<Node**>(this + 1), follower_count};
  }
};

struct Cycle {
  std::atomic<std::int64_t> limit{0};  // (3)
  // The first iteration before whose instances a worker must look: the limit, or the iteration in
  // which the priorities are found anew, since the kinds of tasks that send are known by then.
  std::atomic<std::int64_t> look_at{0};
  std::int64_t period = 1;
  std::uint32_t nodes = 0;             // number of nodes
  Scope* scope = nullptr;              // counts the nodes
  void* owner = nullptr;               // the loop, for sched/

  // No iteration from this one on begins.
  void end_before(std::int64_t iteration) noexcept;
};

[[nodiscard]] inline bool is_node(const Task& task) noexcept {
  return (task.wishes & Task::repeats) != 0;
}
// REQUIRES: is_node().
[[nodiscard]] inline Node& node_of(const Task& task) noexcept {
  return static_cast<Node&>(*task.accesses->node);
}

// Arrivals at nodes, and what they lead to; finish() ends what has been begun, so that no call
// nests.
class Arrivals {
 public:
  explicit Arrivals(Outcome& outcome) noexcept : outcome_(outcome) {}
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  // One of the arrivals that the node waits for.
  void at(Node& node) noexcept {
    // As Task::release().
    if (node.needed.load(std::memory_order_acquire) == 1) {
      node.needed.store(0, std::memory_order_relaxed);
    } else if (node.needed.fetch_sub(1, std::memory_order_acq_rel) != 1) {
      return;
    }
    all_arrived(node);
  }
  void at_followers(Node& node) noexcept {
    for (Node* const follower : node.followers()) at(*follower);
  }
  // The node has no arrival to wait for: it becomes ready, waits at a gate, or is skipped.
  void all_arrived(Node& node) noexcept {
    if (node.iteration < node.cycle->limit.load(std::memory_order_relaxed) && !node.retired &&
        node.extras == nullptr) [[likely]] {
      make_ready(node);
    } else {
      arrive_slowly(node);
    }
  }
  // The instance of a deciding node is complete.
  void decide(Gate& gate) noexcept;
  // The node's life in the loop ends.
  void retire(Node& node) noexcept;
  // Whether finish() must be called.
  [[nodiscard]] bool is_finished() const noexcept { return skipped_.empty() && retired_ == 0; }
  // Skips what has to be skipped. Returns how many nodes have retired: the caller counts them in
  // the scope as its last step.
  [[nodiscard]] std::uint32_t finish() noexcept {
    if (!skipped_.empty()) skip_all();
    return retired_;
  }

 private:
  void make_ready(Node& node) noexcept {
    node.needed.store(node.degree, std::memory_order_relaxed);  // (1); published as `ready` is
    Task& task = *node.task;
    if (needs_mutexes(task)) [[unlikely]] {
      make_ready_with_mutexes(task, outcome_.ready);
    } else {
      outcome_.ready.push(task);
    }
  }
  [[gnu::noinline]] void arrive_slowly(Node& node) noexcept;
  [[gnu::noinline]] void skip_all() noexcept;

  Outcome& outcome_;
  ReadyList skipped_;
  std::uint32_t retired_ = 0;
};

}  // namespace imbrex::task
