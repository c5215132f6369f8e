// SPDX-License-Identifier: BSD-3-Clause
// Phases: the counts behind a phaser (Shirako et al., ICS 2008; Chatterjee et al., IPDPS 2013).
// Registered tasks signal and wait, phase after phase. Pure: a step returns the tasks that it makes
// ready, and its caller (sched/) queues them.
//
// A registration is in phase (s, w): s signals given, w waits done. A phase p is over when every
// registered signaller has s > p; the tasks that wait for p then resume.
//
// Invariants:
//   (1) `word` holds, of the current phase p, the number of signallers ("parties") and the number
//       of parties with s = p ("unarrived"). A signal is one fetch_sub, without the lock; all other
//       changes of the word have the lock. A party's s is its own: it is never below p, and only a
//       party that runs ahead (signal_only, all of whose signals take the lock) is above p + 1.
//   (2) the thread that brings `unarrived` to zero, by a signal or by leaving, has the turn: no
//       other thread ends the phase. Meanwhile no thread can raise `unarrived`: a child gets its
//       parent's s, and every party has s > p.
//   (3) the event of phase p is events[p % 2]. It fires under the lock, in the step that ends phase
//       p, and is armed again, for phase p + 2, in the step that ends phase p + 1. A task that
//       waits there is a signaller with w = p: it has not signalled p + 1, so phase p + 1 is not
//       over. Tasks that may be late (wait_only, and tasks that are not registered) wait in
//       `waits`, under the lock.
//   (4) without parties there are no phases any more: `closed`, and all waiting tasks resume. No
//       new party can come, since a party is registered by another party. Before that end the
//       phases that a party has signalled which ran ahead and left: the phases before `gone_ahead`.
//   (5) bounded (`ahead` = k > 0): `slowest` is the least w of the waiting parties; a signal from s
//       to s + 1 waits until s - slowest < k. All w are in [slowest, slowest + k], since w <= p and
//       some party has s = p, so that p <= slowest + k: `at` counts them, modulo k + 1.
//   (6) `phase` is p. Its change, under the lock, ends the phase before: it comes after the change
//       of the word, since a party that finds the phase over may signal the next one.
// tests/models/phaser.pml is the model of this.
//
// Thread safety: a function with a Registration is called by the task that it belongs to; any
// thread may call the rest.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <source_location>
#include <vector>

#include "base/arch.hpp"
#include "base/guarded.hpp"
#include "base/spin_lock.hpp"
#include "imbrex/detail/phasers.hpp"
#include "task/event_word.hpp"

namespace imbrex::task {

struct Phases;
struct Scope;

[[nodiscard]] constexpr bool signals(const PhaserMode mode) noexcept {
  return mode != PhaserMode::wait_only;
}
[[nodiscard]] constexpr bool waits(const PhaserMode mode) noexcept {
  return mode != PhaserMode::signal_only;
}
// Whether a task of mode `mine` may hand on `other`.
[[nodiscard]] constexpr bool may_hand_on(const PhaserMode mine, const PhaserMode other) noexcept {
  return mine == other || (mine < PhaserMode::signal_only && mine < other);
}

// One task on one phaser. Has a reference to the phaser.
struct Registration {
  Phases* phases;
  Task* task;
  PhaserMode mode;
  bool in_single = false;                     // the task runs the function of a next(single)
  // Written by its task; under the lock if other threads may read it: signal_only, bounded phasers.
  std::atomic<std::uint64_t> signalled{0};
  std::atomic<std::uint64_t> waited{0};
  Registration* following = nullptr;          // next one of the same task
  Registration* before = nullptr;             // next one of the same phaser, under its lock
  Registration* after = nullptr;
  std::source_location where;                 // place where the task or the phaser was made
  std::uint32_t children = 0;                 // number of registrations made by it so far
  std::vector<std::uint32_t> path;            // see Standing; empty unless the phaser keeps_order
};

// A waiter for a phase, in a list under the lock: on the stack of a task, or a promise.
struct PhaseWait {
  std::uint64_t until = 0;              // ends when the phase is this one, or a later one
  detail::EventWord event{};
  detail::PromiseState* promise = nullptr;
  PhaseWait* next = nullptr;
  bool runs = false;                    // next(single): this task is to run the function
};

// The effects of a step beside the ready tasks: promises whose phase is over, to be completed.
struct PhaseEnd {
  Outcome& outcome;
  PhaseWait* promises = nullptr;
};

struct Phases : detail::PhaserState {
  static constexpr std::uint64_t one_unarrived = 1;
  static constexpr std::uint64_t one_party = std::uint64_t{1} << 32;
  static constexpr std::uint64_t most = one_party - 1;  // registrations

  // Fields that each signal and wait reads, and few steps write.
  alignas(base::cache_line_bytes) std::uint32_t ahead = 0;
  // Set after `failure_of_backend`, for threads without the lock.
  std::atomic<bool> failed{false};
  bool keeps_order = false;            // an accumulator needs Registration::path
  detail::AccumulatorBase* accumulators = nullptr;  // owned
  std::unique_ptr<detail::PhaserBackend> backend;
  std::exception_ptr failure_of_backend;  // set while the backend has the turn
  Scope* finish = nullptr;             // the finish() that it belongs to; null: none. For
                                       // comparison only
  std::source_location finish_where;

  // Fields that signals and the ends of phases write. Waiting tasks read `phase`, on its own line.
  alignas(base::cache_line_bytes) std::atomic<std::uint64_t> word{0};  // (1)
  std::array<detail::EventWord, 2> events;                           // (3)
  mutable base::SpinLock lock;
  std::atomic<bool> closed{false};                                   // (4); written under the lock
  Registration* first IMBREX_GUARDED_BY(lock) = nullptr;             // all registrations
  std::uint64_t registered IMBREX_GUARDED_BY(lock) = 0;
  std::uint64_t not_single IMBREX_GUARDED_BY(lock) = 0;              // number of registrations
  // of these, those of mode signal_only
  std::uint64_t runners IMBREX_GUARDED_BY(lock) = 0;
  std::uint64_t gone_ahead IMBREX_GUARDED_BY(lock) = 0;              // (4)
  PhaseWait* waits IMBREX_GUARDED_BY(lock) = nullptr;
  PhaseWait* singles IMBREX_GUARDED_BY(lock) = nullptr;              // waiters with a function
  // (5); until `slowest` has this value
  PhaseWait* blocked IMBREX_GUARDED_BY(lock) = nullptr;
  std::uint64_t slowest IMBREX_GUARDED_BY(lock) = 0;
  std::uint64_t waiters IMBREX_GUARDED_BY(lock) = 0;
  std::vector<std::uint32_t> at IMBREX_GUARDED_BY(lock);

  ~Phases();
};

namespace phaser {

// Adds the first registration, in phase (0, 0). `made` must be filled in except for the links. `at`
// is Phases::at: all zeros.
void open(Phases& phases, Registration& registration, std::vector<std::uint32_t> at) noexcept;
// Gives `child` the phase of `parent`, whose task runs. False if there are `most` registrations.
[[nodiscard]] bool add(const Registration& parent, Registration& child) noexcept;

// The effect of a signal.
struct Signal {
  bool first = false;       // the first signal of its phase, or as good as that: other parties have
                            // left
  bool last = false;        // the caller has the turn (2) and calls end_phase()
  std::uint64_t phase = 0;  // the phase of the signal, if it is `first` or `last`
};
// False if the task must first wait for wait.event, and then call again: (5).
[[nodiscard]] bool may_signal(Registration& mine, PhaseWait& wait) noexcept;
[[nodiscard]] Signal signal(Registration& mine) noexcept;
// signal() for next(single). `wait` is told how it ends.
[[nodiscard]] Signal signal_single(Registration& mine, PhaseWait& wait) noexcept;

// Whether the phase that the task waits for is over.
[[nodiscard]] inline bool is_over(const Registration& mine) noexcept;
[[nodiscard]] inline detail::EventWord& event_of(const Registration& mine) noexcept;
// is_over() for code that may be late (3): false if `wait` waits from now on.
[[nodiscard]] bool is_over_or_wait(Phases& phases, std::uint64_t phase, PhaseWait& wait) noexcept;
// Counts that the task has waited.
void pass(Registration& mine, PhaseEnd& end) noexcept;

// Leaves; true if the caller has the turn. The caller owns the registration again.
[[nodiscard]] bool leave(Registration& mine, PhaseEnd& end) noexcept;

// Whether another phase follows the one that ends now: accumulators are told this, before
// end_phase() and without the lock.
[[nodiscard]] detail::PhaseFollows what_follows(Phases& phases) noexcept;
// All tasks that signal or wait from now on throw. The caller has the turn. Returns the promises,
// which must fail.
[[nodiscard]] PhaseWait* fail(Phases& phases, const std::exception_ptr& error) noexcept;
enum class Next : std::uint8_t {
  open,      // a party has still to signal
  started,   // open, and a party has signalled already
  over,      // the caller has the turn again: all parties have signalled, running ahead
  closed,    // no signaller is left
  handed_on  // the phase has not ended: a task that runs the function of its next(single) has the
             // turn
};
// Ends the phase, or gives the turn to a task that waits in next(single) with a function: the
// caller has the turn. `single_has_run`: such a task calls it.
[[nodiscard]] Next end_phase(Phases& phases, bool single_has_run, PhaseEnd& end) noexcept;

[[nodiscard]] inline std::uint64_t unarrived(const std::uint64_t word) noexcept {
  return word % Phases::one_party;
}
[[nodiscard]] inline std::uint64_t parties(const std::uint64_t word) noexcept {
  return word / Phases::one_party;
}

inline bool is_over(const Registration& mine) noexcept {
  // acquire: the work before the signals, the word (6), and the armed event (3)
  return mine.phases->phase.load(std::memory_order_acquire) >
         mine.waited.load(std::memory_order_relaxed);
}
inline detail::EventWord& event_of(const Registration& mine) noexcept {
  return mine.phases->events[mine.waited.load(std::memory_order_relaxed) % 2];
}

}  // namespace phaser
}  // namespace imbrex::task
