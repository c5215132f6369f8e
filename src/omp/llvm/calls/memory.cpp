// SPDX-License-Identifier: BSD-3-Clause
// Memory as LLVM's compilers ask for it: allocators of OpenMP, and kmp_malloc() of its omp.h.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "omp/region/ident.hpp"

#pragma GCC visibility push(default)
extern "C" {

void* omp_aligned_alloc(std::size_t alignment, std::size_t bytes, std::uintptr_t allocator);
void* omp_alloc(std::size_t bytes, std::uintptr_t allocator);
void* omp_calloc(std::size_t count, std::size_t bytes, std::uintptr_t allocator);
void* omp_realloc(void* memory, std::size_t bytes, std::uintptr_t allocator,
                  std::uintptr_t old_allocator);
void omp_free(void* memory, std::uintptr_t allocator);
std::uintptr_t omp_init_allocator(std::uintptr_t space, int count, const void* traits);
void omp_destroy_allocator(std::uintptr_t allocator);
void omp_set_default_allocator(std::uintptr_t allocator);
std::uintptr_t omp_get_default_allocator();

void* __kmpc_alloc(int, std::size_t bytes, std::uintptr_t allocator) {
  return omp_alloc(bytes, allocator);
}
void* __kmpc_aligned_alloc(int, std::size_t alignment, std::size_t bytes,
                           std::uintptr_t allocator) {
  return omp_aligned_alloc(alignment, bytes, allocator);
}
void* __kmpc_calloc(int, std::size_t count, std::size_t bytes, std::uintptr_t allocator) {
  return omp_calloc(count, bytes, allocator);
}
void* __kmpc_realloc(int, void* memory, std::size_t bytes, std::uintptr_t allocator,
                     std::uintptr_t old_allocator) {
  return omp_realloc(memory, bytes, allocator, old_allocator);
}
void __kmpc_free(int, void* memory, std::uintptr_t allocator) { omp_free(memory, allocator); }
std::uintptr_t __kmpc_init_allocator(int, std::uintptr_t space, int count, const void* traits) {
  return omp_init_allocator(space, count, traits);
}
void __kmpc_destroy_allocator(int, std::uintptr_t allocator) { omp_destroy_allocator(allocator); }
void __kmpc_set_default_allocator(int, std::uintptr_t allocator) {
  omp_set_default_allocator(allocator);
}
std::uintptr_t __kmpc_get_default_allocator(int) { return omp_get_default_allocator(); }

void* kmp_malloc(std::size_t bytes) { return std::malloc(bytes); }
void* kmp_aligned_malloc(std::size_t bytes, std::size_t alignment) {
  void* memory = nullptr;
  const std::size_t least = std::max(alignment, sizeof(void*));
  return posix_memalign(&memory, least, bytes) == 0 ? memory : nullptr;
}
void* kmp_calloc(std::size_t count, std::size_t bytes) { return std::calloc(count, bytes); }
void* kmp_realloc(void* memory, std::size_t bytes) { return std::realloc(memory, bytes); }
void kmp_free(void* memory) { std::free(memory); }

// Fortran passes addresses.
void* kmp_malloc_(const std::size_t* bytes) { return kmp_malloc(*bytes); }
void* kmp_aligned_malloc_(const std::size_t* bytes, const std::size_t* alignment) {
  return kmp_aligned_malloc(*bytes, *alignment);
}
void* kmp_calloc_(const std::size_t* count, const std::size_t* bytes) {
  return kmp_calloc(*count, *bytes);
}
void* kmp_realloc_(void** memory, const std::size_t* bytes) { return kmp_realloc(*memory, *bytes); }
void kmp_free_(void** memory) { kmp_free(*memory); }

}
#pragma GCC visibility pop
