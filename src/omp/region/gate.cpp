// SPDX-License-Identifier: BSD-3-Clause
#include "omp/region/gate.hpp"

#include <sched.h>

#include <cstdint>
#include <mutex>

#include "base/arch.hpp"
#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "omp/environment/settings.hpp"

namespace imbrex::omp {

namespace {

// Stands on the stack of whoever waits.
struct AddressWait {
  const void* address;
  AddressWait* next;
  detail::EventWord event;
};

struct alignas(base::cache_line_bytes) Bucket {
  base::SpinLock lock;
  AddressWait* first IMBREX_GUARDED_BY(lock) = nullptr;  // the longest waiting
  AddressWait* last IMBREX_GUARDED_BY(lock) = nullptr;
  std::atomic<int> waiting{0};  // see gate.hpp; those that look or are queued
};

Bucket buckets[256];

Bucket& bucket_of(const void* const address) noexcept {
  const auto key = reinterpret_cast<std::uintptr_t>(address) >> 2;
  return buckets[(key ^ (key >> 8) ^ (key >> 16)) % std::size(buckets)];
}

void append(Bucket& bucket, AddressWait& wait) noexcept IMBREX_REQUIRES(bucket.lock) {
  (bucket.last == nullptr ? bucket.first : bucket.last->next) = &wait;
  bucket.last = &wait;
}

// Takes out those of `address`, `most` at most: a list.
AddressWait* take(Bucket& bucket, const void* const address, int most) noexcept
    IMBREX_REQUIRES(bucket.lock) {
  AddressWait* taken = nullptr;
  AddressWait** end = &taken;
  AddressWait* before = nullptr;
  for (AddressWait** link = &bucket.first; *link != nullptr && most > 0;) {
    AddressWait& wait = **link;
    if (wait.address != address) {
      before = &wait;
      link = &wait.next;
      continue;
    }
    *link = wait.next;
    if (bucket.last == &wait) bucket.last = before;
    wait.next = nullptr;
    *end = &wait;
    end = &wait.next;
    --most;
  }
  return taken;
}

void wake(const void* const address, const int most) noexcept {
  Bucket& bucket = bucket_of(address);
  if (bucket.waiting.fetch_add(0, std::memory_order_acq_rel) == 0) return;
  AddressWait* taken = nullptr;
  {
    const std::lock_guard guard(bucket.lock);
    taken = take(bucket, address, most);
  }
  while (taken != nullptr) {
    AddressWait* const next = taken->next;  // read first: once fired, the wait may be gone
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
    AddressWait wait{.address = address, .next = nullptr, .event = {}};
    {
      const std::lock_guard guard(bucket.lock);
      if (is_ready(context)) break;
      append(bucket, wait);
    }
    detail::await(wait.event, reason);
  }
  bucket.waiting.fetch_sub(1, std::memory_order_relaxed);
}

void wake_one(const void* const address) noexcept { wake(address, 1); }
void wake_all(const void* const address) noexcept { wake(address, INT32_MAX); }

}  // namespace imbrex::omp
