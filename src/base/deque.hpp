// SPDX-License-Identifier: BSD-3-Clause
// A work-stealing deque of pointers (Chase and Lev, SPAA 2005, with the orders of Le et al., PPoPP
// 2013, except that fences are replaced by sequentially consistent accesses, which ThreadSanitizer
// understands and which cost the same on x86-64).
//
// Thread safety: push, pop, back by the owner alone; steal, size by any thread.
// Invariants:
//   (1) entries [top_, bottom_) are the deque's; top_ only grows.
//   (2) an entry leaves once: by the owner at the bottom, or by whoever advances top_.
//   (3) an array is never freed before the deque: a slow thief may still read from an old one. The
//       arrays double, so that all old ones together are no larger than the present one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/arch.hpp"

namespace imbrex::base {

template <class T>
class Deque {
 public:
  Deque() { grow(0, 0); }

  void push(T* const item) {
    const std::int64_t bottom = bottom_.load(std::memory_order_relaxed);  // owner's own
    if (bottom - known_top_ >= array_->size) {
      known_top_ = top_.load(std::memory_order_acquire);
      if (bottom - known_top_ >= array_->size) grow(known_top_, bottom);
    }
    array_->at(bottom).store(item, std::memory_order_relaxed);
    bottom_.store(bottom + 1, std::memory_order_release);  // publishes the item to thieves
  }

  // The newest, or null.
  [[nodiscard]] T* pop() noexcept {
    const std::int64_t bottom = bottom_.load(std::memory_order_relaxed) - 1;
    if (bottom < top_.load(std::memory_order_relaxed)) return nullptr;  // top_ only grows
    // seq_cst store and load: either a thief sees the smaller bottom_, or we see its top_.
    bottom_.store(bottom, std::memory_order_seq_cst);
    std::int64_t top = top_.load(std::memory_order_seq_cst);
    if (top > bottom) {
      bottom_.store(bottom + 1, std::memory_order_relaxed);
      return nullptr;
    }
    T* item = array_->at(bottom).load(std::memory_order_relaxed);
    if (top == bottom) {  // the last one: race for it like a thief
      if (!top_.compare_exchange_strong(top, top + 1, std::memory_order_seq_cst,
                                        std::memory_order_relaxed)) {
        item = nullptr;
      }
      bottom_.store(bottom + 1, std::memory_order_relaxed);
    }
    return item;
  }

  // The newest without taking it; perhaps stolen already. Null if empty.
  [[nodiscard]] T* back() const noexcept {
    const std::int64_t bottom = bottom_.load(std::memory_order_relaxed) - 1;
    if (bottom < top_.load(std::memory_order_relaxed)) return nullptr;
    return array_->at(bottom).load(std::memory_order_relaxed);
  }

  // The oldest, or null; null also when another thread was faster. The owner may call it too.
  [[nodiscard]] T* steal() noexcept {
    std::int64_t top = top_.load(std::memory_order_seq_cst);
    const std::int64_t bottom = bottom_.load(std::memory_order_seq_cst);  // pairs with pop()
    if (top >= bottom) return nullptr;
    T* const item = shared_array_.load(std::memory_order_acquire)->at(top).load(
        std::memory_order_relaxed);  // read before the exchange makes the place reusable
    if (!top_.compare_exchange_strong(top, top + 1, std::memory_order_seq_cst,
                                      std::memory_order_relaxed)) {
      return nullptr;
    }
    return item;
  }

  // A moment's value.
  [[nodiscard]] std::int64_t size() const noexcept {
    const std::int64_t size = bottom_.load(std::memory_order_relaxed) -
                              top_.load(std::memory_order_relaxed);
    return size > 0 ? size : 0;
  }

 private:
  struct Array {
    explicit Array(const std::int64_t count)
        : size(count), slots(new std::atomic<T*>[static_cast<std::size_t>(count)]) {}
    std::atomic<T*>& at(const std::int64_t index) const noexcept {
      return slots[static_cast<std::size_t>(index & (size - 1))];
    }
    std::int64_t size;  // a power of two
    std::unique_ptr<std::atomic<T*>[]> slots;
  };

  [[gnu::cold, gnu::noinline]] void grow(const std::int64_t top, const std::int64_t bottom) {
    auto larger = std::make_unique<Array>(array_ == nullptr ? 1024 : array_->size * 2);
    for (std::int64_t index = top; index < bottom; ++index) {
      larger->at(index).store(array_->at(index).load(std::memory_order_relaxed),
                              std::memory_order_relaxed);
    }
    array_ = larger.get();
    shared_array_.store(array_, std::memory_order_release);  // pairs with steal()
    arrays_.push_back(std::move(larger));
  }

  // Owner's line: what push and pop touch.
  alignas(cache_line_bytes) std::atomic<std::int64_t> bottom_{0};  // owner writes; thieves read
  std::int64_t known_top_ = 0;                                     // owner: an old value of top_
  Array* array_ = nullptr;                                         // owner
  std::vector<std::unique_ptr<Array>> arrays_;                     // owner
  // Thieves' line.
  alignas(cache_line_bytes) std::atomic<std::int64_t> top_{0};     // whoever takes the oldest
  std::atomic<Array*> shared_array_{nullptr};                      // owner writes
};

}  // namespace imbrex::base
