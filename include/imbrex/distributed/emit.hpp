// SPDX-License-Identifier: BSD-3-Clause
// Emit, and the loop over the items of a worker: the typed part of a WorkPool, all inlined. Knows
// no MPI.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "imbrex/detail/distributed/untyped_pool.hpp"

namespace imbrex {

namespace detail {
// PoolBody::run for items of type Item.
template <class Item, class Function>
std::uint64_t run_items(void* function, ItemStack& stack, std::uint64_t count);
}  // namespace detail

/// `f` makes items by it, during its call only. The worker works on the last item first, unless it
/// gives the item away. Thread safety: only the call of `f` that got it uses it.
template <class Item>
class Emit {
 public:
  /// Makes an item: a copy of `item`. Never waits. Throws std::bad_alloc.
  void operator()(const Item& item) { ::new (static_cast<void*>(append(1))) Item(item); }
  /// Adds `count` uninitialised items and returns the first: they are written before the next item
  /// is made and before `f` ends. Never waits. Throws std::bad_alloc.
  [[nodiscard]] Item* append(const std::size_t count) {
    if (static_cast<std::size_t>(end_ - top_) < count) [[unlikely]] make_room(count);
    Item* const first = top_;
    top_ += count;
    return first;
  }
  /// Drops the items from `end` on, which were appended last. Never waits.
  void drop_from(Item* const end) noexcept { top_ = end; }
  /// Takes the items that `f` would be called for next, `most` at most, and returns their number.
  /// The call works on them together with its own item, and they count as if `f` had been called
  /// for each. Never waits.
  [[nodiscard]] std::size_t take(Item* const out, const std::size_t most) noexcept {
    const std::size_t here = std::min<std::size_t>(static_cast<std::size_t>(top_ - bottom_), left_);
    const std::size_t count = std::min(here, most);
    top_ -= count;
    left_ -= count;
    if (count > 0) std::memcpy(static_cast<void*>(out), top_, count * sizeof(Item));
    return count;
  }
  /// The number of the worker that calls `f`, from 0 to WorkPool::workers() - 1: two calls with the
  /// same number never run at once. Never waits.
  [[nodiscard]] int worker() const noexcept { return stack_.worker; }

  Emit(const Emit&) = delete;
  Emit& operator=(const Emit&) = delete;

 private:
  template <class Of, class Function>
  friend std::uint64_t detail::run_items(void* function, detail::ItemStack& stack,
                                         std::uint64_t count);

  Emit(detail::ItemStack& stack, const std::uint64_t count) noexcept : stack_(stack), left_(count) {
    load();
  }
  void load() noexcept {
    bottom_ = reinterpret_cast<Item*>(stack_.bottom);
    top_ = reinterpret_cast<Item*>(stack_.top);
    const auto room = static_cast<std::size_t>(stack_.end - stack_.top) / sizeof(Item);
    end_ = top_ + room;  // a multiple of the item size
  }
  void store() noexcept { stack_.top = reinterpret_cast<std::byte*>(top_); }
  void make_room(const std::size_t count) {  // `this` does not escape: its members stay registers
    if (count > PTRDIFF_MAX / sizeof(Item)) throw std::bad_alloc();
    store();
    stack_.make_room(count * sizeof(Item));
    load();
  }

  detail::ItemStack& stack_;
  Item* bottom_;
  Item* top_;
  Item* end_;
  std::uint64_t left_;  // number of items that `f` may still be called for
};

template <class Item, class Function>
std::uint64_t detail::run_items(void* const function, ItemStack& stack,
                                const std::uint64_t count) {
  Function& f = *static_cast<Function*>(function);
  Emit<Item> emit(stack, count);
  while (emit.left_ > 0 && emit.top_ != emit.bottom_) {
    --emit.left_;
    const Item item = *--emit.top_;
    f(item, emit);
  }
  emit.store();
  return count - emit.left_;
}

}  // namespace imbrex
