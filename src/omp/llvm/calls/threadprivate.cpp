// SPDX-License-Identifier: BSD-3-Clause
// threadprivate variables that are no thread-local variables of the compiler
// (-fnoopenmp-use-tls, and other compilers of LLVM's ABI): each thread has its copies here. The
// compiler's own caches stay empty, so that each access asks here.
//
// Thread safety: a thread uses its own copies; the lock guards what the compiler has registered.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "omp/environment/fatal.hpp"
#include "omp/region/ident.hpp"
#include "omp/region/context.hpp"

namespace imbrex::omp {

namespace {

using DefaultConstruct = void* (*)(void* copy);
using CopyConstruct = void* (*)(void* copy, void* original);
using Destroy = void (*)(void* copy);

// One variable. The first value is that of the variable at the first use of any copy.
struct Variable {
  DefaultConstruct construct = nullptr;
  CopyConstruct copy = nullptr;
  Destroy destroy = nullptr;
  std::vector<std::byte> first;
};

base::SpinLock lock;
std::map<const void*, Variable>* variables IMBREX_GUARDED_BY(lock) = nullptr;  // never destroyed

Variable& variable_at(const void* const address) IMBREX_REQUIRES(lock) {
  if (variables == nullptr) variables = new std::map<const void*, Variable>;
  return (*variables)[address];
}

Variable describe(const void* const address, const std::size_t bytes) {
  const std::lock_guard guard(lock);
  Variable& variable = variable_at(address);
  if (variable.first.empty()) {
    const auto* const begin = static_cast<const std::byte*>(address);
    variable.first.assign(begin, begin + bytes);
  }
  return variable;
}

void* make_copy(void* const original, const std::size_t bytes, Destroy& destroy) {
  const Variable variable = describe(original, bytes);
  destroy = variable.destroy;
  void* const copy = std::malloc(std::max<std::size_t>(bytes, 1));
  if (copy == nullptr) fatal("Out of memory allocating %zu bytes", bytes);
  std::memset(copy, 0, bytes);
  if (variable.construct != nullptr) {
    (void)variable.construct(copy);
  } else if (variable.copy != nullptr) {
    (void)variable.copy(copy, original);
  } else {
    std::memcpy(copy, variable.first.data(), std::min(bytes, variable.first.size()));
  }
  return copy;
}

// The initial thread uses the variable itself.
void* own_copy(void* const original, const std::size_t bytes) {
  Initial& thread = initial();
  if (thread.thread == 0) {
    (void)describe(original, bytes);
    return original;
  }
  for (const PrivateCopy& copy : thread.copies) {
    if (copy.original == original) return copy.memory;
  }
  PrivateCopy made{original, nullptr, nullptr};
  made.memory = make_copy(original, bytes, made.destroy);
  thread.copies.push_back(made);
  return made.memory;
}

}  // namespace

}  // namespace imbrex::omp

#pragma GCC visibility push(default)
extern "C" {

using namespace imbrex::omp;

void __kmpc_threadprivate_register(const Ident*, void* address, DefaultConstruct construct,
                                   CopyConstruct copy, Destroy destroy) {
  const std::lock_guard guard(lock);
  Variable& variable = variable_at(address);
  variable.construct = construct;
  variable.copy = copy;
  variable.destroy = destroy;
}
void* __kmpc_threadprivate(const Ident*, std::int32_t, void* address, std::size_t bytes) {
  return own_copy(address, bytes);
}
void* __kmpc_threadprivate_cached(const Ident*, std::int32_t, void* address, std::size_t bytes,
                                  void***) {
  return own_copy(address, bytes);
}
void* kmp_threadprivate_insert(std::int32_t, void* address, void*, std::size_t bytes) {
  return own_copy(address, bytes);
}
void kmp_threadprivate_insert_private_data(std::int32_t, void* address, void*,
                                           std::size_t bytes) {
  (void)own_copy(address, bytes);
}

}
#pragma GCC visibility pop
