// SPDX-License-Identifier: BSD-3-Clause
#include "base/sleep/parking.hpp"

#include <bit>

#include "base/sleep/futex.hpp"

namespace imbrex::base {

Parking::Parking(const int most)
    : chunks_(zeros<Chunk>(static_cast<std::size_t>(most / chunk_places) + 1)),
      chunk_count_(most / chunk_places + 1) {}

Parking::~Parking() {
  for (int chunk = 0; chunk < chunk_count_; ++chunk) {
    Place* const places = chunks_[chunk].load(std::memory_order_relaxed);
    if (places == nullptr) break;  // the chunks after this one were never opened
    delete[] places;
  }
}

void Parking::open(const int place) {
  Chunk& chunk = chunks_[place >> chunk_bits];
  if (chunk.load(std::memory_order_relaxed) != nullptr) return;
  chunk.store(new Place[chunk_places], std::memory_order_release);
}

void Parking::prepare(const int place) noexcept {
  int used = used_.load(std::memory_order_relaxed);
  while (used <= place &&  // release: a thread that sees the place sees its chunk
         !used_.compare_exchange_weak(used, place + 1, std::memory_order_release,
                                      std::memory_order_relaxed)) {
  }
  // Counted before the word, so that the count is never zero while a word is `drowsy`.
  asleep_.fetch_add(1, std::memory_order_relaxed);
  word_of(place).store(drowsy, std::memory_order_relaxed);  // ordered by the fence below
  if (crowded_.load(std::memory_order_acquire)) {
    asleep_.fetch_add(0, std::memory_order_acq_rel);  // pairs with waker_fence()
  } else {
    heavy_fence();
  }
}

void Parking::expect_crowd() noexcept {
  if (crowded_.load(std::memory_order_relaxed)) return;
  asleep_.fetch_or(crowd_bit, std::memory_order_seq_cst);
  heavy_fence();
  crowded_.store(true, std::memory_order_release);
}

bool Parking::cancel(const int place) noexcept { return wake_if_drowsy(word_of(place)); }

// A waker changes the word, then the count of calls, then calls. A sleeper that has read the count
// and then found its word unchanged sleeps only while the count stays, or is woken.
bool Parking::sleep(const int place, const std::uint64_t timeout_us) noexcept {
  std::atomic<std::uint32_t>& word = word_of(place);
  std::atomic<std::uint32_t>& calls = at(place / cluster_places * cluster_places).calls;
  const std::uint64_t end = time_after(timeout_us * 1000);
  for (;;) {
    const std::uint32_t before = calls.load(std::memory_order_acquire);
    if (word.load(std::memory_order_acquire) != drowsy) return true;  // pairs with wake_if_drowsy()
    futex_wait(calls, before, end, std::uint32_t{1} << (place % cluster_places));
    if (end != 0 && monotonic_ns() >= end) return !wake_if_drowsy(word);
  }
}

bool Parking::wake_if_drowsy(std::atomic<std::uint32_t>& word) noexcept {
  std::uint32_t expected = drowsy;
  if (!word.compare_exchange_strong(expected, awake, std::memory_order_acq_rel,
                                    std::memory_order_acquire)) {
    return false;  // acquire: the owner, which was woken, sees why
  }
  asleep_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

bool Parking::wake_any() noexcept {
  waker_fence();
  // A place that `used` lacks is ordered as the words are.
  const int used = used_.load(std::memory_order_acquire);
  for (int place = 0; place < used; ++place) {
    if (wake_drowsy(place)) return true;
  }
  return false;
}

bool Parking::wake_drowsy(const int place) noexcept {
  std::atomic<std::uint32_t>& word = word_of(place);
  if (word.load(std::memory_order_relaxed) != drowsy || !wake_if_drowsy(word)) return false;
  std::atomic<std::uint32_t>& calls = at(place / cluster_places * cluster_places).calls;
  calls.fetch_add(1, std::memory_order_release);
  futex_wake(calls, std::uint32_t{1} << (place % cluster_places));
  return true;
}

bool Parking::wake(const int place) noexcept {
  waker_fence();
  return wake_seen(place);
}

bool Parking::wake_seen(const int place) noexcept {
  // A thread that learnt of the place by a relaxed read may not see its chunk: the place is then
  // not asleep.
  const Place* const chunk = chunks_[place >> chunk_bits].load(std::memory_order_acquire);
  return chunk != nullptr && wake_drowsy(place);
}

void Parking::wake_all() noexcept {
  waker_fence();
  const int used = used_.load(std::memory_order_acquire);
  for (int place = 0; place < used; ++place) (void)wake_drowsy(place);
}

void Parking::wake_cluster(const int cluster, std::uint32_t places) noexcept {
  waker_fence();
  const int first = cluster * cluster_places;
  std::uint32_t slept = 0;
  for (; places != 0; places &= places - 1) {
    const int bit = std::countr_zero(places);
    std::atomic<std::uint32_t>& word = word_of(first + bit);
    if (word.load(std::memory_order_relaxed) == drowsy && wake_if_drowsy(word)) {
      slept |= std::uint32_t{1} << bit;
    }
  }
  if (slept == 0) return;
  std::atomic<std::uint32_t>& calls = at(first).calls;
  calls.fetch_add(1, std::memory_order_release);
  futex_wake(calls, slept);
}

}  // namespace imbrex::base
