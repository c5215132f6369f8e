// SPDX-License-Identifier: BSD-3-Clause
// Waiting for a word to change, by its address, as a futex does, but what is suspended is the
// fiber: the thread runs other tasks meanwhile. All that OpenMP waits for but tasks is built on it.
// In a callback, where no task can be suspended, the thread itself waits.
//
// Thread safety: any thread. `ready` is called again and again, also while a lock is held: it must
// be short and must not wait. When it has returned true it is not called again, so it may take what
// it finds.
// Why no wake-up is lost: who waits counts itself in its bucket and looks with ready() before it
// sleeps; who wakes has changed the word and adds nothing to the count. Both change the same number
// (acq_rel), so one is second, and sees the other: the waiter what was done before the waker's
// change of the count, or the waker a count. The look and the queueing are one step under the
// bucket's lock, which the waker takes too: so a waiter that it does not find has looked later than
// the change.
// The word is not touched by wake(): it may be gone as soon as it has been changed.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/arch.hpp"
#include "imbrex/detail/groups.hpp"

namespace imbrex::omp {

class Patience;

// Suspends until `ready()`; `what`, a literal, is for reports.
template <class Ready>
void wait_until(const void* address, const char* what, Ready ready);
// Before it sleeps it asks `ready_or_asleep()` instead, which may leave at the address that
// somebody must be woken.
template <class Ready, class ReadyOrAsleep>
void wait_until(const void* address, const char* what, Patience patience, Ready ready,
                ReadyOrAsleep ready_or_asleep);

// Lets those who wait at `address` look again; after a change that they wait for.
void wake_one(const void* address) noexcept;
void wake_all(const void* address) noexcept;

// Those who wait at several addresses look again when this ends: so many threads are woken by few
// calls of the system.
class Waking {
 public:
  // In the order in which they began to wait.
  struct List {
    detail::LinkedEvent* first = nullptr;
    detail::LinkedEvent** end = &first;
  };
  Waking() noexcept = default;
  ~Waking();
  Waking(const Waking&) = delete;
  Waking& operator=(const Waking&) = delete;
  // At most `most` of those who wait at `address`.
  void add(const void* address, int most) noexcept;

 private:
  List taken_;
};

// ---- bodies ----------------------------------------------------------------------------------

// Whether it is worth to look again at once: for a few microseconds, while this thread has nothing
// else to run and the threads have a processor each. Asked once in a round, the first of which is
// given. What is waited for is looked at after each pause, of which one takes up to 140 cycles; or,
// where a look disturbs whoever has a lock, after twice as many pauses as the last time, up to 64.
class Patience {
 public:
  constexpr explicit Patience(const bool backs_off) noexcept : most_(backs_off ? 64 : 1) {}
  [[nodiscard]] bool lasts() noexcept {
    for (unsigned i = 0; i < gap_; ++i) {
      if (pauses_++ % pauses_of_round != 0) {
        base::pause();
      } else if (!has_a_round()) {
        return false;
      }
    }
    if (gap_ < most_) gap_ *= 2;
    return true;
  }

 private:
  static constexpr unsigned pauses_of_round = 8;
  [[nodiscard]] bool has_a_round() noexcept;

  const unsigned most_;
  unsigned gap_ = 1;
  unsigned pauses_ = 1;  // a lock is often free again before there is time to ask
  long long rounds_ = 0;
  std::uint64_t last_look_ = 0;
};

using IsReady = bool (*)(void* context);
void wait_slowly(const void* address, const char* what, IsReady is_ready, void* context);

template <class Ready>
void wait_until(const void* const address, const char* const what, Ready ready) {
  wait_until(address, what, Patience(false), ready, ready);
}

template <class Ready, class ReadyOrAsleep>
void wait_until(const void* const address, const char* const what, Patience patience, Ready ready,
                ReadyOrAsleep ready_or_asleep) {
  do {
    if (ready()) return;
  } while (patience.lasts());
  wait_slowly(
      address, what,
      [](void* const context) { return (*static_cast<ReadyOrAsleep*>(context))(); },
      &ready_or_asleep);
}

}  // namespace imbrex::omp
