// SPDX-License-Identifier: BSD-3-Clause
// Policy: which ready task runs next, and where. Sees tasks, priorities and places, never threads,
// clocks or fibers, so that it can also drive a simulation.
//
// Every entry that is pushed owns one reference to its task; who gets it from pop, steal or take
// owns that reference and must claim the task, which fails for a stale entry.
// Thread safety: push, pop, take and extract for `worker` by that worker; push and extract with
// no_worker, steal, raise, size by any thread.
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
// So many entries of a queue are looked at to find some of a kind: its lock is held meanwhile.
inline constexpr int extraction_look = 1024;

// How a task became ready.
enum class Origin : std::uint8_t {
  forked,    // spawned, and it declares no accesses
  released,  // its dependencies are satisfied, at its spawn or later
  resumed,   // what it was suspended for has happened
  yielded    // it gave way, to Place::before others; seen only by a policy that takes all
};

struct Place {
  int worker = no_worker;    // that pushes; no_worker: a thread that is none, or of another group
  int only = no_worker;      // the one worker that may run it; only for a policy that takes all
  std::uint64_t before = 0;  // how many others go before one that yields, as long as there are any
};

struct LocalQueues;
class OrderedQueue;

class Policy {
 public:
  virtual ~Policy() = default;
  virtual void push(Task& task, Place place, Origin origin) = 0;
  // The next for `worker`, if any.
  [[nodiscard]] virtual Entry pop(int worker) = 0;
  // One from elsewhere, if any. Not `eager`: leaves alone what its owner will run at once.
  [[nodiscard]] virtual Entry steal(int worker, bool eager) = 0;
  // The same in a tree of places, from the others at one distance alone, from 0, the worker's
  // innermost place, on. `busy` is set to true if there was something that its owner keeps for now:
  // who sees that takes nothing from farther away. A policy that steals nowhere has nothing.
  [[nodiscard]] virtual Entry steal_at([[maybe_unused]] int worker, [[maybe_unused]] bool eager,
                                       [[maybe_unused]] int distance, [[maybe_unused]] bool& busy) {
    return {};
  }
  // How many were stolen that way from others than the nearest ones.
  [[nodiscard]] virtual std::uint64_t far_steals() const noexcept { return 0; }
  // True if `task` was the newest entry of `worker` and is now the caller's.
  [[nodiscard]] virtual bool take(int worker, Task& task) = 0;
  // `task`, which may be queued to begin, now has a higher priority. The caller holds a reference.
  virtual void raise(Task& task, int priority) = 0;
  // Takes out entries of tasks of that kind (BodyOps) that are to begin, as many as `to` has room
  // for; of each queue those that would go last, as far as they are among the nearest there. Others
  // keep their order. How many.
  [[nodiscard]] virtual std::size_t extract(int worker, const void* kind,
                                            std::span<Task*> to) = 0;
  // How many are ready, about.
  [[nodiscard]] virtual std::int64_t size() const = 0;
  // True if `worker` would find nothing without stealing: a task that has just become ready may run
  // there at once.
  [[nodiscard]] virtual bool empty(int worker) const = 0;
  // For speed a worker goes past the virtual functions where a policy lets it: to the queues that
  // are its own, of which it then is the only one to push and pop; or to the one queue that the
  // policy has for all. Null: not so. Constant.
  [[nodiscard]] virtual LocalQueues* local_queues([[maybe_unused]] int worker) { return nullptr; }
  [[nodiscard]] virtual OrderedQueue* only_queue() { return nullptr; }
  // Says what the policy makes of the priorities that the program gives.
  [[nodiscard]] virtual task::Flow flow() const { return {}; }
  // How urgent what tasks of this priority have begun is to whoever orders that: the larger, the
  // earlier it goes. 0 for all where priorities mean nothing.
  [[nodiscard]] virtual int urgency_of([[maybe_unused]] int priority) const noexcept { return 0; }
  // True: tied, yielding and foreign tasks go through the policy too, and one worker runs at a
  // time; places have no policies of their own.
  [[nodiscard]] virtual bool takes_all() const { return false; }
  // The worker that runs, of a policy that takes all; no_worker: none does.
  [[nodiscard]] virtual int turn() const { return no_worker; }
  // The thread of `worker`, whose turn it is, is blocked by code of the program's: others have
  // their turns until it asks for a task again.
  virtual void pass_over([[maybe_unused]] int worker) {}
  // The tasks of that group may be run by `workers` only. For a policy that takes all, before the
  // first task.
  virtual void confine([[maybe_unused]] std::uint16_t group,
                       [[maybe_unused]] const std::vector<int>& workers) {}
};

// A policy that takes all needs one thing of its surroundings: to wake one worker.
using Wake = void (*)(void* context, int worker);

struct PolicySetup {
  int workers;
  // For each worker the others, nearest first; empty: nothing is known of their places.
  std::vector<std::vector<int>> nearest;
  std::vector<int> domain;  // for each worker, from 0 on: those with one number are near
  Wake wake;
  void* wake_context;
  // In a tree of places, for each worker and distance, from 0, its innermost place, on: how many of
  // `nearest` are within that distance. Empty: there is no tree.
  std::vector<std::vector<int>> within = {};
  // One thread calls for all workers: a simulator.
  bool one_thread = false;
};

// `name` as in IMBREX_POLICY. Throws Error if there is none of that name.
[[nodiscard]] std::unique_ptr<Policy> make_policy(const std::string& name,
                                                  const PolicySetup& setup);

// One for each file.
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
