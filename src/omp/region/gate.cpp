// SPDX-License-Identifier: BSD-3-Clause
#include "omp/region/gate.hpp"

#include <sched.h>

#include <cstdint>
#include <mutex>

#include "base/arch.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "omp/environment/settings.hpp"

namespace imbrex::omp {

namespace {

// Stands on the stack of whoever waits.
struct Waiter {
  const void* address;
  Waiter* next;
  detail::EventWord event;
};

struct alignas(base::cache_line_bytes) Bucket {
  base::SpinLock lock;            // guards first and last
  Waiter* first = nullptr;        // the longest waiting
  Waiter* last = nullptr;
  std::atomic<int> waiting{0};    // see gate.hpp; those that look or are queued
};

Bucket buckets[256];

Bucket& bucket_of(const void* const address) noexcept {
  const auto key = reinterpret_cast<std::uintptr_t>(address) >> 2;
  return buckets[(key ^ (key >> 8) ^ (key >> 16)) % std::size(buckets)];
}

// REQUIRES: bucket.lock
void append(Bucket& bucket, Waiter& waiter) noexcept {
  (bucket.last == nullptr ? bucket.first : bucket.last->next) = &waiter;
  bucket.last = &waiter;
}

// REQUIRES: bucket.lock. Takes out those of `address`, `most` at most: a list.
Waiter* take(Bucket& bucket, const void* const address, int most) noexcept {
  Waiter* taken = nullptr;
  Waiter** end = &taken;
  Waiter* before = nullptr;
  for (Waiter** link = &bucket.first; *link != nullptr && most > 0;) {
    Waiter& waiter = **link;
    if (waiter.address != address) {
      before = &waiter;
      link = &waiter.next;
      continue;
    }
    *link = waiter.next;
    if (bucket.last == &waiter) bucket.last = before;
    waiter.next = nullptr;
    *end = &waiter;
    end = &waiter.next;
    --most;
  }
  return taken;
}

void wake(const void* const address, const int most) noexcept {
  Bucket& bucket = bucket_of(address);
  if (bucket.waiting.fetch_add(0, std::memory_order_acq_rel) == 0) return;
  Waiter* taken = nullptr;
  {
    const std::lock_guard guard(bucket.lock);
    taken = take(bucket, address, most);
  }
  while (taken != nullptr) {
    Waiter* const next = taken->next;  // read first: once fired, the waiter may be gone
    detail::fire(taken->event);
    taken = next;
  }
}

}  // namespace

bool Patience::has_a_round() noexcept {
  const Settings& now = settings();
  if (rounds_ >= now.spin_count / pauses_of_round || now.crowded.load(std::memory_order_relaxed) ||
      !detail::may_spin(last_look_) || !detail::nothing_ready()) {
    return false;
  }
  // The threads may have been put on one processor, however many there are.
  if (++rounds_ % 16 == 0) sched_yield();
  base::pause();
  return true;
}

void wait_slowly(const void* const address, const char* const what, const IsReady is_ready,
                 void* const context) {
  detail::join_runtime();
  Bucket& bucket = bucket_of(address);
  const detail::WaitReason reason{.kind = detail::WaitKind::event, .what = what};
  bucket.waiting.fetch_add(1, std::memory_order_acq_rel);
  for (;;) {
    Waiter waiter{.address = address, .next = nullptr, .event = {}};
    {
      const std::lock_guard guard(bucket.lock);
      if (is_ready(context)) break;
      append(bucket, waiter);
    }
    detail::await(waiter.event, reason);
  }
  bucket.waiting.fetch_sub(1, std::memory_order_relaxed);
}

void wake_one(const void* const address) noexcept { wake(address, 1); }
void wake_all(const void* const address) noexcept { wake(address, INT32_MAX); }

}  // namespace imbrex::omp
