// SPDX-License-Identifier: BSD-3-Clause
// Stacks for fibers: mapped in slabs, touched lazily, each with a guard below it. Knows no fiber.
// The guard is as large as the stack: code may enter a large frame (an array) without touching the
// memory between, and must not reach the next stack below.
//
// Thread safety: any thread uses the StackPool; the holder uses a stack.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "base/zeros.hpp"

namespace imbrex::fiber {

struct Stack {
  std::byte* bottom = nullptr;  // lowest usable address; the guard lies below
  std::byte* top = nullptr;     // one past the highest
};

class StackPool {
 public:
  // `bytes`: usable size of each stack, rounded up to pages.
  explicit StackPool(std::size_t bytes);
  ~StackPool();
  StackPool(const StackPool&) = delete;
  StackPool& operator=(const StackPool&) = delete;

  // Takes a stack. Throws std::bad_alloc if the system has no address space left.
  [[nodiscard]] Stack take();
  // Gives a stack back; its pages go back to the system when many stacks are free already.
  void give(const Stack& stack) noexcept;

  // True if `address` lies in the guard of a stack of this pool. For the signal handler: takes no
  // lock, since slabs are only added.
  [[nodiscard]] bool in_guard(const void* address) const noexcept;
  // For a thread that looks on: the stacks that have ever been taken, which stay mapped; they have
  // numbers from 0 on.
  [[nodiscard]] std::size_t cut_so_far() const noexcept {
    return cut_of_all_.load(std::memory_order_acquire);
  }
  [[nodiscard]] Stack stack(std::size_t number) const noexcept;
  [[nodiscard]] std::size_t mapped() const noexcept {
    return mapped_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::size_t slab_stacks = 64;
  static constexpr std::size_t guard_bytes_min = 64 * 1024;
  static constexpr std::size_t warm_max = 256;     // free stacks that keep their pages
  static constexpr std::size_t slabs_max = 65536;  // 4 million stacks

  // A new stack, still without its guard: guards cost a system call each, which a program of few
  // stacks shall not pay for a whole slab.
  [[nodiscard]] Stack cut() IMBREX_REQUIRES(lock_);
  // A free stack, or a new one, which has no guard yet.
  struct Taken {
    Stack stack;
    bool is_new;
  };
  [[nodiscard]] Taken take_or_cut();
  void map_slab() IMBREX_REQUIRES(lock_);
  void install_guard(std::byte* address) noexcept;
  [[nodiscard]] bool protect(std::byte* address, std::size_t most) noexcept;

  const std::size_t bytes_;
  const std::size_t guard_bytes_;
  const std::size_t stride_;                          // of a stack and its guard
  base::SpinLock lock_;
  std::vector<Stack> warm_ IMBREX_GUARDED_BY(lock_);  // free stacks with pages
  std::vector<Stack> cold_ IMBREX_GUARDED_BY(lock_);  // free stacks without pages
  std::atomic<std::size_t> mapped_{0};                // number of stacks
  // Number of stacks cut from the last slab.
  std::size_t cut_ IMBREX_GUARDED_BY(lock_) = slab_stacks;
  std::atomic<std::size_t> cut_of_all_{0};  // written under lock_
  std::atomic<std::size_t> protected_{0};             // number of guards that cost mappings, about
  const base::Zeros<std::atomic<std::byte*>> slabs_;  // each written once, under lock_
  std::atomic<std::size_t> slab_count_{0};            // release pairs with in_guard()
};

}  // namespace imbrex::fiber
