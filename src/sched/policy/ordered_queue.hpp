// SPDX-License-Identifier: BSD-3-Clause
// A queue in an order: by priority, then by creation, unless a key says otherwise. Used by the
// policies, and by workers whose policy has only one queue.
//
// Thread safety: any thread. One lock: the policies that put every task through it are chosen for
// their order, not for their speed.
#pragma once

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "sched/policy/policy.hpp"
#include "task/descriptor.hpp"
#include "task/lineage.hpp"

namespace imbrex::sched {

class OrderedQueue {
 public:
  struct Key {
    int priority;         // larger first
    bool first;           // true first
    std::uint64_t id;     // smaller first: created earlier
  };

  // The order of tasks that are pushed without a key. Set it before the first push.
  struct Rule {
    bool by_priority = false;    // otherwise by creation alone
    bool resumed_first = false;  // among equal priorities; otherwise by creation there, too
    bool raises = false;         // priorities rise while tasks are queued
  };
  void order_by(const Rule& rule) noexcept { rule_ = rule; }

  void push(task::Task& task, const bool resumed, const int pusher) {
    int level = 0;
    if (rule_.raises) {
      level = task::queued_priority(task);
    } else if (rule_.by_priority) {
      level = task.priority.load(std::memory_order_relaxed);
    }
    push(task, {level, rule_.resumed_first && resumed, task.id}, resumed, pusher);
  }
  // `pusher`: a worker that will look here itself; -1: none.
  void push(task::Task& task, const Key& key, const bool resumed, const int pusher = -1) {
    const Place place{level_of(key), key.id, &task, resumed};
    const std::lock_guard guard(lock_);
    pusher_.store(pusher, std::memory_order_relaxed);
    if (begin_ == end_ || !later(line_[(end_ - 1) & mask_], place)) {
      if (end_ - begin_ > mask_) [[unlikely]] grow();
      line_[end_++ & mask_] = place;
    } else {
      heap_.push_back(place);
      std::push_heap(heap_.begin(), heap_.end(), &later);
    }
    count(1);
  }
  [[nodiscard]] task::Entry pop() noexcept {
    if (size() == 0) return {};
    const std::lock_guard guard(lock_);
    if (!heap_.empty() && (begin_ == end_ || later(line_[begin_ & mask_], heap_.front()))) {
      return pop_from_heap();
    }
    if (begin_ == end_) return {};
    const Place& place = line_[begin_++ & mask_];
    count(-1);
    return {place.task, place.resumed};
  }
  // Policy::extract(); takes the tasks that would go last.
  [[nodiscard]] std::size_t extract(const void* const kind, const std::span<task::Task*> to) {
    if (size() == 0) return 0;
    const std::lock_guard guard(lock_);
    const std::size_t in_line = extract_from_line(kind, to);
    const std::size_t all = in_line + extract_from_heap(kind, to.subspan(in_line));
    if (all != 0) count(-static_cast<int>(all));
    return all;
  }
  // Whether the first entry goes before the first one of `other`, at this moment.
  [[nodiscard]] bool goes_before(const OrderedQueue& other) const noexcept {
    Place mine{}, its{};
    return first(mine) && (!other.first(its) || later(its, mine));
  }
  // The worker that pushed last, or -1; and the number of pushes and pops. Both are moments'
  // values.
  [[nodiscard]] int pusher() const noexcept { return pusher_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint32_t changes() const noexcept {
    return changes_.load(std::memory_order_relaxed);
  }
  // A moment's value; a thread that has pushed nothing sees zero as zero.
  [[nodiscard]] std::int64_t size() const noexcept {
    return size_.load(std::memory_order_acquire);
  }

 private:
  static constexpr std::size_t first_capacity = 64;
  static constexpr std::size_t look = extraction_look;

  struct Place {
    std::uint64_t level;  // smaller first
    std::uint64_t id;     // then this
    task::Task* task;
    bool resumed;
  };
  [[nodiscard]] static std::uint64_t level_of(const Key& key) noexcept {
    return static_cast<std::uint64_t>(std::int64_t{INT_MAX} - key.priority) * 2 +
           (key.first ? 0 : 1);
  }
  static bool later(const Place& first, const Place& second) noexcept {
    return first.level != second.level ? first.level > second.level : first.id > second.id;
  }
  // False if the queue is empty.
  [[nodiscard]] bool first(Place& place) const noexcept {
    const std::lock_guard guard(lock_);
    if (begin_ == end_ && heap_.empty()) return false;
    const bool from_heap = begin_ == end_ || (!heap_.empty() &&
                                              later(line_[begin_ & mask_], heap_.front()));
    place = from_heap ? heap_.front() : line_[begin_ & mask_];
    return true;
  }
  void count(const int change) noexcept IMBREX_REQUIRES(lock_) {
    changes_.store(changes() + 1, std::memory_order_relaxed);
    size_.store(size_.load(std::memory_order_relaxed) + change, std::memory_order_release);
  }
  [[nodiscard]] static bool may_leave(const Place& place, const void* const kind) noexcept {
    return !place.resumed && is_of(*place.task, kind);
  }
  // Searches from the end of the line.
  std::size_t extract_from_line(const void* const kind,
                                const std::span<task::Task*> to) noexcept IMBREX_REQUIRES(lock_) {
    const std::size_t limit = end_ - begin_ < look ? begin_ : end_ - look;
    std::size_t taken = 0;
    std::size_t first = end_;  // the first that is taken
    for (std::size_t at = end_; at != limit && taken != to.size(); --at) {
      const Place& place = line_[(at - 1) & mask_];
      if (!may_leave(place, kind)) continue;
      to[taken++] = place.task;
      first = at - 1;
    }
    std::size_t kept = first;
    for (std::size_t at = first; at != end_; ++at) {
      const Place& place = line_[at & mask_];
      if (!may_leave(place, kind)) line_[kept++ & mask_] = place;
    }
    end_ = kept;
    return taken;
  }
  // The order of the heap does not tell which entries go last.
  std::size_t extract_from_heap(const void* const kind,
                                const std::span<task::Task*> to) IMBREX_REQUIRES(lock_) {
    std::size_t taken = 0;
    const std::size_t skipped = heap_.size() < look ? 0 : heap_.size() - look;
    const auto begin = heap_.begin() + static_cast<std::ptrdiff_t>(skipped);
    const auto end = std::remove_if(begin, heap_.end(), [&](const Place& place) {
      if (taken == to.size() || !may_leave(place, kind)) return false;
      to[taken++] = place.task;
      return true;
    });
    if (taken != 0) {
      heap_.erase(end, heap_.end());
      std::make_heap(heap_.begin(), heap_.end(), &later);
    }
    return taken;
  }
  [[gnu::noinline]] task::Entry pop_from_heap() noexcept IMBREX_REQUIRES(lock_) {
    std::pop_heap(heap_.begin(), heap_.end(), &later);
    const Place place = heap_.back();
    heap_.pop_back();
    count(-1);
    return {place.task, place.resumed};
  }
  [[gnu::noinline]] void grow() IMBREX_REQUIRES(lock_) {
    const std::size_t mask = mask_ * 2 + 1;
    std::unique_ptr<Place[]> wider(new Place[mask + 1]);
    for (std::size_t at = begin_; at != end_; ++at) wider[at & mask] = line_[at & mask_];
    line_ = std::move(wider);
    mask_ = mask;
  }

  Rule rule_;
  // Both are bounded by the number of ready tasks and of raises. Most tasks come in the order in
  // which they go, and pass through the line; an entry that belongs before the line's end is in the
  // heap.
  mutable base::SpinLock lock_;
  // A ring, from begin_ to end_.
  std::unique_ptr<Place[]> line_ IMBREX_GUARDED_BY(lock_){new Place[first_capacity]};
  std::size_t mask_ IMBREX_GUARDED_BY(lock_) = first_capacity - 1;
  std::size_t begin_ IMBREX_GUARDED_BY(lock_) = 0;
  std::size_t end_ IMBREX_GUARDED_BY(lock_) = 0;
  std::vector<Place> heap_ IMBREX_GUARDED_BY(lock_);
  alignas(base::cache_line_bytes) std::atomic<std::int64_t> size_{0};  // written under lock_
  // written under lock_; the last pusher
  std::atomic<int> pusher_{-1};
  std::atomic<std::uint32_t> changes_{0};                              // written under lock_; wraps
};

}  // namespace imbrex::sched
