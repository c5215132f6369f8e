// SPDX-License-Identifier: BSD-3-Clause
// Event: a thing that happens once. Tasks wait for it; firing hands back those that may now run.
//
// Everything a task can wait for is an Event: the end of another task, a future's value, an MPI
// request. This file knows neither threads nor queues: fire() returns the newly ready tasks and its
// caller (sched/) decides where they run. The state is a detail::EventWord, so that the public
// headers can hold one.
//
// Thread safety: every function may be called by any thread at any time.
// Invariants:
//   (1) head is `fired` for ever once fire() has run; before that, a stack of waiters.
//   (2) a waiter is in one event's stack at most, from a successful add() until fire(),
//       take_by_address() or remove().
//   (3) while the lock bit is set only its holder changes head; a holder runs a few instructions
//       for each waiter, calls nothing that waits, and clears the bit.
//   (4) the two bits above the lock, once set, stay until the firing.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "base/arch.hpp"
#include "imbrex/detail/completion.hpp"

namespace imbrex::task {

using detail::EventWord;

struct Task;

// Tasks on their way up to the scheduler. Those that one event made ready are in the order in
// which they began to wait.
struct ReadyList {
  Task* head = nullptr;
  [[nodiscard]] bool empty() const noexcept { return head == nullptr; }
  inline void push(Task& task) noexcept;       // in front
  [[nodiscard]] inline Task* pop() noexcept;
};

// The consequences of a step: tasks that became ready, and descriptors that nobody refers to any
// more. Whoever receives it queues the former and reuses the latter.
struct Outcome {
  ReadyList ready;
  ReadyList dead;
};

// Something that waits for one event. Plain: a task, one of whose pending counts the firing
// releases. With `notify`: a call, which must be short, must not wait, and may free the waiter. If
// it fires another event it lets nobody go, but returns those who waited for that, linked: so a
// chain of events, however long, is fired by a loop.
struct alignas(16) Waiter {
  using Notify = Waiter* (*)(Waiter& waiter, Outcome& outcome) noexcept;
  Task* task = nullptr;
  Waiter* next;  // link in the event's stack, once it is there
  Notify notify = nullptr;
  // In an edge by address, which an early release may let go: the task that is followed. Where
  // priority flows along the edge, this has a lock bit, and is 0 once nothing is followed
  // (lineage.hpp).
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

// add(), where the head has bits or is contended.
[[nodiscard, gnu::noinline]] inline bool add_slowly(EventWord& word, Waiter& waiter) noexcept {
  const std::uintptr_t head = lock(word);
  if (head == EventWord::fired) return false;
  waiter.next = first_waiter(head);
  word.head.store(head_of(&waiter, head), std::memory_order_release);
  return true;
}

// Makes `waiter` wait: takes over one of its task's pending counts, to be released by fire().
// Returns false, and takes nothing, if the event has fired.
[[nodiscard]] inline bool add(EventWord& word, Waiter& waiter) noexcept {
  std::uintptr_t head = word.head.load(std::memory_order_acquire);
  if (head == EventWord::fired) return false;
  if ((head & (lock_bit | lasting_bits)) == 0) [[likely]] {
    waiter.next = reinterpret_cast<Waiter*>(head);
    // acq_rel: fire() sees the waiter, and we what was done before it was swept.
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
  and_left  // and whoever fires owns a reference of the caller's
};

// As add(); at the same time leaves one reference to the event's holder to whoever fires, unless
// that cannot be done at once, or the event was swept.
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

// Releases what one waiter holds. Returns those who waited for what that has fired.
[[nodiscard]] inline Waiter* let_go(Waiter& waiter, Outcome& outcome) noexcept;

// Links the waiters from `first` on and those from `next` on, in this order.
[[nodiscard]] inline Waiter* chain(Waiter* const first, Waiter* const next) noexcept {
  Waiter* last = first;
  while (last->next != nullptr) last = last->next;
  last->next = next;
  return first;
}

// Lets go the waiters from `waiter` on, and those who waited for what that fires.
inline void let_go_all(Waiter* waiter, Outcome& outcome) noexcept {
  while (waiter != nullptr) {
    Waiter* const next = waiter->next;  // read first: once let go, the waiter may be gone
    Waiter* const others = let_go(*waiter, outcome);
    waiter = others == nullptr ? next : chain(others, next);
  }
}

// Fires. `head`: the one before, whose waiters the caller must let go, and whose left reference it
// must drop. False, and nothing done, if the event had fired.
[[nodiscard]] inline bool exchange(EventWord& word, std::uintptr_t& head) noexcept {
  head = word.head.load(std::memory_order_relaxed);
  for (int round = 0;; ++round) {
    if (head == EventWord::fired) return false;
    if ((head & lock_bit) != 0) {
      round < 64 ? base::pause() : static_cast<void>(sched_yield());
      head = word.head.load(std::memory_order_relaxed);
      continue;
    }
    // acquire: the waiters' contents; release: what happened before is seen by who asks
    if (word.head.compare_exchange_weak(head, EventWord::fired, std::memory_order_acq_rel,
                                        std::memory_order_relaxed)) {
      return true;
    }
  }
}

// The same for an event at which nobody leaves references.
[[nodiscard]] inline bool try_fire(EventWord& word, Waiter*& waiters) noexcept {
  std::uintptr_t head = EventWord::fired;
  const bool fired = exchange(word, head);
  waiters = first_waiter(head);
  return fired;
}

// Fires and lets go. REQUIRES: called once.
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

// Takes back a waiter that add() accepted. False if it is not there any more: then it has been let
// go, or is about to be, and its memory must stay until then.
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

// Takes out those who wait by address, linked, without firing; whoever comes later sees
// was_swept().
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
