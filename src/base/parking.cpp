// SPDX-License-Identifier: BSD-3-Clause
#include "base/parking.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace imbrex::base {

namespace {

void futex_wake(std::atomic<std::uint32_t>& word) noexcept {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// `timeout_us` 0: no limit.
void futex_wait(std::atomic<std::uint32_t>& word, const std::uint32_t value,
                const std::uint64_t timeout_us) noexcept {
  const timespec time{static_cast<time_t>(timeout_us / 1'000'000),
                      static_cast<long>(timeout_us % 1'000'000) * 1000};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, timeout_us == 0 ? nullptr : &time, nullptr,
          0);
}

}  // namespace

Parking::Parking(const int places)
    : words_(new Place[static_cast<std::size_t>(places)]) {}

void Parking::prepare(const int place) noexcept {
  int used = used_.load(std::memory_order_relaxed);
  while (used <= place &&
         !used_.compare_exchange_weak(used, place + 1, std::memory_order_relaxed)) {
  }
  words_[place].word.store(drowsy, std::memory_order_relaxed);  // ordered by the fence below
  asleep_.fetch_add(1, std::memory_order_relaxed);
  heavy_fence();
}

void Parking::cancel(const int place) noexcept { (void)wake_if_drowsy(place); }

bool Parking::sleep(const int place, const std::uint64_t timeout_us) noexcept {
  std::atomic<std::uint32_t>& word = words_[place].word;
  const std::uint64_t end = timeout_us == 0 ? 0 : monotonic_ns() + timeout_us * 1000;
  while (word.load(std::memory_order_acquire) == drowsy) {  // pairs with wake_if_drowsy()
    futex_wait(word, drowsy, timeout_us);
    if (end != 0 && monotonic_ns() >= end) return !wake_if_drowsy(place);
  }
  return true;
}

bool Parking::wake_if_drowsy(const int place) noexcept {
  std::uint32_t expected = drowsy;
  if (!words_[place].word.compare_exchange_strong(expected, awake, std::memory_order_acq_rel,
                                                  std::memory_order_relaxed)) {
    return false;
  }
  asleep_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

bool Parking::wake_any() noexcept {
  const int used = used_.load(std::memory_order_relaxed);  // ordered as the words are
  for (int place = 0; place < used; ++place) {
    if (words_[place].word.load(std::memory_order_relaxed) != drowsy) continue;
    if (wake_if_drowsy(place)) {
      futex_wake(words_[place].word);
      return true;
    }
  }
  return false;
}

bool Parking::wake(const int place) noexcept {
  light_fence();
  if (words_[place].word.load(std::memory_order_relaxed) != drowsy) return false;
  if (!wake_if_drowsy(place)) return false;
  futex_wake(words_[place].word);
  return true;
}

void Parking::wake_all() noexcept {
  light_fence();
  while (wake_any()) {
  }
}

void Bell::ring() noexcept {
  // release: pairs with was_rung(). From here on the owner may end the bell: a wake-up that comes
  // too late wakes somebody for nothing at most.
  if (word_.exchange(rung, std::memory_order_acq_rel) == awaited) futex_wake(word_);
}

bool Bell::wait(const std::uint64_t timeout_us) noexcept {
  std::uint32_t expected = quiet;
  if (!word_.compare_exchange_strong(expected, awaited, std::memory_order_relaxed)) {
    return was_rung();
  }
  const std::uint64_t end = timeout_us == 0 ? 0 : monotonic_ns() + timeout_us * 1000;
  while (word_.load(std::memory_order_relaxed) == awaited) {
    futex_wait(word_, awaited, timeout_us);
    expected = awaited;
    if (end != 0 && monotonic_ns() >= end &&
        word_.compare_exchange_strong(expected, quiet, std::memory_order_relaxed)) {
      return false;
    }
  }
  return was_rung();
}

}  // namespace imbrex::base
