// SPDX-License-Identifier: BSD-3-Clause
// What each thread of OpenMP has of its own for LLVM's compilers: blocks of memory for tasks, and a
// number.
//
// Thread safety: only its thread uses a BlockCache; any thread calls the functions.
#pragma once

#include <cstddef>

#include "base/slab.hpp"

namespace imbrex::omp {

class BlockCache {
 public:
  BlockCache();
  [[nodiscard]] void* take(const std::size_t bytes) {
    if (bytes > base::slab_bytes_max) [[unlikely]] return take_large(bytes);
    return cache_.take(base::slab_class(bytes));
  }
  // `memory`: from take(bytes) of any thread.
  void give(void* const memory, const std::size_t bytes) noexcept {
    if (bytes > base::slab_bytes_max) [[unlikely]] return give_large(memory);
    cache_.give(memory, base::slab_class(bytes));
  }

 private:
  static void* take_large(std::size_t bytes);
  static void give_large(void* memory) noexcept;

  base::SlabCache cache_;
};

// The smallest number that no thread has.
[[nodiscard]] int take_thread_number();
void give_thread_number(int number) noexcept;
[[nodiscard]] int count_thread_numbers() noexcept;
// In a child of fork: only the calling thread, which keeps `own`, is there.
void forget_thread_numbers(int own);

}  // namespace imbrex::omp
