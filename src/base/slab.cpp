// SPDX-License-Identifier: BSD-3-Clause
#include "base/slab.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>

namespace imbrex::base {

namespace {
constexpr std::size_t chunk_bytes = 256 * 1024;

void free_large(std::byte* const slot) noexcept {
  ::operator delete(slot - slab_unit, std::align_val_t{slab_unit});
}

}  // namespace

SlabPool::~SlabPool() {
  for (const Chunk& chunk : chunks_) ::operator delete(chunk.memory, std::align_val_t{4096});
  for (std::byte* const slot : large_) free_large(slot);
}

SlabPool::Batch SlabPool::take(const std::size_t slab_class, const std::uint32_t most) {
  const std::lock_guard guard(lock_);
  std::vector<Batch>& batches = classes_[slab_class].batches;
  if (batches.empty()) return cut(slab_class, most);
  const Batch batch = batches.back();
  batches.pop_back();
  return batch;
}

void SlabPool::give(const std::size_t slab_class, const Batch& batch) noexcept {
  const std::lock_guard guard(lock_);
  classes_[slab_class].batches.push_back(batch);
}

SlabPool::Batch SlabPool::cut(const std::size_t slab_class, const std::uint32_t most) {
  Class& here = classes_[slab_class];
  const std::size_t slot_bytes = slab_class * slab_unit;
  if (here.open_chunk == SIZE_MAX ||
      chunks_[here.open_chunk].used + slot_bytes > chunks_[here.open_chunk].bytes) {
    auto* const memory =
        static_cast<std::byte*>(::operator new(chunk_bytes, std::align_val_t{4096}));
    std::memset(memory, 0, chunk_bytes);  // a walker finds the mark "free", which is zero
    here.open_chunk = chunks_.size();
    chunks_.push_back({memory, slot_bytes, chunk_bytes, 0});
    mapped_bytes_.fetch_add(chunk_bytes, std::memory_order_relaxed);
  }
  Chunk& chunk = chunks_[here.open_chunk];
  Batch batch;
  Slot** tail = &batch.head;
  while (batch.count < most && chunk.used + slot_bytes <= chunk.bytes) {
    auto* const slot = reinterpret_cast<Slot*>(chunk.memory + chunk.used);
    chunk.used += slot_bytes;
    *tail = slot;
    tail = &slot->next;
    ++batch.count;
  }
  *tail = nullptr;
  return batch;
}

void* SlabPool::take_large(const std::size_t bytes) {
  auto* const memory = static_cast<std::byte*>(
      ::operator new(slab_unit + bytes, std::align_val_t{slab_unit}));
  std::byte* const slot = memory + slab_unit;
  std::memset(slot, 0, slab_unit * 2);
  try {
    const std::lock_guard guard(lock_);
    place_of(slot) = large_.size();
    large_.push_back(slot);
  } catch (...) {
    free_large(slot);
    throw;
  }
  return slot;
}

void SlabPool::give_large(void* const slot) noexcept {
  auto* const large = static_cast<std::byte*>(slot);
  {
    const std::lock_guard guard(lock_);
    const std::size_t place = place_of(large);
    large_[place] = large_.back();
    place_of(large_[place]) = place;
    large_.pop_back();
  }
  free_large(large);
}

void SlabCache::refill(const std::size_t slab_class) {
  List& list = lists_[slab_class];
  const SlabPool::Batch batch = pool_->take(slab_class, list.next_batch);
  list.head = batch.head;
  list.room = keep_max(slab_class) - batch.count;
  list.next_batch = std::min(4 * list.next_batch, slab_batch);
}

void SlabCache::spill(const std::size_t slab_class) noexcept {
  List& list = lists_[slab_class];
  while (list.room < keep_max(slab_class) / 2) {
    SlabPool::Batch batch{list.head, 0};
    SlabPool::Slot* last = nullptr;
    while (batch.count < slab_batch) {
      last = list.head;
      list.head = last->next;
      ++batch.count;
    }
    last->next = nullptr;
    list.room += batch.count;
    pool_->give(slab_class, batch);
  }
}

void SlabCache::flush() noexcept {
  for (std::size_t slab_class = 1; slab_class < slab_classes; ++slab_class) {
    List& list = lists_[slab_class];
    const std::uint32_t most = keep_max(slab_class);
    if (list.head != nullptr) pool_->give(slab_class, {list.head, most - list.room});
    list.head = nullptr;
    list.room = most;
  }
}

}  // namespace imbrex::base
