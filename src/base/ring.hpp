// SPDX-License-Identifier: BSD-3-Clause
// A queue of pointers with two ends, which grows as needed: its only bound is the number of items
// queued at once. It has no memory before its first item, and can be closed while it is empty. A
// mark in a table of many rings says which rings are open, so that a thread that looks for items
// need not check each ring. Knows no threads.
//
// Thread safety: one thread at a time; any thread may call size(), which is a moment's value.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "base/arch.hpp"

namespace imbrex::base {

template <class T>
class Ring {
 public:
  Ring() = default;
  // Sets the mark, `bit` in `marks`, which several rings may share. The mark is set before the next
  // item is in the ring.
  void announce(std::atomic<std::uint64_t>& marks, const std::uint64_t bit) noexcept {
    marks_ = &marks;
    bit_ = bit;
  }
  // REQUIRES: the ring is empty. The caller clears the mark when it closes the last ring of the
  // mark.
  void close() noexcept { room_ = 0; }
  [[nodiscard]] bool is_open() const noexcept { return room_ != 0; }

  void push_back(T* const item) {
    const std::uint64_t end = end_.load(std::memory_order_relaxed);
    if (end - begin_.load(std::memory_order_relaxed) >= room_) [[unlikely]] grow();
    slots_[end & mask_] = item;
    end_.store(end + 1, std::memory_order_relaxed);
  }
  void push_front(T* const item) {
    const std::uint64_t begin = begin_.load(std::memory_order_relaxed);
    if (end_.load(std::memory_order_relaxed) - begin >= room_) [[unlikely]] grow();
    slots_[(begin - 1) & mask_] = item;
    begin_.store(begin - 1, std::memory_order_relaxed);
  }
  // Takes the last item; null if the ring is empty.
  [[nodiscard]] T* pop_back() noexcept {
    const std::uint64_t end = end_.load(std::memory_order_relaxed);
    if (end == begin_.load(std::memory_order_relaxed)) return nullptr;
    end_.store(end - 1, std::memory_order_relaxed);
    return slots_[(end - 1) & mask_];
  }
  [[nodiscard]] T* pop_front() noexcept {
    const std::uint64_t begin = begin_.load(std::memory_order_relaxed);
    if (begin == end_.load(std::memory_order_relaxed)) return nullptr;
    begin_.store(begin + 1, std::memory_order_relaxed);
    return slots_[begin & mask_];
  }
  [[nodiscard]] T* front() const noexcept {
    const std::uint64_t begin = begin_.load(std::memory_order_relaxed);
    return begin == end_.load(std::memory_order_relaxed) ? nullptr : slots_[begin & mask_];
  }
  [[nodiscard]] T* back() const noexcept {
    const std::uint64_t end = end_.load(std::memory_order_relaxed);
    return end == begin_.load(std::memory_order_relaxed) ? nullptr : slots_[(end - 1) & mask_];
  }
  [[nodiscard]] bool empty() const noexcept {
    return begin_.load(std::memory_order_relaxed) == end_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t size() const noexcept {
    const std::uint64_t begin = begin_.load(std::memory_order_relaxed);
    const auto size = static_cast<std::int64_t>(end_.load(std::memory_order_relaxed) - begin);
    return size > 0 ? size : 0;  // the two reads are not of one moment
  }
  // Takes wanted items out of the first `look` items: those for which `wanted` is true, `most` at
  // most. Calls take(item) for each, oldest first. All other items keep their order. Returns the
  // number taken.
  template <class Wanted, class Take>
  std::size_t extract(const std::uint64_t look, const std::size_t most, Wanted wanted, Take take) {
    const std::uint64_t begin = begin_.load(std::memory_order_relaxed);
    const std::uint64_t end = end_.load(std::memory_order_relaxed);
    const std::uint64_t limit = end - begin < look ? end : begin + look;
    std::size_t count = 0;
    std::uint64_t stop = begin;  // after the last item that is taken
    for (std::uint64_t at = begin; at != limit && count != most; ++at) {
      if (!wanted(*slots_[at & mask_])) continue;
      ++count;
      stop = at + 1;
      take(slots_[at & mask_]);
    }
    std::uint64_t first = stop;
    for (std::uint64_t at = stop; at != begin;) {
      T* const item = slots_[--at & mask_];
      if (!wanted(*item)) slots_[--first & mask_] = item;
    }
    begin_.store(first, std::memory_order_relaxed);
    return count;
  }
  // Whether size() >= count, for a count above 0.
  [[nodiscard]] bool has(const std::int64_t count) const noexcept {
    const std::uint64_t begin = begin_.load(std::memory_order_relaxed);
    return static_cast<std::int64_t>(end_.load(std::memory_order_relaxed) - begin) >= count;
  }

 private:
  static constexpr std::uint64_t first_capacity = 1024;

  // Opens the ring, or makes it larger.
  [[gnu::cold, gnu::noinline]] void grow() {
    if (room_ != 0 || slots_ == nullptr) enlarge();
    room_ = mask_ + 1;
    if (marks_ != nullptr) marks_->fetch_or(bit_, std::memory_order_relaxed);
  }

  void enlarge() {
    const std::uint64_t capacity = slots_ == nullptr ? first_capacity : (mask_ + 1) * 2;
    std::unique_ptr<T*[]> larger(new T*[capacity]);
    const std::uint64_t end = end_.load(std::memory_order_relaxed);
    for (std::uint64_t at = begin_.load(std::memory_order_relaxed); at != end; ++at) {
      larger[at & (capacity - 1)] = slots_[at & mask_];
    }
    slots_ = std::move(larger);
    mask_ = capacity - 1;
  }

  // Only the owner writes both; any thread reads them, for size().
  std::atomic<std::uint64_t> begin_{0};
  std::atomic<std::uint64_t> end_{0};
  std::unique_ptr<T*[]> slots_;
  std::uint64_t mask_ = 0;
  std::uint64_t room_ = 0;  // for this number of items; 0: closed
  std::atomic<std::uint64_t>* marks_ = nullptr;
  std::uint64_t bit_ = 0;
};

}  // namespace imbrex::base
