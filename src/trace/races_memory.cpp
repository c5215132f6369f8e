// SPDX-License-Identifier: BSD-3-Clause
// Memory of the libraries in the variant for ThreadSanitizer, which would see their calls of the
// functions of the C library that it replaces. The libraries pass memory from one task to another
// in ways that ThreadSanitizer does not know, so their allocations and copies are hidden from it.
//
// The names are local to each library: a version script hides them.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "trace/races.hpp"

namespace {

void* allocate(const std::size_t bytes, const std::size_t alignment) noexcept {
  const imbrex::trace::races::Silent silent;
  if (alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__) return std::malloc(bytes != 0 ? bytes : 1);
  return std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
}

void* allocate_or_throw(const std::size_t bytes, const std::size_t alignment) {
  void* const memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void deallocate(void* const memory) noexcept {
  const imbrex::trace::races::Silent silent;
  std::free(memory);
}

}  // namespace

void* operator new(const std::size_t bytes) { return allocate_or_throw(bytes, 1); }
void* operator new[](const std::size_t bytes) { return allocate_or_throw(bytes, 1); }
void* operator new(const std::size_t bytes, const std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](const std::size_t bytes, const std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(const std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, 1);
}
void* operator new[](const std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, 1);
}
void operator delete(void* const memory) noexcept { deallocate(memory); }
void operator delete[](void* const memory) noexcept { deallocate(memory); }
void operator delete(void* const memory, std::size_t) noexcept { deallocate(memory); }
void operator delete[](void* const memory, std::size_t) noexcept { deallocate(memory); }
void operator delete(void* const memory, std::align_val_t) noexcept { deallocate(memory); }
void operator delete[](void* const memory, std::align_val_t) noexcept { deallocate(memory); }
void operator delete(void* const memory, std::size_t, std::align_val_t) noexcept {
  deallocate(memory);
}
void operator delete[](void* const memory, std::size_t, std::align_val_t) noexcept {
  deallocate(memory);
}

// The empty statements keep the compiler from turning the loops into calls of memcpy() and
// memset().
extern "C" {

void* memcpy(void* to, const void* from, std::size_t bytes) {
  auto* const target = static_cast<std::byte*>(to);
  const auto* const source = static_cast<const std::byte*>(from);
  for (std::size_t i = 0; i < bytes; ++i) {
    target[i] = source[i];
    asm volatile("");
  }
  return to;
}

void* memmove(void* to, const void* from, const std::size_t bytes) {
  auto* const target = static_cast<std::byte*>(to);
  const auto* const source = static_cast<const std::byte*>(from);
  if (reinterpret_cast<std::uintptr_t>(to) <= reinterpret_cast<std::uintptr_t>(from)) {
    return memcpy(to, from, bytes);
  }
  for (std::size_t i = bytes; i-- > 0;) {
    target[i] = source[i];
    asm volatile("");
  }
  return to;
}

void* memset(void* memory, const int value, const std::size_t bytes) {
  auto* const target = static_cast<std::byte*>(memory);
  for (std::size_t i = 0; i < bytes; ++i) {
    target[i] = static_cast<std::byte>(value);
    asm volatile("");
  }
  return memory;
}

}  // extern "C"
