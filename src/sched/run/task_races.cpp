// SPDX-License-Identifier: BSD-3-Clause
// Only in the variant for ThreadSanitizer; docs/design/races.md has the argument.
#include "sched/run/task_races.hpp"

#include "task/access/order_keys.hpp"
#include "task/cycle/node.hpp"

#include <cstddef>

namespace imbrex::sched::task_races {

namespace tell = trace::races;
namespace keys = task::order_keys;
using task::Scope;

namespace {

struct Tell {
  static void after(const void* const key) noexcept { tell::after(key); }
  static void before(const void* const key) noexcept { tell::before(key); }
  static void after_end(const detail::Completion& other) noexcept { tell::after(&other.event); }
  static bool has_ranges() noexcept { return true; }
  static bool mutexes_order() noexcept { return true; }
};

// The gate that an instance of a node has passed, or opens (task/cycle/node.hpp); null: none.
[[nodiscard]] const void* gate_of(const Task& task, task::Gate* task::NodeExtras::*const which) {
  if (!task::is_node(task) || task::node_of(task).extras == nullptr) return nullptr;
  return (*task::node_of(task).extras).*which;
}

// The task comes after all predecessors of its accesses, and after siblings that access everything;
// an instance of a node also after the one before.
void follow_all(const Task& task) noexcept {
  tell::after(&task);
  if (const void* const gate = gate_of(task, &task::NodeExtras::gate)) tell::after(gate);
  tell::after_holds();
  keys::begin(task, Tell());
}

void precede_all(const Task& task) noexcept {
  keys::end(task, Tell());
  if (task::is_node(task)) tell::before(&task);
  if (const void* const gate = gate_of(task, &task::NodeExtras::decides)) tell::before(gate);
  tell::before(&task.event);
  tell::before(keys::key_of_children(*task.scope));
  tell::before(keys::key_of_descendants(*task.scope));
}

}  // namespace

Body::Body(Task& task) noexcept : task_(task), inside_(task.name) { follow_all(task); }
Body::~Body() { precede_all(task_); }

void call(void (*const function)(void*), void* const argument) {
  tell::call(current_worker()->fiber->stack.bottom, function, argument);
}

void spawn(const Task& task) noexcept { tell::before(&task); }

void release(const Task& task, const void* const address, const std::size_t bytes) noexcept {
  keys::release(task, address, bytes, Tell());
}

void waited(const Scope& scope, const task::Await what) noexcept {
  tell::after(keys::key_of_children(scope));
  if (what == task::Await::descendants) tell::after(keys::key_of_descendants(scope));
  tell::after_holds();
}

void outlive(const Task& task) noexcept {
  tell::after(&task.event);
  tell::after(&task.references);
}

}  // namespace imbrex::sched::task_races
