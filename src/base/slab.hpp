// SPDX-License-Identifier: BSD-3-Clause
// Memory for descriptors: slots of a few sizes, cut from chunks that are never given back, so that
// memory is bounded by the largest number of live descriptors. Each thread has a cache; caches
// exchange batches through the pool.
//
// Thread safety: only its owner uses a SlabCache; any thread uses the SlabPool.
// Invariants:
//   (1) a slot is in use, or in exactly one cache's or the pool's free list.
// (2) a free slot keeps all but its first 8 bytes: walkers recognise it by a mark that the user
// leaves there.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/arch.hpp"
#include "base/guarded.hpp"
#include "base/spin_lock.hpp"

namespace imbrex::base {

inline constexpr std::size_t slab_unit = cache_line_bytes;
inline constexpr std::size_t slab_classes = 33;                           // 0 is not used
// 2048: a task with 28 accesses still gets a slot. A larger one costs malloc() and two locks.
inline constexpr std::size_t slab_bytes_max = slab_unit * (slab_classes - 1);
inline constexpr std::uint32_t slab_batch = 64;                           // slots exchanged at once

[[nodiscard]] constexpr std::size_t slab_class(const std::size_t bytes) noexcept {
  return (bytes + slab_unit - 1) / slab_unit;
}

class SlabPool {
 public:
  SlabPool() = default;
  ~SlabPool();
  SlabPool(const SlabPool&) = delete;
  SlabPool& operator=(const SlabPool&) = delete;

  struct Slot {
    Slot* next;
  };
  struct Batch {  // a chain of `count` slots
    Slot* head = nullptr;
    std::uint32_t count = 0;
  };
  // Takes at most slab_batch slots, and at most `most` where it has to cut new ones. Throws
  // std::bad_alloc.
  [[nodiscard]] Batch take(std::size_t slab_class, std::uint32_t most);
  void give(std::size_t slab_class, const Batch& batch) noexcept;

  // Takes one slot larger than slab_bytes_max. Throws std::bad_alloc.
  [[nodiscard, gnu::cold, gnu::noinline]] void* take_large(std::size_t bytes);
  [[gnu::cold, gnu::noinline]] void give_large(void* slot) noexcept;

  [[nodiscard]] std::size_t mapped_bytes() const noexcept {
    return mapped_bytes_.load(std::memory_order_relaxed);
  }
  // fork() holds the pool, so that the child may visit the slots.
  void hold() noexcept IMBREX_ACQUIRE(lock_) { lock_.lock(); }
  void give_up() noexcept IMBREX_RELEASE(lock_) { lock_.unlock(); }
  // Calls visit(slot) for every slot, in use or not, with the lock held. Threads may take and give
  // slots meanwhile, so the view is of a moment unless the program is at rest.
  template <class Visit>
  void for_each(Visit visit) {
    const std::lock_guard guard(lock_);
    for (const Chunk& chunk : chunks_) {
      for (std::size_t offset = 0; offset < chunk.used; offset += chunk.slot_bytes) {
        visit(chunk.memory + offset);
      }
    }
    for (std::byte* const slot : large_) visit(slot);
  }
  // Calls look(): memory of slots that is here when it begins stays until it returns.
  template <class Look>
  void while_held(Look look) {
    const std::lock_guard guard(lock_);
    look();
  }
  // Visits the slots until test(slot) is true for one; returns whether it was.
  template <class Test>
  bool any_of(Test test) {
    const std::lock_guard guard(lock_);
    for (const Chunk& chunk : chunks_) {
      for (std::size_t offset = 0; offset < chunk.used; offset += chunk.slot_bytes) {
        if (test(chunk.memory + offset)) return true;
      }
    }
    for (std::byte* const slot : large_) {
      if (test(slot)) return true;
    }
    return false;
  }

 private:
  struct Chunk {
    std::byte* memory;
    std::size_t slot_bytes;
    std::size_t bytes;
    std::size_t used;
  };
  struct Class {
    std::vector<Batch> batches;
    std::size_t open_chunk = SIZE_MAX;  // the chunk that slots are cut from
  };
  [[nodiscard]] Batch cut(std::size_t slab_class, std::uint32_t most) IMBREX_REQUIRES(lock_);
  // The index of a large slot in large_; the slot is preceded by it.
  [[nodiscard]] static std::size_t& place_of(std::byte* const large) noexcept {
    return *reinterpret_cast<std::size_t*>(large - slab_unit);
  }

  SpinLock lock_;
  std::array<Class, slab_classes> classes_ IMBREX_GUARDED_BY(lock_);
  std::vector<Chunk> chunks_ IMBREX_GUARDED_BY(lock_);
  // In no order: where a slot is given back, the last one moves to its place.
  std::vector<std::byte*> large_ IMBREX_GUARDED_BY(lock_);
  std::atomic<std::size_t> mapped_bytes_{0};
};

class SlabCache {
 public:
  explicit SlabCache(SlabPool& pool) noexcept : pool_(&pool) {
    for (std::size_t index = 1; index < slab_classes; ++index) lists_[index].room = keep_max(index);
  }
  ~SlabCache() { flush(); }
  SlabCache(const SlabCache&) = delete;
  SlabCache& operator=(const SlabCache&) = delete;

  // Takes a slot of at least class * slab_unit bytes. Throws std::bad_alloc.
  [[nodiscard]] void* take(const std::size_t slab_class) {
    List& list = lists_[slab_class];
    if (list.head == nullptr) [[unlikely]] refill(slab_class);
    SlabPool::Slot* const slot = list.head;
    list.head = slot->next;
    __builtin_prefetch(list.head, 1);
    ++list.room;
    return slot;
  }
  void give(void* const memory, const std::size_t slab_class) noexcept {
    List& list = lists_[slab_class];
    auto* const slot = static_cast<SlabPool::Slot*>(memory);
    slot->next = list.head;
    list.head = slot;
    if (--list.room == 0) [[unlikely]] spill(slab_class);
  }
  void flush() noexcept;  // gives all slots back to the pool

 private:
  // Two windows of tasks stay with a creator that runs its own tasks, but no more than 1 MiB of a
  // class; further slots go to other threads.
  [[nodiscard]] static constexpr std::uint32_t keep_max(const std::size_t slab_class) noexcept {
    constexpr std::size_t slots = 4096;
    constexpr std::size_t bytes = std::size_t{1} << 20;
    return static_cast<std::uint32_t>(std::min(slots, bytes / (slab_class * slab_unit)));
  }
  struct List {
    SlabPool::Slot* head = nullptr;
    std::uint32_t room = 0;  // keep_max() minus the number of slots
    // The number of slots of the next refill. Few at first: a thread that makes one task touches no
    // pages for more tasks.
    std::uint32_t next_batch = 2;
  };
  [[gnu::cold, gnu::noinline]] void refill(std::size_t slab_class);
  [[gnu::cold, gnu::noinline]] void spill(std::size_t slab_class) noexcept;

  SlabPool* pool_;
  std::array<List, slab_classes> lists_;
};

}  // namespace imbrex::base
