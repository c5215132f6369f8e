// SPDX-License-Identifier: BSD-3-Clause
// The tasks created last that have not begun and are not known to send: knowledge from a running
// task reaches the tasks created before it.
//
// A task's place follows from its id. Where two tasks that have not begun have one place, their
// number is doubled: a rank that waits for its first message creates far more tasks than a window.
//
// Thread safety: any thread. Owns one reference to each task. A task that has begun when it is
// added stays until another task takes its place or its creator removes it.
// Invariant: double_places() writes a task to its new place, then `mask_`, then clears the old
// place. A thread that reads a cleared place therefore also reads the new mask.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "base/zeros.hpp"
#include "task/scope_counts.hpp"

namespace imbrex::task {

class Recent {
 public:
  // Adds a task; another one leaves if there are too many.
  void add(Task& task, Outcome& outcome) noexcept {
    add_reference(task);
    Task* other;
    {
      const std::lock_guard guard(lock_);
      while (is_waiting(place_of(task)) && double_places()) {}
      other = place_of(task);
      write(place_of(task), &task);
      used_ = std::max(used_, index_of(task, mask_.load(std::memory_order_relaxed)) + 1);
    }
    if (other != nullptr) lose(*other, outcome);
  }

  // `task` begins and leaves. A task that was added before any other thread could reach it can be
  // checked for its presence by one read.
  void remove(Task& task, Outcome& outcome) noexcept {
    if (task.accesses == nullptr) {
      const std::size_t mask = mask_.load(std::memory_order_acquire);
      Task* const there =
          std::atomic_ref(tasks_[index_of(task, mask)]).load(std::memory_order_acquire);
      if (there != &task && mask == mask_.load(std::memory_order_relaxed)) return;
    }
    {
      const std::lock_guard guard(lock_);
      Task*& place = place_of(task);
      if (place != &task) return;
      write(place, nullptr);
    }
    lose(task, outcome);
  }

  // Calls visit(task) for each task; the visit must not call this class.
  template <class Visit>
  void for_each(Visit visit) noexcept {
    const std::lock_guard guard(lock_);
    for (std::size_t place = 0; place < used_; ++place) {
      if (tasks_[place] != nullptr) visit(*tasks_[place]);
    }
  }

 private:
  // Far more than a creator's window, and small enough for a cache.
  static constexpr std::size_t size_least = 65536;
  static constexpr std::size_t size_most = std::size_t{1} << 22;

  [[nodiscard]] static std::size_t index_of(const Task& task, const std::size_t mask) noexcept {
    return task.id & mask;
  }
  // A task created as many tasks later as there are places has the same place.
  [[nodiscard]] Task*& place_of(const Task& task) noexcept {
    return tasks_[index_of(task, mask_.load(std::memory_order_relaxed))];
  }
  [[nodiscard]] static bool is_waiting(const Task* const task) noexcept {
    if (task == nullptr) return false;
    const State state = task->state.load(std::memory_order_relaxed);
    return state == State::created || state == State::ready;
  }
  // False if there are as many places as there may be.
  [[gnu::cold, gnu::noinline]] bool double_places() noexcept IMBREX_REQUIRES(lock_) {
    const std::size_t mask = mask_.load(std::memory_order_relaxed);
    if (mask + 1 == size_most) return false;
    const std::size_t doubled = 2 * mask + 1;
    const std::size_t end = std::min(used_, mask + 1);
    for (std::size_t place = 0; place < end; ++place) {
      Task* const task = tasks_[place];
      if (task != nullptr && index_of(*task, doubled) != place) {
        write(tasks_[index_of(*task, doubled)], task);
        used_ = std::max(used_, index_of(*task, doubled) + 1);
      }
    }
    mask_.store(doubled, std::memory_order_release);  // pairs with remove()
    for (std::size_t place = 0; place < end; ++place) {
      Task* const task = tasks_[place];
      if (task != nullptr && index_of(*task, doubled) != place) write(tasks_[place], nullptr);
    }
    return true;
  }

  // release: see the invariant.
  static void write(Task*& place, Task* const task) noexcept {
    std::atomic_ref(place).store(task, std::memory_order_release);
  }

  base::SpinLock lock_;
  std::size_t used_ IMBREX_GUARDED_BY(lock_) = 0;  // places above were never written
  // Written under the lock; remove() reads it before it takes the lock.
  const base::Zeros<Task*> tasks_ = base::zeros<Task*>(size_most);
  std::atomic<std::size_t> mask_{size_least - 1};  // written under the lock; the places, minus one
};

}  // namespace imbrex::task
