// SPDX-License-Identifier: BSD-3-Clause
// Idle threads sleep here until another one wakes them: each has a word that says whether it
// sleeps, and several share a futex, of which each has a bit, so that many can be woken by one
// call. No other place blocks a worker. This file knows no queue: the caller looks for work between
// prepare() and sleep().
//
// Thread safety: prepare, cancel, sleep by the thread that owns the place; wake by any.
// Why no wake-up is lost: the sleeper sets its word to `drowsy`, runs heavy_fence(), and looks for
// work once more before it sleeps. A waker publishes work, runs light_fence(), and reads whether
// anybody is asleep, and then the words. Either the sleeper sees the work or the waker sees
// `drowsy` (arch.hpp).
// A heavy fence interrupts other processors, too much for a crowd of threads that sleep all the
// time. From expect_crowd() on a bit of `asleep_` says that somebody may be asleep, so that each
// waker comes as far as its own functions here, where it changes `asleep_`, as each sleeper does
// after its word: one of the two is second, and sees what the other did before. expect_crowd() sets
// the bit, then runs a heavy fence, then lets sleepers do without: so a waker that has not seen the
// bit had published before that fence, and before any such sleeper looks.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/arch.hpp"
#include "base/zeros.hpp"

namespace imbrex::base {

class Parking {
 public:
  // For up to `most` places, which become usable one after the other: REQUIRES: open(place) before
  // that thread sleeps, and places in their order.
  explicit Parking(int most);
  ~Parking();
  Parking(const Parking&) = delete;
  Parking& operator=(const Parking&) = delete;
  void open(int place);  // one thread at a time; throws std::bad_alloc

  // Announces that the thread of `place` is about to sleep. Then look for work, and cancel() or
  // sleep().
  void prepare(int place) noexcept;
  void cancel(int place) noexcept;
  // Returns when woken, or after `timeout_us` (0: no limit); true if woken.
  bool sleep(int place, std::uint64_t timeout_us) noexcept;

  // To be called after work was published. Wakes one sleeper, if there is any; true if one was
  // woken.
  bool wake_one() noexcept {
    light_fence();
    return may_be_asleep() && wake_any();
  }
  bool wake(int place) noexcept;  // true if that one slept
  void wake_all() noexcept;

  // Many at a time, with one call of the system for all of a cluster: places that follow each
  // other.
  static constexpr int cluster_places = 32;
  // Bit `i` of `places` stands for the place cluster * cluster_places + i.
  void wake_cluster(int cluster, std::uint32_t places) noexcept;
  [[nodiscard]] int asleep() const noexcept {
    return asleep_.load(std::memory_order_relaxed) & ~crowd_bit;
  }
  // To be asked after work was published and light_fence(). False: nobody needs to be woken.
  [[nodiscard]] bool may_be_asleep() const noexcept {
    return asleep_.load(std::memory_order_relaxed) != 0;
  }
  // The same for a waker that is about to look at many places. False: none is asleep.
  [[nodiscard]] bool some_asleep() noexcept {
    waker_fence();
    return asleep() != 0;
  }
  // As wake(), after some_asleep() has returned true.
  bool wake_seen(int place) noexcept;
  // From now on many more threads than processors sleep and wake. For ever; by any thread.
  void expect_crowd() noexcept;

 private:
  [[gnu::noinline]] bool wake_any() noexcept;

  enum Word : std::uint32_t { awake, drowsy };
  struct alignas(cache_line_bytes) Place {
    std::atomic<std::uint32_t> word{awake};  // owner: awake to drowsy; anybody: back
    // The futex of the cluster of which this is the first place: it counts the calls that wake.
    std::atomic<std::uint32_t> calls{0};
  };
  // Places lie in chunks, so that those of few threads take little memory and never move.
  static constexpr int chunk_bits = 8;
  static constexpr int chunk_places = 1 << chunk_bits;
  using Chunk = std::atomic<Place*>;  // written by open(), read by whoever knows of a place there
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

  std::atomic<int> used_{0};  // places that have ever slept lie below
  const Zeros<Chunk> chunks_;
  const int chunk_count_;
  std::atomic<bool> crowded_{false};  // release: the bit, and the fence behind it
  alignas(cache_line_bytes) std::atomic<int> asleep_{0};  // how many words are drowsy; crowd_bit
};

// One thread waits at a bell until another one rings it, which happens once for each wait.
// Thread safety: ring() by any thread, once before the owner has heard it; the rest by the owner.
class Bell {
 public:
  // All that happened before is seen by whoever hears it.
  void ring() noexcept;
  // Hears it, if it was rung.
  [[nodiscard]] bool was_rung() noexcept {
    if (word_.load(std::memory_order_acquire) != rung) return false;  // pairs with ring()
    word_.store(quiet, std::memory_order_relaxed);
    return true;
  }
  // The same; returns when it is rung, or after `timeout_us` (0: no limit).
  [[nodiscard]] bool wait(std::uint64_t timeout_us) noexcept;

 private:
  enum Word : std::uint32_t { quiet, rung, awaited };
  std::atomic<std::uint32_t> word_{quiet};  // ring(): to rung; owner: from there, and to awaited
};

}  // namespace imbrex::base
