// SPDX-License-Identifier: BSD-3-Clause
// Trails: the length of the path that a message has opened. The task that receives the message is
// the first on its trail; a task that becomes ready by the end of a task on the trail, and so had
// nothing else to wait for, follows it. The length is the longest sum of run times along such a
// path; where the path sends, half of the length behind its own message is added. The half prevents
// ranks that wait for each other in a circle from counting up for ever. Work that waited for a
// later message belongs to the trail of that message.
//
// Bounded: at most `places` trails at once; further messages are not followed. Thread safety: only
// the caller uses the step in begin, extend, pass and leave; the trails themselves are shared.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace imbrex::task {

// The place of a task on a trail.
struct Step {
  std::uint32_t trail;  // the trail's number + 1; 0: on no trail
  float length_us;      // up to here
};

// A trail that has ended.
struct Path {
  std::uint64_t message;
  float length_us;
};

class Trails {
 public:
  // The task at `step`, which is on no trail, has received `message`.
  void begin(Step& step, std::uint64_t message) noexcept;

  // `to`, which is on no trail, becomes ready by the end of the task at `from`.
  void pass(const Step& from, Step& to) noexcept;

  // The path may end here, with a further length of `behind_us`.
  void note(const Step& step, float behind_us) noexcept;

  // Leaves the trail. True if no task is left on it: `ended` then describes it.
  [[nodiscard]] bool leave(Step& step, Path& ended) noexcept;

 private:
  static constexpr std::size_t places = 4096;

  struct Trail {
    // 0: free; else 1 plus the number of tasks on the trail. The thread that lowers it to 1 owns
    // the trail, reads the rest and frees it: no task follows a trail that is empty.
    std::atomic<std::uint32_t> count{0};
    std::atomic<float> longest_us{0};
    std::uint64_t message = 0;  // written by the thread that took the free trail; read by its owner
  };

  std::atomic<std::uint32_t> next_{0};  // where the search for a free trail begins
  std::array<Trail, places> trails_;
};

}  // namespace imbrex::task
