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
    bool first;           // true first
    std::uint64_t id;     // smaller first: created earlier
    [[nodiscard]] bool later_than(const Key& other) const noexcept {
      if (priority != other.priority) return priority < other.priority;
      if (first != other.first) return other.first;
      return id > other.id;
    }
  };

  void push(task::Task& task, const Key& key, const bool resumed) {
    const std::lock_guard guard(lock_);
    heap_.push_back({key, &task, resumed});
    std::push_heap(heap_.begin(), heap_.end(), &later);
    size_.store(static_cast<std::int64_t>(heap_.size()), std::memory_order_release);
  }
  [[nodiscard]] task::Entry pop() noexcept {
    if (size() == 0) return {};
    const std::lock_guard guard(lock_);
    if (heap_.empty()) return {};
    std::pop_heap(heap_.begin(), heap_.end(), &later);
    const task::Entry entry{heap_.back().task, heap_.back().resumed};
    heap_.pop_back();
    size_.store(static_cast<std::int64_t>(heap_.size()), std::memory_order_release);
    return entry;
  }
  // A moment's value; zero is seen as zero by who pushed nothing.
  [[nodiscard]] std::int64_t size() const noexcept {
    return size_.load(std::memory_order_acquire);
  }

 private:
  struct Place {
    Key key;
    task::Task* task;
    bool resumed;
  };
  static bool later(const Place& first, const Place& second) noexcept {
    return first.key.later_than(second.key);
  }
  base::SpinLock lock_;      // guards heap_
  std::vector<Place> heap_;  // bounded by the ready tasks and the times they were raised
  alignas(base::cache_line_bytes) std::atomic<std::int64_t> size_{0};  // written under lock_
};

}  // namespace imbrex::sched
