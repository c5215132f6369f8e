// SPDX-License-Identifier: BSD-3-Clause
#include "omp/region/block_cache.hpp"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"

namespace imbrex::omp {

namespace {

// fork() holds the pool, so that the child finds it whole.
base::SlabPool& pool();
void before_fork() IMBREX_LOCKS_NOT_SEEN { pool().hold(); }
void after_fork() IMBREX_LOCKS_NOT_SEEN { pool().give_up(); }

// Never destroyed: threads end after it would be.
base::SlabPool& pool() {
  static base::SlabPool& never_destroyed = []() -> base::SlabPool& {
    auto& made = *new base::SlabPool;
    pthread_atfork(&before_fork, &after_fork, &after_fork);
    return made;
  }();
  return never_destroyed;
}

base::SpinLock lock;
std::vector<bool>* taken IMBREX_GUARDED_BY(lock) = nullptr;  // by number; never destroyed

}  // namespace

BlockCache::BlockCache() : cache_(pool()) {}

void* BlockCache::take_large(const std::size_t bytes) { return pool().take_large(bytes); }
void BlockCache::give_large(void* const memory) noexcept { pool().give_large(memory); }

int take_thread_number() {
  const std::lock_guard guard(lock);
  if (taken == nullptr) taken = new std::vector<bool>;
  const auto free = std::ranges::find(*taken, false);
  const auto number = free - taken->begin();
  if (free == taken->end()) {
    taken->push_back(true);
  } else {
    *free = true;
  }
  return static_cast<int>(number);
}

void give_thread_number(const int number) noexcept {
  const std::lock_guard guard(lock);
  (*taken)[static_cast<std::size_t>(number)] = false;
}

int count_thread_numbers() noexcept {
  const std::lock_guard guard(lock);
  return taken == nullptr ? 0 : static_cast<int>(std::ranges::count(*taken, true));
}

void forget_thread_numbers(const int own) {
  ::new (&lock) base::SpinLock;  // another thread may have held it
  const std::lock_guard guard(lock);
  taken = new std::vector<bool>(static_cast<std::size_t>(own) + 1, false);
  if (own >= 0) taken->back() = true;
}

}  // namespace imbrex::omp
