// SPDX-License-Identifier: BSD-3-Clause
// The tasks created last that have not begun, and of which nobody knew that they send: so that what
// a running task teaches reaches those created before.
//
// Thread safety: any thread. Holds one reference to each. A task that has begun when it is added
// stays until another takes its place: its creator removes it.
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
  // Forgets another, if there are too many.
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

  // `task` begins: it is nobody's concern any more. Where it was added before anybody else could
  // reach it, a look tells whether it is here.
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

  // visit(task) for each; it must not come back here.
  template <class Visit>
  void for_each(Visit visit) noexcept {
    const std::lock_guard guard(lock_);
    for (std::size_t place = 0; place < used_; ++place) {
      if (tasks_[place] != nullptr) visit(*tasks_[place]);
    }
  }

 private:
  // Far more than a creator's window: where nothing is ready, as on a rank that waits for its first
  // message, it goes on beyond that, and what it made first is what runs first.
  static constexpr std::size_t size = 65536;

  // A task created `size` tasks later has the same.
  [[nodiscard]] Task*& place_of(const Task& task) noexcept { return tasks_[task.id % size]; }

  static void write(Task*& place, Task* const task) noexcept {
    std::atomic_ref(place).store(task, std::memory_order_relaxed);
  }

  base::SpinLock lock_;
  std::size_t used_ IMBREX_GUARDED_BY(lock_) = 0;  // places beyond were never written
  // Written under the lock; remove() looks before it takes it.
  const base::Zeros<Task*> tasks_ = base::zeros<Task*>(size);
};

}  // namespace imbrex::task
