// SPDX-License-Identifier: BSD-3-Clause
// The memory of a stack of items. Knows no worker.
#include <algorithm>
#include <cstring>
#include <new>

#include "imbrex/detail/distributed/untyped_pool.hpp"

namespace imbrex::detail {

namespace {
constexpr std::align_val_t alignment{item_alignment_max};
}

ItemStack::~ItemStack() { ::operator delete(memory_, alignment); }

void ItemStack::make_room(const std::size_t more) {
  const std::size_t used = bytes();
  const auto room = static_cast<std::size_t>(end - memory_);
  if (used + more <= room / 2) {  // items that were given away have left room in front
    if (used != 0) std::memmove(memory_, bottom, used);
  } else {
    const std::size_t bigger = std::max<std::size_t>({4096, 2 * room, 2 * (used + more)});
    auto* const memory = static_cast<std::byte*>(::operator new(bigger, alignment));
    if (used != 0) std::memcpy(memory, bottom, used);
    ::operator delete(memory_, alignment);
    memory_ = memory;
    end = memory + bigger;
  }
  bottom = memory_;
  top = memory_ + used;
}

void ItemStack::add(const void* const items, const std::size_t some) {
  if (some == 0) return;
  if (static_cast<std::size_t>(end - top) < some) make_room(some);
  std::memcpy(top, items, some);
  top += some;
}

void ItemStack::take_first(ItemStack& from, const std::size_t some) {
  add(from.bottom, some);
  from.bottom += some;
}

void ItemStack::take_last(ItemStack& from, const std::size_t some) {
  add(from.top - some, some);
  from.top -= some;
}

}  // namespace imbrex::detail
