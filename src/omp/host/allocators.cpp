// SPDX-License-Identifier: BSD-3-Clause
// Allocators: all memory spaces are the host's. An allocator of the program has an alignment, a
// limit, and a fallback for the limit.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "omp/region/context.hpp"
#include "omp/environment/fatal.hpp"

namespace imbrex::omp {

namespace {

using Handle = std::uintptr_t;
constexpr Handle default_allocator = 1, thread_allocator = 8;  // the predefined ones lie between

// The values of omp_alloctrait_key_t and omp_alloctrait_value_t.
enum Key : int { alignment = 2, pool_size = 4, fallback = 5, fallback_data = 6 };
enum Fallback : std::uintptr_t { to_default = 11, to_null = 12, to_abort = 13, to_allocator = 14 };
constexpr std::uintptr_t trait_default = ~std::uintptr_t{0};

struct Trait {
  int key;
  std::uintptr_t value;
};

struct Allocator {
  std::size_t alignment = 1;
  std::size_t pool_bytes = SIZE_MAX;
  std::uintptr_t fallback = to_default;
  Handle next = 0;                   // of to_allocator
  std::atomic<std::size_t> used{0};  // bytes of the pool
};

// Precedes each piece of memory.
struct Header {
  void* memory;
  std::size_t bytes;  // bytes that count in the pool; the requested memory follows them
  std::size_t wanted;
  Handle allocator;
};

Allocator* own(const Handle handle) noexcept {
  return handle > thread_allocator ? reinterpret_cast<Allocator*>(handle) : nullptr;
}

Handle resolve(const Handle handle) { return handle != 0 ? handle : caller().variables.allocator; }

bool take_from_pool(Allocator& allocator, const std::size_t bytes) noexcept {
  std::size_t used = allocator.used.load(std::memory_order_relaxed);
  do {
    if (bytes > allocator.pool_bytes || used > allocator.pool_bytes - bytes) return false;
  } while (!allocator.used.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

void* try_allocate(const std::size_t alignment, const std::size_t wanted, const Handle handle) {
  Allocator* const allocator = own(handle);
  std::size_t aligned = std::max(alignment, alignof(std::max_align_t));
  if (allocator != nullptr) aligned = std::max(aligned, allocator->alignment);
  const std::size_t bytes = wanted + sizeof(Header) + aligned;
  if (bytes < wanted) return nullptr;
  if (allocator != nullptr && !take_from_pool(*allocator, bytes)) return nullptr;
  void* const memory = std::malloc(bytes);
  if (memory == nullptr) {
    if (allocator != nullptr) allocator->used.fetch_sub(bytes, std::memory_order_relaxed);
    return nullptr;
  }
  const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(memory) + sizeof(Header);
  const std::uintptr_t place = (first + aligned - 1) / aligned * aligned;
  ::new (reinterpret_cast<void*>(place - sizeof(Header))) Header{memory, bytes, wanted, handle};
  return reinterpret_cast<void*>(place);
}

void* allocate(const std::size_t alignment, const std::size_t bytes, const Handle given) {
  if (bytes == 0) return nullptr;
  for (Handle handle = resolve(given);;) {
    if (void* const memory = try_allocate(alignment, bytes, handle)) return memory;
    const Allocator* const allocator = own(handle);
    const std::uintptr_t fallback = allocator == nullptr ? std::uintptr_t{to_null}
                                                         : allocator->fallback;
    if (fallback == to_null) return nullptr;
    if (fallback == to_abort) fatal("Out of memory allocating %zu bytes", bytes);
    handle = fallback == to_allocator ? allocator->next : default_allocator;
  }
}

Header& header_of(void* const place) noexcept {
  return *reinterpret_cast<Header*>(static_cast<std::byte*>(place) - sizeof(Header));
}

void give(void* const place) noexcept {
  if (place == nullptr) return;
  const Header header = header_of(place);
  if (Allocator* const allocator = own(header.allocator)) {
    allocator->used.fetch_sub(header.bytes, std::memory_order_relaxed);
  }
  std::free(header.memory);
}

void* allocate_zeroed(const std::size_t alignment, const std::size_t count, const std::size_t bytes,
                      const Handle allocator) {
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) return nullptr;
  void* const memory = allocate(alignment, all, allocator);
  if (memory != nullptr) std::memset(memory, 0, all);
  return memory;
}

// If both are in one pool, the old memory does not count beside the new.
void* reallocate(void* const memory, const std::size_t bytes, const Handle given) {
  if (memory == nullptr) return allocate(1, bytes, given);
  if (bytes == 0) {
    give(memory);
    return nullptr;
  }
  Header& header = header_of(memory);
  const Handle handle = given != 0 ? given : header.allocator;
  Allocator* const pool = handle == header.allocator ? own(handle) : nullptr;
  if (pool != nullptr) pool->used.fetch_sub(header.bytes, std::memory_order_relaxed);
  void* const moved = allocate(1, bytes, handle);
  if (pool != nullptr) pool->used.fetch_add(header.bytes, std::memory_order_relaxed);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, memory, std::min(bytes, header.wanted));
  give(memory);
  return moved;
}

bool set_trait(Allocator& allocator, const Trait& trait) noexcept {
  const bool by_default = trait.value == trait_default;
  switch (trait.key) {
    case alignment:
      if (by_default) return true;
      allocator.alignment = trait.value;
      return trait.value != 0 && (trait.value & (trait.value - 1)) == 0;
    case pool_size: allocator.pool_bytes = by_default ? SIZE_MAX : trait.value; return true;
    case fallback: allocator.fallback = by_default ? std::uintptr_t{to_default} : trait.value;
      return allocator.fallback >= to_default && allocator.fallback <= to_allocator;
    case fallback_data: allocator.next = trait.value; return true;
    default: return trait.key >= 1 && trait.key <= 8;  // hints
  }
}

Handle make_allocator(const int count, const Trait* const traits) {
  auto* const allocator = new Allocator;
  for (int index = 0; index < count; ++index) {
    if (set_trait(*allocator, traits[index])) continue;
    delete allocator;
    return 0;
  }
  return reinterpret_cast<Handle>(allocator);
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

void* omp_aligned_alloc(std::size_t alignment, std::size_t bytes, std::uintptr_t allocator) {
  return (alignment & (alignment - 1)) != 0 ? nullptr : allocate(alignment, bytes, allocator);
}
void* omp_alloc(std::size_t bytes, std::uintptr_t allocator) {
  return allocate(1, bytes, allocator);
}
void* omp_aligned_calloc(std::size_t alignment, std::size_t count, std::size_t bytes,
                         std::uintptr_t allocator) {
  if ((alignment & (alignment - 1)) != 0) return nullptr;
  return allocate_zeroed(alignment, count, bytes, allocator);
}
void* omp_calloc(std::size_t count, std::size_t bytes, std::uintptr_t allocator) {
  return allocate_zeroed(1, count, bytes, allocator);
}
void omp_free(void* memory, std::uintptr_t) { give(memory); }

void* omp_realloc(void* memory, std::size_t bytes, std::uintptr_t allocator, std::uintptr_t) {
  return reallocate(memory, bytes, allocator);
}

void* GOMP_alloc(std::size_t alignment, std::size_t bytes, std::uintptr_t allocator) {
  void* const memory = allocate(alignment, std::max<std::size_t>(bytes, 1), allocator);
  if (memory == nullptr) fatal("Out of memory allocating %zu bytes", bytes);
  return memory;
}
void GOMP_free(void* memory, std::uintptr_t) { give(memory); }

std::uintptr_t omp_init_allocator(std::uintptr_t, int count, const Trait* traits) {
  return make_allocator(count, traits);
}
std::uintptr_t omp_init_allocator_(const std::intptr_t*, const std::int32_t* count,
                                   const Trait* traits) {
  return make_allocator(*count, traits);
}
std::uintptr_t omp_init_allocator_8_(const std::intptr_t*, const std::int64_t* count,
                                     const Trait* traits) {
  return make_allocator(static_cast<int>(*count), traits);
}
void omp_destroy_allocator(std::uintptr_t allocator) { delete own(allocator); }
void omp_destroy_allocator_(const std::intptr_t* allocator) {
  delete own(static_cast<std::uintptr_t>(*allocator));
}
void omp_set_default_allocator(std::uintptr_t allocator) {
  caller().variables.allocator = allocator != 0 ? allocator : default_allocator;
}
void omp_set_default_allocator_(const std::intptr_t* allocator) {
  omp_set_default_allocator(static_cast<std::uintptr_t>(*allocator));
}
std::uintptr_t omp_get_default_allocator() { return caller().variables.allocator; }
std::intptr_t omp_get_default_allocator_() {
  return static_cast<std::intptr_t>(caller().variables.allocator);
}

}
#pragma GCC visibility pop
