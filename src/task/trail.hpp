// SPDX-License-Identifier: BSD-3-Clause
// Trails: how long the path is that a message has opened. The task that receives it is the first on
// its trail; a task that becomes ready by the end of one on a trail, so had nothing else to wait
// for any more, follows it. The length is the longest sum of run times along such a path, and,
// where it sends, half of what is behind its own message: so that ranks that wait for each other in
// a circle do not count up for ever. What a later message kept waiting is on that one's trail.
//
// Bounded: at most `places` trails at once; a message beyond them is not followed.
// Thread safety: begin, extend, pass and leave for a step that the caller alone may use; the trails
// themselves are shared.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace imbrex::task {

// The place of a task on a trail.
struct Step {
  std::uint32_t trail;  // its number + 1; 0: on none
  float length_us;      // up to here
};

// A trail that has ended.
struct Path {
  std::uint64_t message;
  float length_us;
};

class Trails {
 public:
  // The task that stands at `step`, which is on no trail, has received `message`.
  void begin(Step& step, std::uint64_t message) noexcept;

  // `to`, which is on no trail, becomes ready by the end of the task that stands at `from`.
  void pass(const Step& from, Step& to) noexcept;

  // The path may end here, with so much behind it.
  void note(const Step& step, float behind_us) noexcept;

  // Leaves the trail. True if nobody is left on it: then `ended` is what it was.
  [[nodiscard]] bool leave(Step& step, Path& ended) noexcept;

 private:
  static constexpr std::size_t places = 4096;

  struct Trail {
    // 0: free; else 1 and one for each task on it. Who brings it to 1 has it alone, reads the rest
    // and frees it: nobody follows a trail that nobody stands on.
    std::atomic<std::uint32_t> count{0};
    std::atomic<float> longest_us{0};
    std::uint64_t message = 0;  // written by who took the free trail; read by who has it alone
  };

  std::atomic<std::uint32_t> next_{0};  // where the search for a free one begins
  std::array<Trail, places> trails_;
};

}  // namespace imbrex::task
