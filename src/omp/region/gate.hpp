// SPDX-License-Identifier: BSD-3-Clause
// Waits for a word to change, by its address, as a futex does; but the fiber is suspended, and the
// thread runs other tasks meanwhile. All waits of OpenMP are built on it, except waits for tasks.
// In a callback, and after the end of the runtime, no task can be suspended: the thread itself
// waits.
//
// Thread safety: any thread. `ready` is called repeatedly, also while a lock is held: it must be
// short and must not wait. After it has returned true it is not called again, so it may take the
// resource that it finds. Why no wake-up is lost: a waiter counts itself in its bucket and calls
// ready() before it sleeps; a waker has changed the word and adds nothing to the count. Both change
// one number (acq_rel), so the second one sees the first: the waiter sees the writes before the
// waker's change, or the waker sees a count. The check and the queueing are one step under the
// bucket's lock, which the waker takes, too: a waiter that the waker does not find has checked
// after the change. A wake-up does not touch the word, which may be gone as soon as it has been
// changed.
//
// wake_one() relies on the woken task: it takes what it waits for, and wakes the next one later. A
// task that is tied to a thread cannot run while that thread waits in a callback. So the thread
// first makes all waiters at all addresses check again. Those that are tied to the thread are then
// in no queue until the callback has ended, whoever they kept from a wake-up has checked, and later
// wake-ups go to tasks that can run (tests/models/gate.pml).
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
// Before it sleeps it calls `ready_or_asleep()` instead, which may note at the address that a
// waiter must be woken.
template <class Ready, class ReadyOrAsleep>
void wait_until(const void* address, const char* what, Patience patience, Ready ready,
                ReadyOrAsleep ready_or_asleep);

// Makes the waiters at `address` check again; call it after a change that they wait for.
void wake_one(const void* address) noexcept;
void wake_all(const void* address) noexcept;
// In a child of fork: its parent's tasks do not wait here.
void forget_waits() noexcept;

// The waiters at several addresses check again when this ends, so that few system calls wake many
// threads.
class Waking {
 public:
  // In the order in which their waits began.
  struct List {
    detail::LinkedEvent* first = nullptr;
    detail::LinkedEvent** end = &first;
  };
  Waking() noexcept = default;
  ~Waking();
  Waking(const Waking&) = delete;
  Waking& operator=(const Waking&) = delete;
  // Adds at most `most` of the waiters at `address`.
  void add(const void* address, int most) noexcept;
  void add_all() noexcept;  // the waiters at all addresses

  struct Bucket;

 private:
  void add_from(Bucket& bucket, const void* address, int most) noexcept;

  List taken_;
};

// ---- bodies ----------------------------------------------------------------------------------

// Whether an immediate further check is worthwhile: for a few microseconds, while this thread has
// nothing else to run and the threads have a processor each. Called once in a round; the first
// round always checks. The condition is checked after each pause, of up to 140 cycles. Where a
// check disturbs the holder of a lock, the number of pauses doubles each time, up to 64.
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
  unsigned pauses_ = 1;  // a lock is often free again before there is time to check
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
