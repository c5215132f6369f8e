// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/data/buffer.hpp"

#include <new>

namespace imbrex::distributed {

static_assert(sizeof(Buffer) <= 64);

Buffer* Buffer::make(const std::size_t bytes) {
  void* const memory = ::operator new(head_bytes + bytes, std::align_val_t(head_bytes));
  return ::new (memory) Buffer(bytes);
}

void Buffer::release() noexcept {
  if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  this->~Buffer();
  ::operator delete(static_cast<void*>(this), std::align_val_t(head_bytes));
}

}  // namespace imbrex::distributed
