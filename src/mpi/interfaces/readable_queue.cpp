// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/interfaces/readable_queue.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <mutex>
#include <system_error>

namespace imbrex::mpi {

namespace {

int open_descriptor() {
  const int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (descriptor < 0) {
    throw std::system_error(errno, std::generic_category(),
                            "eventfd (ulimit -n says how many descriptors a process may have)");
  }
  return descriptor;
}

}  // namespace

ReadableQueue::ReadableQueue() : descriptor_(open_descriptor()) {}

ReadableQueue::~ReadableQueue() { ::close(descriptor_); }

Readable* ReadableQueue::take(const int most) noexcept {
  if (most <= 0) return nullptr;
  const std::lock_guard guard(lock_);
  silence();
  collect();
  Readable* const taken = first_;
  Readable* end = nullptr;
  for (int i = 0; i < most && first_ != nullptr; ++i) {
    end = first_;
    first_ = first_->next;
  }
  if (end != nullptr) end->next = nullptr;
  if (first_ != nullptr) make_readable();
  return taken;
}

void ReadableQueue::collect() noexcept {
  // acquire: the items of push(). release: a push() that finds the queue empty sets `is_readable_`
  // after silence() has cleared it.
  Readable* youngest = arrived_.exchange(nullptr, std::memory_order_acq_rel);
  if (youngest == nullptr) return;
  Readable* const last = youngest;
  Readable* oldest = nullptr;
  while (youngest != nullptr) {
    Readable* const before = youngest->next;
    youngest->next = oldest;
    oldest = youngest;
    youngest = before;
  }
  (first_ == nullptr ? first_ : last_->next) = oldest;
  last_ = last;
}

// The counter of an eventfd has 64 bits, so a write cannot fail for want of room.
void ReadableQueue::make_readable() noexcept {
  constexpr std::uint64_t one = 1;
  while (::write(descriptor_, &one, sizeof one) < 0 && errno == EINTR) {
  }
  is_readable_.store(true, std::memory_order_release);
}

void ReadableQueue::silence() noexcept {
  if (!is_readable_.load(std::memory_order_relaxed)) return;
  is_readable_.store(false, std::memory_order_relaxed);
  std::uint64_t count = 0;
  while (::read(descriptor_, &count, sizeof count) < 0 && errno == EINTR) {
  }
}

}  // namespace imbrex::mpi
