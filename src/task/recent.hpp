// SPDX-License-Identifier: BSD-3-Clause
// The tasks created last that have not begun and are not known to send: knowledge from a running
// task reaches the tasks created before it.
//
// Thread safety: any thread. Owns one reference to each task. A task that has begun when it is
// added stays until another task takes its place or its creator removes it.
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
      other = place_of(task);
      write(place_of(task), &task);
      used_ = std::max(used_, task.id % size + 1);
    }
    if (other != nullptr) lose(*other, outcome);
  }

  // `task` begins and leaves. A task that was added before any other thread could reach it can be
  // checked for its presence by one read.
  void remove(Task& task, Outcome& outcome) noexcept {
    if (task.accesses == nullptr &&
        std::atomic_ref(place_of(task)).load(std::memory_order_relaxed) != &task) {
      return;
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
  // Far more than a creator's window. Where no task is ready, as on a rank that waits for its first
  // message, a creator goes on beyond its window, and its first tasks run first.
  static constexpr std::size_t size = 65536;

  // A task created `size` tasks later has the same place.
  [[nodiscard]] Task*& place_of(const Task& task) noexcept { return tasks_[task.id % size]; }

  static void write(Task*& place, Task* const task) noexcept {
    std::atomic_ref(place).store(task, std::memory_order_relaxed);
  }

  base::SpinLock lock_;
  std::size_t used_ IMBREX_GUARDED_BY(lock_) = 0;  // places above were never written
  // Written under the lock; remove() reads it before it takes the lock.
  const base::Zeros<Task*> tasks_ = base::zeros<Task*>(size);
};

}  // namespace imbrex::task
