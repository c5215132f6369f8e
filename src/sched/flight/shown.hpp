// SPDX-License-Identifier: BSD-3-Clause
// What the file of the flight recorder (flight/format.hpp) shows of tasks and workers. A thread
// that looks on fills it in: a task that suspends only counts that, so waits cost nothing.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

#include "flight/writer.hpp"

namespace imbrex::fiber {
struct Fiber;
}

namespace imbrex::sched {

struct RuntimeState;

// The recorder begins, unless the options say no, and the workers of `runtime` get their rings. A
// file that cannot be written is a warning.
void begin_flight(RuntimeState& runtime);

// The number of MPI's operations in flight, by the plug-in that knows it; or null.
inline constinit std::atomic<std::int64_t (*)() noexcept> count_in_flight{nullptr};

// Thread safety: one thread looks, while the runtime lives.
class FlightLook {
 public:
  explicit FlightLook(RuntimeState& runtime);
  // Writes what each task waits for and what each worker does at this moment. Returns the pause
  // until the next look: `imbrex top` wants more of them than an explanation needs.
  std::chrono::milliseconds again() noexcept;

 private:
  // What the last look has seen on a stack.
  struct Seen {
    std::uint64_t task = 0;   // id; 0: nothing waits there
    std::uint64_t waits = 0;  // Fiber::waits
    bool twice = false;
  };
  void look_at_stacks();
  void look_at_threads() noexcept;
  void look_at(std::size_t place, const fiber::Fiber* stack) noexcept;
  void forget(std::size_t place) noexcept;

  RuntimeState& runtime_;
  std::vector<Seen> seen_;
  flight::Ring resumed_;  // of waits that took longer than a look
};

}  // namespace imbrex::sched
