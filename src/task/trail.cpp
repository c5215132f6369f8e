// SPDX-License-Identifier: BSD-3-Clause
#include "task/trail.hpp"

namespace imbrex::task {

void Trails::begin(Step& step, const std::uint64_t message) noexcept {
  constexpr int tries = 8;
  const std::uint32_t first = next_.fetch_add(1, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < tries; ++i) {
    const std::uint32_t number = (first + i) % places;
    Trail& trail = trails_[number];
    std::uint32_t free = 0;
    // acquire: pairs with leave(), which was the last reader of the rest
    if (trail.count.load(std::memory_order_relaxed) != 0 ||
        !trail.count.compare_exchange_strong(free, 2, std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
      continue;
    }
    trail.message = message;
    trail.longest_us.store(0, std::memory_order_relaxed);
    step = {number + 1, 0};
    return;
  }
}

void Trails::pass(const Step& from, Step& to) noexcept {
  // the caller is on the trail
  trails_[from.trail - 1].count.fetch_add(1, std::memory_order_relaxed);
  to = from;
}

void Trails::note(const Step& step, const float behind_us) noexcept {
  std::atomic<float>& longest = trails_[step.trail - 1].longest_us;
  const float length = step.length_us + behind_us;
  float now = longest.load(std::memory_order_relaxed);
  while (now < length &&
         !longest.compare_exchange_weak(now, length, std::memory_order_relaxed)) {
  }
}

bool Trails::leave(Step& step, Path& ended) noexcept {
  Trail& trail = trails_[step.trail - 1];
  step.trail = 0;
  // acq_rel: the last task sees the notes of all tasks, and the message.
  if (trail.count.fetch_sub(1, std::memory_order_acq_rel) != 2) return false;
  ended = {trail.message, trail.longest_us.load(std::memory_order_relaxed)};
  trail.count.store(0, std::memory_order_release);  // pairs with begin()
  return true;
}

}  // namespace imbrex::task
