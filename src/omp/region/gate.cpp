// SPDX-License-Identifier: BSD-3-Clause
#include "omp/region/gate.hpp"

#include <sched.h>

#include <cstdint>
#include <mutex>
#include <new>

#include "base/arch.hpp"
#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/groups.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "omp/environment/settings.hpp"

namespace imbrex::omp {

namespace {

// Lies on the stack of the waiting task.
struct AddressWait : detail::LinkedEvent {
  const void* address = nullptr;
  [[nodiscard]] AddressWait* following() const noexcept { return static_cast<AddressWait*>(next); }
};

}  // namespace

struct alignas(base::cache_line_bytes) Waking::Bucket {
  base::SpinLock lock;
  AddressWait* first IMBREX_GUARDED_BY(lock) = nullptr;  // the longest waiting one
  AddressWait* last IMBREX_GUARDED_BY(lock) = nullptr;
  std::atomic<int> waiting{0};  // see gate.hpp; tasks that check or are queued
};

namespace {

using Bucket = Waking::Bucket;

Bucket buckets[256];

Bucket& bucket_of(const void* const address) noexcept {
  const auto key = reinterpret_cast<std::uintptr_t>(address) >> 2;
  return buckets[(key ^ (key >> 8) ^ (key >> 16)) % std::size(buckets)];
}

void append(Bucket& bucket, AddressWait& wait) noexcept IMBREX_REQUIRES(bucket.lock) {
  if (bucket.last == nullptr) {
    bucket.first = &wait;
  } else {
    bucket.last->next = &wait;
  }
  bucket.last = &wait;
}

// Takes out the waiters of `address` (null: of every address), `most` at most, and appends them to
// `taken`.
void take(Bucket& bucket, const void* const address, int most, Waking::List& taken) noexcept
    IMBREX_REQUIRES(bucket.lock) {
  AddressWait* before = nullptr;
  for (AddressWait* wait = bucket.first; wait != nullptr && most > 0;) {
    AddressWait* const next = wait->following();
    if (address != nullptr && wait->address != address) {
      before = wait;
    } else {
      if (before == nullptr) {
        bucket.first = next;
      } else {
        before->next = next;
      }
      if (bucket.last == wait) bucket.last = before;
      wait->next = nullptr;
      *taken.end = wait;
      taken.end = &wait->next;
      --most;
    }
    wait = next;
  }
}

}  // namespace

void Waking::add(const void* const address, const int most) noexcept {
  add_from(bucket_of(address), address, most);
}
void Waking::add_all() noexcept {
  for (Bucket& bucket : buckets) add_from(bucket, nullptr, INT32_MAX);
}
void Waking::add_from(Bucket& bucket, const void* const address, const int most) noexcept {
  if (bucket.waiting.fetch_add(0, std::memory_order_acq_rel) == 0) return;
  const std::lock_guard guard(bucket.lock);
  take(bucket, address, most, taken_);
}

Waking::~Waking() { detail::fire_all(taken_.first); }

bool Patience::has_a_round() noexcept {
  const Settings& now = settings();
  if (rounds_ >= now.spin_count / pauses_of_round || now.crowded.load(std::memory_order_relaxed) ||
      !detail::may_spin(last_look_) || !detail::nothing_ready()) {
    return false;
  }
  // The threads may have been put on one processor, whatever their number.
  if (++rounds_ % 16 == 0) sched_yield();
  base::pause();
  return true;
}

void wait_slowly(const void* const address, const char* const what, const IsReady is_ready,
                 void* const context) {
  const bool in_callback = detail::in_callback();
  if (in_callback) Waking().add_all();  // see gate.hpp
  const bool blocks = in_callback || !detail::join_runtime();
  Bucket& bucket = bucket_of(address);
  bucket.waiting.fetch_add(1, std::memory_order_acq_rel);
  for (;;) {
    AddressWait wait;
    wait.address = address;
    {
      const std::lock_guard guard(bucket.lock);
      if (is_ready(context)) break;
      append(bucket, wait);
    }
    if (blocks) {
      detail::block(wait.event, what);
    } else {
      detail::await(wait.event, {.kind = detail::WaitKind::event, .what = what});
    }
  }
  bucket.waiting.fetch_sub(1, std::memory_order_relaxed);
}

void forget_waits() noexcept {
  for (Bucket& bucket : buckets) ::new (&bucket) Bucket;
}

void wake_one(const void* const address) noexcept { Waking().add(address, 1); }
void wake_all(const void* const address) noexcept { Waking().add(address, INT32_MAX); }

}  // namespace imbrex::omp
