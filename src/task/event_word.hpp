// SPDX-License-Identifier: BSD-3-Clause
// Event: something that happens once. Tasks wait for it; fire() hands back the tasks that may now
// run.
//
// Everything that a task can wait for is an Event: the end of another task, a future's value, an
// MPI request. This file knows neither threads nor queues: fire() returns the newly ready tasks and
// its caller (sched/) decides where they run. The state is a detail::EventWord, so that the public
// headers can hold one.
//
// Thread safety: any thread may call every function at any time.
// Invariants:
//   (1) head is `fired` for ever once fire() has run; before that, it is a stack of waiters.
//   (2) a waiter is in one event's stack at most, from a successful add() until fire(),
//       take_by_address() or remove().
//   (3) while the lock bit is set only its holder changes head; a holder runs a few instructions
//       for each waiter, calls nothing that waits, and clears the bit.
//   (4) the two bits above the lock, once set, stay until the event fires.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "base/arch.hpp"
#include "imbrex/detail/completion.hpp"

namespace imbrex::task {

using detail::EventWord;

struct Task;

// Tasks on their way up to the scheduler. Tasks that one event made ready are in the order in which
// they began to wait.
struct ReadyList {
  Task* head = nullptr;
  [[nodiscard]] bool empty() const noexcept { return head == nullptr; }
  inline void push(Task& task) noexcept;       // in front
  [[nodiscard]] inline Task* pop() noexcept;
};

// The consequences of a step: tasks that became ready, and descriptors without references. The
// receiver queues the tasks and reuses the descriptors.
struct Outcome {
  ReadyList ready;
  ReadyList dead;
};

// A waiter for one event. Without `notify`: a task, one of whose pending counts the event releases.
// With `notify`: a call, which must be short, must not wait, and may free the waiter. If the call
// fires another event it releases no waiter, but returns the waiters of that event, linked: a loop
// then fires a chain of events, however long.
struct alignas(16) Waiter {
  using Notify = Waiter* (*)(Waiter& waiter, Outcome& outcome) noexcept;
  Task* task = nullptr;
  Waiter* next;  // link in the event's stack, while it is there
  Notify notify = nullptr;
  // In an edge by address, which an early release may end: the predecessor. Where priority flows
  // along the edge, the word has a lock bit, and is 0 once there is no predecessor (lineage.hpp).
  std::atomic<std::uintptr_t> follows{0};

  [[nodiscard]] bool by_address() const noexcept {
    return follows.load(std::memory_order_relaxed) != 0;
  }
};

namespace event {

// These bits lie below the address of the first waiter.
inline constexpr std::uintptr_t lock_bit = 2;
inline constexpr std::uintptr_t left_bit = 4;   // add_and_leave() has left a reference
inline constexpr std::uintptr_t swept_bit = 8;  // take_by_address() has run
inline constexpr std::uintptr_t lasting_bits = left_bit | swept_bit;

[[nodiscard]] inline Waiter* first_waiter(const std::uintptr_t head) noexcept {
  return reinterpret_cast<Waiter*>(head & ~(lock_bit | lasting_bits));
}
// The head with `first` in front and the lasting bits of `head`.
[[nodiscard]] inline std::uintptr_t head_of(Waiter* const first,
                                            const std::uintptr_t head) noexcept {
  return reinterpret_cast<std::uintptr_t>(first) | (head & lasting_bits);
}
[[nodiscard]] inline bool was_swept(const EventWord& word) noexcept {
  return (word.head.load(std::memory_order_relaxed) & swept_bit) != 0;
}

inline std::uintptr_t lock(EventWord& word) noexcept;  // the head; not locked if it is `fired`

// add(), for a head that has bits or is contended.
[[nodiscard, gnu::noinline]] inline bool add_slowly(EventWord& word, Waiter& waiter) noexcept {
  const std::uintptr_t head = lock(word);
  if (head == EventWord::fired) return false;
  waiter.next = first_waiter(head);
  word.head.store(head_of(&waiter, head), std::memory_order_release);
  return true;
}

// Makes `waiter` wait: takes over one of its task's pending counts, which fire() releases. Returns
// false, and takes nothing, if the event has fired.
[[nodiscard]] inline bool add(EventWord& word, Waiter& waiter) noexcept {
  std::uintptr_t head = word.head.load(std::memory_order_acquire);
  if (head == EventWord::fired) return false;
  if ((head & (lock_bit | lasting_bits)) == 0) [[likely]] {
    waiter.next = reinterpret_cast<Waiter*>(head);
    // acq_rel: fire() sees the waiter, and this thread sees the writes before a sweep.
    if (word.head.compare_exchange_strong(head, reinterpret_cast<std::uintptr_t>(&waiter),
                                          std::memory_order_acq_rel,
                                          std::memory_order_relaxed)) [[likely]] {
      return true;
    }
  }
  return add_slowly(word, waiter);
}

enum class Added : std::uint8_t {
  no,       // the event has fired
  yes,      // as by add()
  and_left  // the thread that fires owns a reference of the caller
};

// add() that also leaves one reference to the event's owner with the thread that fires; unless that
// cannot be done at once, or the event was swept.
[[nodiscard]] inline Added add_and_leave(EventWord& word, Waiter& waiter) noexcept {
  std::uintptr_t head = word.head.load(std::memory_order_acquire);
  if (head != EventWord::fired && (head & (lock_bit | swept_bit)) == 0) {
    waiter.next = first_waiter(head);
    if (word.head.compare_exchange_strong(head, head_of(&waiter, head | left_bit),
                                          std::memory_order_acq_rel,
                                          std::memory_order_relaxed)) {
      return Added::and_left;
    }
  }
  return add(word, waiter) ? Added::yes : Added::no;
}

// Releases the pending count of one waiter. Returns the waiters of an event that its call has
// fired.
[[nodiscard]] inline Waiter* let_go(Waiter& waiter, Outcome& outcome) noexcept;

// Links the waiters from `first` on and those from `next` on, in this order.
[[nodiscard]] inline Waiter* chain(Waiter* const first, Waiter* const next) noexcept {
  Waiter* last = first;
  while (last->next != nullptr) last = last->next;
  last->next = next;
  return first;
}

// Releases the waiters from `waiter` on, and the waiters of events that this fires.
inline void let_go_all(Waiter* waiter, Outcome& outcome) noexcept {
  while (waiter != nullptr) {
    Waiter* const next = waiter->next;  // read first: a released waiter may be gone
    Waiter* const others = let_go(*waiter, outcome);
    waiter = others == nullptr ? next : chain(others, next);
  }
}

// Fires. `head`: the previous head, whose waiters the caller must release, and whose left reference
// it must drop. False, and without effect, if the event had fired.
[[nodiscard]] inline bool exchange(EventWord& word, std::uintptr_t& head) noexcept {
  head = word.head.load(std::memory_order_relaxed);
  for (int round = 0;; ++round) {
    if (head == EventWord::fired) return false;
    if ((head & lock_bit) != 0) {
      round < 64 ? base::pause() : static_cast<void>(sched_yield());
      head = word.head.load(std::memory_order_relaxed);
      continue;
    }
    // acquire: the waiters' contents; release: the writes before the event
    if (word.head.compare_exchange_weak(head, EventWord::fired, std::memory_order_acq_rel,
                                        std::memory_order_relaxed)) {
      return true;
    }
  }
}

// exchange() for an event with which no reference is left.
[[nodiscard]] inline bool try_fire(EventWord& word, Waiter*& waiters) noexcept {
  std::uintptr_t head = EventWord::fired;
  const bool fired = exchange(word, head);
  waiters = first_waiter(head);
  return fired;
}

// Fires and releases the waiters. REQUIRES: called once.
inline void fire(EventWord& word, Outcome& outcome) noexcept {
  Waiter* waiters = nullptr;
  if (try_fire(word, waiters)) let_go_all(waiters, outcome);
}

inline std::uintptr_t lock(EventWord& word) noexcept {
  for (int round = 0;; ++round) {
    std::uintptr_t head = word.head.load(std::memory_order_acquire);
    if (head == EventWord::fired) return head;
    if ((head & lock_bit) == 0 &&
        word.head.compare_exchange_weak(head, head | lock_bit, std::memory_order_acq_rel,
                                        std::memory_order_relaxed)) {
      return head;
    }
    round < 64 ? base::pause() : static_cast<void>(sched_yield());
  }
}

// Takes back a waiter that add() accepted. False if the waiter is not there any more: it has been
// released, or is about to be, and its memory must stay until then.
[[nodiscard]] inline bool remove(EventWord& word, Waiter& waiter) noexcept {
  const std::uintptr_t head = lock(word);
  if (head == EventWord::fired) return false;
  Waiter* first = first_waiter(head);
  bool found = false;
  for (Waiter** link = &first; *link != nullptr; link = &(*link)->next) {
    if (*link == &waiter) {
      *link = waiter.next;
      found = true;
      break;
    }
  }
  word.head.store(head_of(first, head), std::memory_order_release);
  return found;
}

// Takes out the waiters by address, linked, without firing; later callers see was_swept().
[[nodiscard]] inline Waiter* take_by_address(EventWord& word) noexcept {
  const std::uintptr_t head = lock(word);
  if (head == EventWord::fired) return nullptr;
  Waiter* first = first_waiter(head);
  Waiter* taken = nullptr;
  for (Waiter** link = &first; *link != nullptr;) {
    Waiter& waiter = **link;
    if (waiter.by_address()) {
      *link = waiter.next;
      waiter.next = taken;
      taken = &waiter;
    } else {
      link = &waiter.next;
    }
  }
  word.head.store(head_of(first, head) | swept_bit, std::memory_order_release);
  return taken;
}

}  // namespace event
}  // namespace imbrex::task
