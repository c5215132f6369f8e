// SPDX-License-Identifier: BSD-3-Clause
// Policy: which ready task runs next, and where. Sees tasks, priorities and places, never threads,
// clocks or fibers, so that it can also drive a simulation.
//
// Every pushed entry owns one reference to its task. The caller of pop, steal or take owns that
// reference and must claim the task, which fails for a stale entry.
// Thread safety: `worker` itself calls push, pop, take and extract for `worker`; any thread calls
// push and extract with no_worker, steal, raise, size.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "task/descriptor.hpp"
#include "task/lineage.hpp"

namespace imbrex::sched {

using task::Entry;
using task::Task;

inline constexpr int no_worker = -1;

[[nodiscard]] inline bool is_of(const Task& task, const void* const kind) noexcept {
  return task.ops != nullptr && task.ops->kind == kind;
}
// The number of entries of a queue that a search by kind examines; the lock is held meanwhile.
inline constexpr int extraction_look = 1024;

// How a task became ready.
enum class Origin : std::uint8_t {
  forked,    // spawned without accesses
  released,  // its dependencies are satisfied, at its spawn or later
  resumed,   // the event that it waited for has fired
  yielded    // it gave way, to Place::before other tasks; only for a policy that takes all
};

struct Place {
  int worker = no_worker;    // the pushing worker; no_worker: a thread that is none, or a worker of
                             // another group
  int only = no_worker;      // the only worker that may run it; only for a policy that takes all
  std::uint64_t before = 0;  // number of other tasks that go before one that yields, as long as
                             // there are any
};

struct LocalQueues;
class OrderedQueue;

class Policy {
 public:
  virtual ~Policy() = default;
  virtual void push(Task& task, Place place, Origin origin) = 0;
  // Takes the next entry for `worker`, if any.
  [[nodiscard]] virtual Entry pop(int worker) = 0;
  // Takes an entry of another worker, if any. Without `eager`: not an entry that its owner will run
  // at once.
  [[nodiscard]] virtual Entry steal(int worker, bool eager) = 0;
  // steal() in a tree of places, only from the workers at one distance, from 0, the worker's
  // innermost place, on. Sets `busy` to true if there was an entry that its owner keeps for now:
  // the caller then takes nothing from farther away. A policy that does not steal returns nothing.
  [[nodiscard]] virtual Entry steal_at([[maybe_unused]] int worker, [[maybe_unused]] bool eager,
                                       [[maybe_unused]] int distance, [[maybe_unused]] bool& busy) {
    return {};
  }
  // The number of entries that steal_at() took from other workers than the nearest ones.
  [[nodiscard]] virtual std::uint64_t far_steals() const noexcept { return 0; }
  // True if `task` was the newest entry of `worker` and is now the caller's.
  [[nodiscard]] virtual bool take(int worker, Task& task) = 0;
  // `task`, which may be queued to begin, has a higher priority now. The caller holds a reference.
  virtual void raise(Task& task, int priority) = 0;
  // Takes out entries of tasks of that kind (BodyOps) that have not begun, as many as `to` has room
  // for. In each queue it takes, among the nearest entries, those that would go last; the others
  // keep their order. Returns the number.
  [[nodiscard]] virtual std::size_t extract(int worker, const void* kind,
                                            std::span<Task*> to) = 0;
  // The number of ready tasks, about.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  // True if `worker` would find nothing without stealing: a task that has just become ready may run
  // there at once.
  [[nodiscard]] virtual bool empty(int worker) const = 0;
  // For speed a worker bypasses the virtual functions where the policy allows it: it uses its own
  // queues directly, and is then the only one to push and pop there; or the one queue that the
  // policy has for all workers. Null: not allowed. Constant.
  [[nodiscard]] virtual LocalQueues* local_queues([[maybe_unused]] int worker) { return nullptr; }
  [[nodiscard]] virtual OrderedQueue* only_queue() { return nullptr; }
  // How the policy uses the priorities of the program.
  [[nodiscard]] virtual task::Flow flow() const { return {}; }
  // The urgency of operations that tasks of this priority have begun: the larger, the earlier. 0
  // for all where priorities have no meaning.
  [[nodiscard]] virtual int urgency_of([[maybe_unused]] int priority) const noexcept { return 0; }
  // True: tied, yielding and foreign tasks go through the policy, too, and one worker runs at a
  // time; places have no policies of their own.
  [[nodiscard]] virtual bool takes_all() const { return false; }
  // For a policy that takes all: the running worker; no_worker: none.
  [[nodiscard]] virtual int turn() const { return no_worker; }
  // The thread of `worker`, which has the turn, is blocked by code of the program: other workers
  // have their turns until it asks for a task again.
  virtual void pass_over([[maybe_unused]] int worker) {}
  // Only `workers` may run the tasks of that group. For a policy that takes all; called before the
  // first task.
  virtual void confine([[maybe_unused]] std::uint16_t group,
                       [[maybe_unused]] const std::vector<int>& workers) {}
};

// The only thing that a policy that takes all needs from outside: wakes one worker.
using Wake = void (*)(void* context, int worker);

struct PolicySetup {
  int workers;
  // For each worker the other workers, nearest first; empty: their places are unknown.
  std::vector<std::vector<int>> nearest;
  std::vector<int> domain;  // number of each worker's domain, from 0 on; workers of one domain are
                            // near
  Wake wake;
  void* wake_context;
  // In a tree of places, for each worker and distance (0 is its innermost place): how many workers
  // of `nearest` are within that distance. Empty: there is no tree.
  std::vector<std::vector<int>> within = {};
  // One thread calls for all workers: a simulator.
  bool one_thread = false;
};

// `name` as in IMBREX_POLICY. Throws Error if there is no such policy.
[[nodiscard]] std::unique_ptr<Policy> make_policy(const std::string& name,
                                                  const PolicySetup& setup);

// One function for each file.
[[nodiscard]] std::unique_ptr<Policy> make_stealing(const PolicySetup& setup, bool graph_order);
struct Order {
  bool by_priority = false;    // else by creation alone
  bool resumed_first = false;  // among equal priorities; else by creation there too
  task::Flow flow = {};
};
[[nodiscard]] std::unique_ptr<Policy> make_ordered(const PolicySetup& setup,
                                                   const Order& order);
[[nodiscard]] std::unique_ptr<Policy> make_seeded(const PolicySetup& setup, std::uint64_t seed);

}  // namespace imbrex::sched
