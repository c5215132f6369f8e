// SPDX-License-Identifier: BSD-3-Clause
// A shared queue in the order of priority, then of creation. Used by the policies.
//
// Thread safety: any thread. One lock: the policies that put every task through it are chosen for
// their order, not for their speed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/spin_lock.hpp"
#include "task/task.hpp"

namespace imbrex::sched {

class OrderedQueue {
 public:
  struct Key {
    int priority;         // larger first
    bool resumed;         // true first
    std::uint64_t id;     // smaller first: created earlier
    [[nodiscard]] bool later_than(const Key& other) const noexcept {
      if (priority != other.priority) return priority < other.priority;
      if (resumed != other.resumed) return other.resumed;
      return id > other.id;
    }
  };

  void push(task::Task& task, const Key& key) {
    const std::lock_guard guard(lock_);
    heap_.push_back({key, &task});
    std::push_heap(heap_.begin(), heap_.end(), &later);
    size_.store(static_cast<std::int64_t>(heap_.size()), std::memory_order_release);
  }
  [[nodiscard]] task::Task* pop() noexcept {
    if (size() == 0) return nullptr;
    const std::lock_guard guard(lock_);
    if (heap_.empty()) return nullptr;
    std::pop_heap(heap_.begin(), heap_.end(), &later);
    task::Task* const task = heap_.back().task;
    heap_.pop_back();
    size_.store(static_cast<std::int64_t>(heap_.size()), std::memory_order_release);
    return task;
  }
  // A moment's value; zero is seen as zero by who pushed nothing.
  [[nodiscard]] std::int64_t size() const noexcept {
    return size_.load(std::memory_order_acquire);
  }

 private:
  struct Entry {
    Key key;
    task::Task* task;
  };
  static bool later(const Entry& first, const Entry& second) noexcept {
    return first.key.later_than(second.key);
  }
  base::SpinLock lock_;      // guards heap_
  std::vector<Entry> heap_;  // bounded by the ready tasks and the times they were raised
  alignas(base::cache_line_bytes) std::atomic<std::int64_t> size_{0};  // written under lock_
};

}  // namespace imbrex::sched
