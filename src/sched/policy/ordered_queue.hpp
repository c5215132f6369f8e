// SPDX-License-Identifier: BSD-3-Clause
// A queue in the order of priority, then of creation. Used by the policies.
//
// Thread safety: any thread. One lock: the policies that put every task through it are chosen for
// their order, not for their speed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
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
    if (line_.empty() || !line_.back().key.later_than(key)) {
      line_.push_back({key, &task, resumed});
    } else {
      heap_.push_back({key, &task, resumed});
      std::push_heap(heap_.begin(), heap_.end(), &later);
    }
    count(1);
  }
  [[nodiscard]] task::Entry pop() noexcept {
    if (size() == 0) return {};
    const std::lock_guard guard(lock_);
    if (heap_.empty() || (!line_.empty() && later(heap_.front(), line_[gone_]))) {
      if (line_.empty()) return {};
      const task::Entry entry{line_[gone_].task, line_[gone_].resumed};
      leave_line();
      return entry;
    }
    std::pop_heap(heap_.begin(), heap_.end(), &later);
    const task::Entry entry{heap_.back().task, heap_.back().resumed};
    heap_.pop_back();
    count(-1);
    return entry;
  }
  // Whether its first entry belongs before that of `other`, at this moment.
  [[nodiscard]] bool goes_before(const OrderedQueue& other) const noexcept {
    Key mine{}, its{};
    return first(mine) && (!other.first(its) || its.later_than(mine));
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
  // False if there is nothing.
  [[nodiscard]] bool first(Key& key) const noexcept {
    const std::lock_guard guard(lock_);
    if (line_.empty() && heap_.empty()) return false;
    const bool from_heap =
        line_.empty() || (!heap_.empty() && later(line_[gone_], heap_.front()));
    key = from_heap ? heap_.front().key : line_[gone_].key;
    return true;
  }
  void count(const int change) noexcept {
    size_.store(size_.load(std::memory_order_relaxed) + change, std::memory_order_release);
  }
  // The first of the line. Its place is used again when the line is empty, or half of it has gone.
  void leave_line() noexcept {
    if (++gone_ == line_.size()) {
      line_.clear();
      gone_ = 0;
    } else if (gone_ >= 1024 && gone_ * 2 > line_.size()) [[unlikely]] {
      line_.erase(line_.begin(), line_.begin() + static_cast<std::ptrdiff_t>(gone_));
      gone_ = 0;
    }
    count(-1);
  }

  // Both are bounded by the ready tasks and the times they were raised. Most tasks come in the
  // order in which they go, and pass through the line; what belongs before its end is in the heap.
  mutable base::SpinLock lock_;  // guards the next three
  std::vector<Place> line_;  // in order, from `gone_` on; empty if nothing is there
  std::size_t gone_ = 0;
  std::vector<Place> heap_;
  alignas(base::cache_line_bytes) std::atomic<std::int64_t> size_{0};  // written under lock_
};

}  // namespace imbrex::sched
