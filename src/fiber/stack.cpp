// SPDX-License-Identifier: BSD-3-Clause
#include "fiber/stack.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <new>

#include "base/arch.hpp"
#include "fiber/sanitizer.hpp"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102  // Linux 6.13: a guard that costs no mapping
#endif

namespace imbrex::fiber {

namespace {

std::size_t round_up(const std::size_t bytes) noexcept {
  return (bytes + base::page_bytes - 1) / base::page_bytes * base::page_bytes;
}
// A guard by MADV_GUARD_INSTALL costs 8 bytes and some 50 ns for each of its pages; a guard by
// mprotect() costs two mappings and some 10 us, whatever its size. Mappings are few (65,530 is the
// kernel's default), so only large guards get them, while there are plenty. Where the kernel has no
// other way, all guards get them.
constexpr std::size_t marked_bytes_max = 256 * 1024;
constexpr std::size_t protected_plenty = 8'000;
constexpr std::size_t protected_max = 24'000;

}  // namespace

StackPool::StackPool(const std::size_t bytes)
    : bytes_(round_up(bytes)),
      guard_bytes_(std::max(bytes_, guard_bytes_min)),
      stride_(bytes_ + guard_bytes_),
      slabs_(base::zeros<std::atomic<std::byte*>>(slabs_max)) {}

StackPool::~StackPool() {
  const std::size_t slab_bytes = slab_stacks * stride_;
  for (std::size_t index = 0; index < slab_count_.load(std::memory_order_acquire); ++index) {
    std::byte* const slab = slabs_[index].load(std::memory_order_relaxed);
    sanitizer::clean(slab, slab_bytes);
    munmap(slab, slab_bytes);
  }
}

Stack StackPool::take() {
  const Taken taken = take_or_cut();
  // Without the lock, because it is a system call.
  if (taken.is_new) install_guard(taken.stack.bottom - guard_bytes_);
  return taken.stack;
}

StackPool::Taken StackPool::take_or_cut() {
  const std::lock_guard guard(lock_);
  std::vector<Stack>& list = warm_.empty() ? cold_ : warm_;
  if (list.empty()) return {cut(), true};
  const Stack stack = list.back();
  list.pop_back();
  return {stack, false};
}

Stack StackPool::cut() {
  if (cut_ == slab_stacks) map_slab();
  const std::size_t last = slab_count_.load(std::memory_order_relaxed) - 1;
  std::byte* const lowest = slabs_[last].load(std::memory_order_relaxed) + cut_++ * stride_;
  // pairs with cut_so_far()
  cut_of_all_.store(last * slab_stacks + cut_, std::memory_order_release);
  return {lowest + guard_bytes_, lowest + stride_};
}

void StackPool::give(const Stack& stack) noexcept {
  {
    const std::lock_guard guard(lock_);
    if (warm_.size() < warm_max) {
      warm_.push_back(stack);
      return;
    }
  }
  madvise(stack.bottom, bytes_, MADV_DONTNEED);  // outside the lock: a system call
  const std::lock_guard guard(lock_);
  cold_.push_back(stack);
}

void StackPool::map_slab() {
  const std::size_t count = slab_count_.load(std::memory_order_relaxed);
  if (count == slabs_max) throw std::bad_alloc();
  void* const memory = mmap(nullptr, slab_stacks * stride_, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  madvise(memory, slab_stacks * stride_, MADV_NOHUGEPAGE);  // one touch shall cost one small page
  auto* const slab = static_cast<std::byte*>(memory);
  slabs_[count].store(slab, std::memory_order_relaxed);
  slab_count_.store(count + 1, std::memory_order_release);  // pairs with in_guard()
  warm_.reserve(warm_max);  // so that give() cannot fail
  cold_.reserve(mapped_.load(std::memory_order_relaxed) + slab_stacks);
  cut_ = 0;
  mapped_.fetch_add(slab_stacks, std::memory_order_relaxed);
}

Stack StackPool::stack(const std::size_t number) const noexcept {
  std::byte* const lowest =
      slabs_[number / slab_stacks].load(std::memory_order_relaxed) + number % slab_stacks * stride_;
  return {lowest + guard_bytes_, lowest + stride_};
}

void StackPool::install_guard(std::byte* const address) noexcept {
  if (guard_bytes_ > marked_bytes_max && protect(address, protected_plenty)) return;
  if (madvise(address, guard_bytes_, MADV_GUARD_INSTALL) == 0) return;
  (void)protect(address, protected_max);  // better no guard than no stack
}

// Returns false if there are `most` protected guards already.
bool StackPool::protect(std::byte* const address, const std::size_t most) noexcept {
  if (protected_.load(std::memory_order_relaxed) >= most) return false;
  if (mprotect(address, guard_bytes_, PROT_NONE) != 0) return false;
  protected_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool StackPool::in_guard(const void* const address) const noexcept {
  const auto* const byte = static_cast<const std::byte*>(address);
  const std::size_t count = slab_count_.load(std::memory_order_acquire);
  for (std::size_t index = 0; index < count; ++index) {
    const std::byte* const slab = slabs_[index].load(std::memory_order_relaxed);
    if (byte < slab || byte >= slab + slab_stacks * stride_) continue;
    return static_cast<std::size_t>(byte - slab) % stride_ < guard_bytes_;
  }
  return false;
}

}  // namespace imbrex::fiber
