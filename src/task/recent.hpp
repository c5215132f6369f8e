// SPDX-License-Identifier: BSD-3-Clause
// The tasks created last that have not begun, and of which nobody knew that they send: so that what
// a running task teaches reaches those created before.
//
// Thread safety: any thread. Holds one reference to each. A task that has begun when it is added
// stays until another takes its place: its creator removes it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>

#include "base/spin_lock.hpp"
#include "task/scope.hpp"

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
    for (Task* const task : *tasks_) {
      if (task != nullptr) visit(*task);
    }
  }

 private:
  // Eight times IMBREX_WINDOW's default: a creator goes on beyond it where nothing is ready, and what
  // it made first is what runs first.
  static constexpr std::size_t size = 8192;

  // A task created `size` tasks later has the same.
  [[nodiscard]] Task*& place_of(const Task& task) noexcept { return (*tasks_)[task.id % size]; }

  static void write(Task*& place, Task* const task) noexcept {
    std::atomic_ref(place).store(task, std::memory_order_relaxed);
  }

  base::SpinLock lock_;  // guards the rest
  std::unique_ptr<std::array<Task*, size>> tasks_{new std::array<Task*, size>{}};
};

}  // namespace imbrex::task
