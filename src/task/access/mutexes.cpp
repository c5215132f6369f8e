// SPDX-License-Identifier: BSD-3-Clause
#include "task/access/mutexes.hpp"

#include <cstddef>
#include <mutex>

namespace imbrex::task {

namespace {

// Returns true if `access` has its mutex now; otherwise it waits in the mutex's queue.
[[nodiscard]] bool acquire(Mutex& mutex, Access& access) noexcept {
  const std::lock_guard guard(mutex.lock);
  if (mutex.owner == nullptr) {
    mutex.owner = access.edge.task;
    return true;
  }
  access.edge.next = nullptr;
  if (mutex.first == nullptr) {
    mutex.first = &access;
  } else {
    mutex.last->edge.next = &access.edge;
  }
  mutex.last = &access;
  return false;
}

// The access whose first member is `edge`.
[[nodiscard]] Access* access_of(Waiter* const edge) noexcept {
  return reinterpret_cast<Access*>(edge);
}
static_assert(offsetof(Access, edge) == 0);

}  // namespace

void give_back(Access& access, ReadyList& ready) noexcept {
  Mutex& mutex = *access.mutex();
  Access* next;
  {
    const std::lock_guard guard(mutex.lock);
    next = mutex.first;
    mutex.owner = next == nullptr ? nullptr : next->edge.task;
    if (next != nullptr) mutex.first = access_of(next->edge.next);
  }
  if (next == nullptr) return;
  ++next->edge.task->accesses->acquired;
  make_ready_with_mutexes(*next->edge.task, ready);
}

void drop_mutex(Mutex* const mutex) noexcept {
  if (mutex->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete mutex;
}

bool needs_mutexes(const Task& task) noexcept {
  return (task.accesses->marks & AccessBlock::mutexes) != 0;
}

void make_ready_with_mutexes(Task& task, ReadyList& ready) noexcept {
  AccessBlock& block = *task.accesses;
  while (block.acquired < block.count) {
    Access& access = block.accesses()[block.acquired];
    // A queued access may be given the mutex, and its task may resume, in another thread.
    if (access.mutex() != nullptr && !acquire(*access.mutex(), access)) return;
    ++block.acquired;
  }
  ready.push(task);
}

}  // namespace imbrex::task
