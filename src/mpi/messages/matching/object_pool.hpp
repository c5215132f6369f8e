// SPDX-License-Identifier: BSD-3-Clause
// Objects that are kept for reuse, by any thread: as many as were in use at once. Each thread has
// some for itself, so that most calls take no lock.
#pragma once

#include <mutex>
#include <utility>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"

namespace imbrex::mpi::messages {

// The store that all threads share. T has a member `T* next`, which belongs to the store while the
// object is kept. Thread safety: any thread uses every member.
template <class T>
class CommonSpares {
 public:
  // Puts at most `most` objects before `list`; returns how many.
  [[nodiscard]] int take(T*& list, const int most) noexcept {
    const std::lock_guard guard(lock_);
    int count = 0;
    for (; count < most && first_ != nullptr; ++count) {
      T* const one = std::exchange(first_, first_->next);
      one->next = std::exchange(list, one);
    }
    return count;
  }
  // Keeps the objects from `first` to `last`, which are linked.
  void give(T& first, T& last) noexcept {
    const std::lock_guard guard(lock_);
    last.next = std::exchange(first_, &first);
  }

 private:
  base::SpinLock lock_;
  T* first_ IMBREX_GUARDED_BY(lock_) = nullptr;
};

// The store of one thread. It belongs to the thread and not to a task, so no member suspends.
template <class T, CommonSpares<T>& common>
class Spares {
 public:
  constexpr Spares() = default;
  ~Spares() { give_to_all(count_); }
  Spares(const Spares&) = delete;
  Spares& operator=(const Spares&) = delete;

  // The object given last, or null.
  [[nodiscard]] T* take() noexcept {
    if (first_ == nullptr) count_ = common.take(first_, at_once);
    if (first_ == nullptr) return nullptr;
    --count_;
    return std::exchange(first_, first_->next);
  }
  void give(T& one) noexcept {
    one.next = std::exchange(first_, &one);
    if (++count_ == 2 * at_once) give_to_all(at_once);
  }

 private:
  static constexpr int at_once = 32;

  void give_to_all(const int count) noexcept {
    if (count == 0) return;
    T* const first = first_;
    T* last = first;
    for (int i = 1; i < count; ++i) last = last->next;
    first_ = last->next;
    count_ -= count;
    common.give(*first, *last);
  }

  T* first_ = nullptr;
  int count_ = 0;
};

}  // namespace imbrex::mpi::messages
