// SPDX-License-Identifier: BSD-3-Clause
// Virtual time and its events: a heap of (time, sequence), so that events of one moment happen in
// the order in which they were added, and every run with one input is the same.
//
// Thread safety: none; a simulation has one thread.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "imbrex/error.hpp"

namespace imbrex::simulate {

using Time = std::int64_t;  // in nanoseconds, from the start of the program that is simulated

// The latest moment of a simulation, and the longest time of one thing: no sum of two overflows.
inline constexpr Time time_most = 4'000'000'000'000'000'000;

// A time that was computed. Throws Error if it is too long.
[[nodiscard]] inline Time time_of(const double nanoseconds) {
  if (!(nanoseconds <= static_cast<double>(time_most))) {
    throw Error(fmt::format("imbrex simulate: a time of {:.3g} s is too long: {:.3g} s is the most "
                            "that can be simulated: reduce times or sizes",
                            nanoseconds * 1e-9, static_cast<double>(time_most) * 1e-9));
  }
  return static_cast<Time>(std::llround(nanoseconds));
}

class EventQueue {
 public:
  using Act = void (*)(void* object, std::uint64_t argument);

  [[nodiscard]] Time now() const noexcept { return now_; }
  [[nodiscard]] std::uint64_t count() const noexcept { return sequence_; }
  // Calls act(object, argument) at `when`; now, if that is past. Throws Error after time_most.
  void at(const Time when, const Act act, void* const object, const std::uint64_t argument) {
    if (when > time_most) [[unlikely]] (void)time_of(static_cast<double>(when) * 1.001);
    heap_.push_back({std::max(when, now_), sequence_++, act, object, argument});
    std::push_heap(heap_.begin(), heap_.end(), &later);
  }
  // The next event happens. False if there is none.
  bool step() {
    if (heap_.empty()) return false;
    std::pop_heap(heap_.begin(), heap_.end(), &later);
    const Event event = heap_.back();
    heap_.pop_back();
    now_ = event.when;
    event.act(event.object, event.argument);
    return true;
  }

 private:
  struct Event {
    Time when;
    std::uint64_t sequence;
    Act act;
    void* object;
    std::uint64_t argument;
  };
  [[nodiscard]] static bool later(const Event& one, const Event& other) noexcept {
    return one.when != other.when ? one.when > other.when : one.sequence > other.sequence;
  }

  std::vector<Event> heap_;  // bounded by the workers, the messages in flight and the NICs
  Time now_ = 0;
  std::uint64_t sequence_ = 0;
};

}  // namespace imbrex::simulate
