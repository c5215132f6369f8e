// SPDX-License-Identifier: BSD-3-Clause
// Large arrays of which a program may use little: the system gives zeroed pages at the first touch.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace imbrex::base {

struct Free {
  void operator()(void* const memory) const noexcept { std::free(memory); }
};
template <class T>
using Zeros = std::unique_ptr<T[], Free>;

// An array of `count` objects of a type for which all bits zero are a value. Throws std::bad_alloc.
template <class T>
[[nodiscard]] Zeros<T> zeros(const std::size_t count) {
  static_assert(std::is_trivially_destructible_v<T>);
  void* const memory = std::calloc(count, sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return Zeros<T>(static_cast<T*>(memory));
}

}  // namespace imbrex::base
