// SPDX-License-Identifier: BSD-3-Clause
// Idle threads sleep here until another thread wakes them. Each thread has a word that says whether
// it sleeps. Several threads share a futex, in which each has a bit, so that one system call can
// wake many. No other code blocks a worker. This file knows no queue: the caller looks for work
// between prepare() and sleep().
//
// Thread safety: the thread that owns the place calls prepare, cancel and sleep; any thread calls
// wake. Why no wake-up is lost: the sleeper sets its word to `drowsy`, runs heavy_fence(), and
// looks for work once more before it sleeps. A waker publishes work, runs light_fence(), and reads
// first whether any thread is asleep, then the words. Either the sleeper sees the work, or the
// waker sees `drowsy` (arch.hpp). The woken thread may turn to other work first: its caller then
// wakes another one (docs/design/wake-ups.md).
//
// A heavy fence interrupts other processors, which costs too much for many threads that sleep
// often. After expect_crowd() a bit of `asleep_` says that some thread may be asleep. Each waker
// then enters its function here and changes `asleep_`; each sleeper changes it once more after its
// word. The second of the two changes sees the first one's earlier writes. expect_crowd() sets the
// bit, then runs a heavy fence, then lets sleepers skip theirs. A waker that has not seen the bit
// had therefore published before that fence, and before any such sleeper looks.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/arch.hpp"
#include "base/zeros.hpp"

namespace imbrex::base {

class Parking {
 public:
  // Makes room for `most` places, which become usable one after the other. REQUIRES: open(place)
  // before that thread sleeps, and in the order of places.
  explicit Parking(int most);
  ~Parking();
  Parking(const Parking&) = delete;
  Parking& operator=(const Parking&) = delete;
  void open(int place);  // one thread at a time; throws std::bad_alloc

  // Announces that the thread of `place` is about to sleep. The thread then looks for work, and
  // calls cancel() or sleep(). cancel() returns false if another thread has woken this one.
  void prepare(int place) noexcept;
  bool cancel(int place) noexcept;
  // Returns when woken, or after `timeout_us` (0: no limit); true if woken.
  bool sleep(int place, std::uint64_t timeout_us) noexcept;

  // Call it after work was published. Wakes one sleeper, if there is any; true if it woke one.
  bool wake_one() noexcept {
    light_fence();
    return may_be_asleep() && wake_any();
  }
  bool wake(int place) noexcept;  // true if the thread of `place` slept
  void wake_all() noexcept;

  // A cluster: places that follow each other, whose threads one system call can wake.
  static constexpr int cluster_places = 32;
  // Bit `i` of `places` stands for the place cluster * cluster_places + i.
  void wake_cluster(int cluster, std::uint32_t places) noexcept;
  [[nodiscard]] int asleep() const noexcept {
    return asleep_.load(std::memory_order_relaxed) & ~crowd_bit;
  }
  // Call it after work was published, and after light_fence(). False: no thread needs to be woken.
  [[nodiscard]] bool may_be_asleep() const noexcept {
    return asleep_.load(std::memory_order_relaxed) != 0;
  }
  // may_be_asleep() for a waker that is about to check many places. False: no thread is asleep.
  [[nodiscard]] bool some_asleep() noexcept {
    waker_fence();
    return asleep() != 0;
  }
  // wake(), after some_asleep() has returned true.
  bool wake_seen(int place) noexcept;
  // Many more threads than processors sleep and wake from now on, for ever. Any thread may call it.
  void expect_crowd() noexcept;

 private:
  [[gnu::noinline]] bool wake_any() noexcept;

  enum Word : std::uint32_t { awake, drowsy };
  struct alignas(cache_line_bytes) Place {
    std::atomic<std::uint32_t> word{awake};  // owner: awake to drowsy; any thread: back to awake
    // The futex of the cluster that begins with this place; it counts the wake calls.
    std::atomic<std::uint32_t> calls{0};
  };
  // Places lie in chunks, so that those of few threads take little memory and never move.
  static constexpr int chunk_bits = 8;
  static constexpr int chunk_places = 1 << chunk_bits;
  using Chunk = std::atomic<Place*>;  // written by open(), read by threads that know of a place in
                                      // the chunk
  [[nodiscard]] Place& at(const int place) const noexcept {
    return chunks_[place >> chunk_bits].load(std::memory_order_acquire)[place % chunk_places];
  }
  [[nodiscard]] std::atomic<std::uint32_t>& word_of(const int place) const noexcept {
    return at(place).word;
  }
  bool wake_if_drowsy(std::atomic<std::uint32_t>& word) noexcept;
  bool wake_drowsy(int place) noexcept;
  void waker_fence() noexcept {
    light_fence();
    const bool crowd = (asleep_.load(std::memory_order_relaxed) & crowd_bit) != 0;
    if (crowd) asleep_.fetch_add(0, std::memory_order_acq_rel);
  }

  static constexpr int crowd_bit = 1 << 30;

  std::atomic<int> used_{0};  // every place that has ever slept is below
  const Zeros<Chunk> chunks_;
  const int chunk_count_;
  std::atomic<bool> crowded_{false};  // release: publishes the bit, and the fence after it
  // At least the number of drowsy words; and crowd_bit.
  alignas(cache_line_bytes) std::atomic<int> asleep_{0};
};

}  // namespace imbrex::base
