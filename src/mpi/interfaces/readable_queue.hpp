// SPDX-License-Identifier: BSD-3-Clause
// A queue that any thread appends to, with a descriptor that is readable while the queue holds
// items. Event loops (epoll, select, asyncio) wait for the descriptor. Knows no MPI.
//
// Why no item is left behind an unreadable descriptor. A producer pushes on a stack, and makes the
// descriptor readable if the stack was empty before. A consumer first silences the descriptor, then
// empties the stack. An item that this consumer does not find is pushed after the stack was
// emptied, so its producer or an earlier producer finds an empty stack and calls make_readable()
// after the silence. An item that a consumer has found and not handed out keeps the descriptor
// readable: the consumer calls make_readable() again before it leaves. A make_readable() after its
// items have been taken is possible: then one take() returns nothing and silences the descriptor.
// make_readable() first changes the descriptor, then `is_readable_`, and silence() does nothing
// while `is_readable_` is false. So a later take() undoes each change.
//
// While a consumer attends to the queue, which it looks at again and again, no producer changes the
// descriptor. A producer pushes, then reads `attending_`; a consumer leaves `attending_`, then
// looks for items, and makes the descriptor readable if there are any. All four are sequentially
// consistent, so either the producer sees that nobody attends, or the consumer sees the item.
//
// Order: a producer's push takes effect at its compare-exchange. Each emptying of the stack
// reverses it, and every later item is pushed later, so items leave in the order of those
// exchanges.
#pragma once

#include <atomic>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"

namespace imbrex::mpi {

// An item is a member or a base of what the queue carries; it needs no memory of its own, so that
// push() cannot fail.
struct Readable {
  Readable* next = nullptr;  // the queue's from push() to take()
};

// Thread safety: push() and take() by any thread, at the same time.
// Invariants: (1) the items on `arrived_` are younger than all items between `first_` and `last_`;
// (2) if there is an item, no push() or take() is under way, and nobody attends, the descriptor is
// readable.
class ReadableQueue {
 public:
  ReadableQueue();  // throws std::system_error where the system gives no descriptor
  ~ReadableQueue();
  ReadableQueue(const ReadableQueue&) = delete;
  ReadableQueue& operator=(const ReadableQueue&) = delete;

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  void push(Readable& item) noexcept {
    Readable* before = arrived_.load(std::memory_order_relaxed);
    do {
      item.next = before;  // the item's content, too, is visible to collect()
    } while (!arrived_.compare_exchange_weak(before, &item, std::memory_order_seq_cst,
                                             std::memory_order_relaxed));
    if (before == nullptr && attending_.load(std::memory_order_seq_cst) == 0) make_readable();
  }

  // Removes up to `most` items, the oldest first. Returns a chain by `next`; null: none is there.
  [[nodiscard]] Readable* take(int most) noexcept;

  // While it lives, its thread calls take() again and again, and pushes do not make the descriptor
  // readable.
  class Attention {
   public:
    explicit Attention(ReadableQueue& queue) noexcept : queue_(queue) {
      queue_.attending_.fetch_add(1, std::memory_order_seq_cst);
    }
    ~Attention() {
      queue_.attending_.fetch_sub(1, std::memory_order_seq_cst);
      if (queue_.arrived_.load(std::memory_order_seq_cst) != nullptr) queue_.make_readable();
    }
    Attention(const Attention&) = delete;
    Attention& operator=(const Attention&) = delete;

   private:
    ReadableQueue& queue_;
  };

 private:
  void collect() noexcept IMBREX_REQUIRES(lock_);
  void make_readable() noexcept;
  void silence() noexcept;

  const int descriptor_;
  std::atomic<Readable*> arrived_{nullptr};  // any thread pushes; a consumer empties it; see (1)
  std::atomic<int> attending_{0};            // number of Attention objects; any thread
  std::atomic<bool> is_readable_{false};     // any thread; release: after the descriptor's change
  base::SpinLock lock_;                      // of consumers
  Readable* first_ IMBREX_GUARDED_BY(lock_) = nullptr;
  Readable* last_ IMBREX_GUARDED_BY(lock_) = nullptr;  // valid while `first_` is not null
};

}  // namespace imbrex::mpi
