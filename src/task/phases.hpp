// SPDX-License-Identifier: BSD-3-Clause
// Phases: the counts behind a phaser (Shirako et al., ICS 2008; Chatterjee et al., IPDPS 2013).
// Registered tasks signal and wait, phase after phase. Pure: what a step makes ready is returned,
// and its caller (sched/) acts on it.
//
// A registration is in phase (s, w): s signals given, w waits done. A phase p is over when every
// registered signaller has s > p; who waits for p goes on then.
//
// Invariants:
//   (1) `word` is the phase p modulo 2^18, two marks (6), the number of signallers ("parties"), and
//       how many of them have s = p ("unarrived"). A signal is one fetch_sub, without the lock; nor
//       has the lock who sets the mark `sleeps`, or who ends a phase quickly (6). All else that
//       changes the word has it. The number of parties with s = p is exact, since a party's s
//       is its own: it is never below p, and only one that runs ahead (signal_only, all of whose
//       signals take the lock) is above p + 1. So whether any other has signalled p is said by the
//       lowest bit of p, in the word itself.
//   (2) whoever brings `unarrived` to zero, by a signal or by leaving, has the turn: nobody else
//       ends the phase. While it has it nobody can raise `unarrived`: a child gets its parent's s,
//       and every party has s > p.
//   (3) the event of phase p is events[p % 2]. It is armed again for phase p + 2 before phase p + 1
//       is announced to be over. One who waits there is a signaller that has w = p: it has not
//       signalled p + 1, so phase p + 1 is not over, and nobody arms what it waits for. Those who
//       may be late (wait_only, and others outside) wait in `waits`, under the lock.
//   (4) without parties there are no phases any more: `closed`, and whoever waits goes on. None can
//       come: a party is registered by one. Before that the phases end that one has signalled who
//       has run ahead and left: those before `gone_ahead`.
//   (5) bounded (`ahead` = k > 0): `slowest` is the least w of those who wait; a signal from s to
//       s + 1 waits until s - slowest < k. All w are in [slowest, slowest + k], since w <= p and
//       some party has s = p, so that p <= slowest + k: `at` counts them, modulo k + 1.
//   (6) a phase ends under the lock (end_phase()), or quickly: by one compare-and-swap of the word
//       (end_quickly()). The latter only where the word has no mark, and by a party that has
//       signalled the phase and stays a party; or that is the only one who has not, as it finds
//       before its signal: nobody else can bring `unarrived` to zero, so it has the turn already,
//       and the swap gives its signal, too. `sleeps`: a task waits at the event of the phase, or is
//       about to. `locked`: there is more to do, which takes the lock: somebody waits in a list;
//       the phaser is bounded, or has tasks that run ahead, or has failed; or the phase before
//       ended with `sleeps`, so that whoever ended it may have its event still to fire, which only
//       the lock keeps apart from the arming of (3). Who sets a mark changes the word itself: so
//       either the mark comes first, and the swap fails; or the swap does, and who sets the mark
//       finds that the phase is over.
//   (7) `phase` is p for who has the turn, and for who has the lock and has called pin(). Others
//       may find one less: who has ended the phase before quickly writes it after the word. That is
//       a party which has not signalled p: so p does not end before, and nobody but pin(), which
//       writes the same, writes `phase` meanwhile.
// tests/models/phaser.pml is the model of this.
//
// Thread safety: what takes a Registration, the task that it belongs to; all else any thread.
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
  bool in_single = false;                     // it runs the function of a next(single)
  // By its task; under the lock if others may look: those of signal_only, and of bounded phasers.
  std::atomic<std::uint64_t> signalled{0};
  std::atomic<std::uint64_t> waited{0};
  Registration* following = nullptr;          // of the same task
  Registration* before = nullptr;             // of the same phaser, under its lock
  Registration* after = nullptr;
  std::source_location where;                 // where the task was made, or the phaser
  std::uint32_t children = 0;                 // registered by it so far
  std::vector<std::uint32_t> path;            // see Standing; empty unless the phaser keeps_order
};

// Something that waits for a phase, under the lock: on the stack of a task, or a promise.
struct PhaseWait {
  std::uint64_t until = 0;              // goes on when the phase is this, or a later one
  detail::EventWord event{};
  detail::PromiseState* promise = nullptr;
  PhaseWait* next = nullptr;
  bool runs = false;                    // next(single): this one is to run the function
};

// What a step leads to, beside the ready tasks: promises whose phase is over, to be completed.
struct PhaseEnd {
  Outcome& outcome;
  PhaseWait* promises = nullptr;
};

struct Phases : detail::PhaserState {
  static constexpr int count_bits = 22;
  static constexpr int phase_shift = 2 * count_bits + 2;
  static constexpr std::uint64_t count_mask = (std::uint64_t{1} << count_bits) - 1;
  static constexpr std::uint64_t one_unarrived = 1;
  static constexpr std::uint64_t one_party = std::uint64_t{1} << count_bits;
  static constexpr std::uint64_t sleeps = std::uint64_t{1} << (2 * count_bits);        // (6)
  static constexpr std::uint64_t locked = std::uint64_t{1} << (2 * count_bits + 1);    // (6)
  static constexpr std::uint64_t most = count_mask;  // registrations

  // These follow `phase` on its cache line: all that a quick end of a phase writes.
  std::atomic<std::uint64_t> word{0};       // (1)
  std::array<detail::EventWord, 2> events;  // (3)

  // What each signal and wait reads, and few steps write.
  alignas(base::cache_line_bytes) std::uint32_t ahead = 0;
  // After `failure_of_backend`, for those who do not wait for it.
  std::atomic<bool> failed{false};
  bool keeps_order = false;            // some accumulator wants Registration::path
  detail::AccumulatorBase* accumulators = nullptr;  // owned
  std::unique_ptr<detail::PhaserBackend> backend;
  std::exception_ptr failure_of_backend;  // set while the backend has the turn
  Scope* finish = nullptr;             // that it belongs to; null: none. To compare, not to follow
  std::source_location finish_where;

  alignas(base::cache_line_bytes) mutable base::SpinLock lock;
  std::atomic<bool> closed{false};                                   // (4); written under the lock
  Registration* first IMBREX_GUARDED_BY(lock) = nullptr;             // all registrations
  std::uint64_t registered IMBREX_GUARDED_BY(lock) = 0;
  std::uint64_t not_single IMBREX_GUARDED_BY(lock) = 0;              // of these
  std::uint64_t runners IMBREX_GUARDED_BY(lock) = 0;                 // of these: signal_only
  std::uint64_t gone_ahead IMBREX_GUARDED_BY(lock) = 0;              // (4)
  PhaseWait* waits IMBREX_GUARDED_BY(lock) = nullptr;
  PhaseWait* singles IMBREX_GUARDED_BY(lock) = nullptr;              // that have a function
  PhaseWait* blocked IMBREX_GUARDED_BY(lock) = nullptr;              // (5); until `slowest` is that
  std::uint64_t slowest IMBREX_GUARDED_BY(lock) = 0;
  std::uint64_t waiters IMBREX_GUARDED_BY(lock) = 0;
  std::vector<std::uint32_t> at IMBREX_GUARDED_BY(lock);

  ~Phases();
};

namespace phaser {

// The first registration, in phase (0, 0). `made` must be filled in but for the links.
// `at` is Phases::at: as many zeros.
void open(Phases& phases, Registration& registration, std::vector<std::uint32_t> at) noexcept;
// `child` gets the phase of `parent`, whose task runs. False if there are `most` registrations.
[[nodiscard]] bool add(const Registration& parent, Registration& child) noexcept;

// What a signal did.
struct Signal {
  bool first = false;       // the first of its phase, or as good as that: others have left
  bool last = false;        // the caller has the turn (2): end_phase()
  bool quick = false;       // and may try end_quickly() first
  bool owed = false;        // and has still to signal if that fails: give_owed()
  std::uint64_t phase = 0;  // that it is of, if it is one of these
};
// False if it must wait first, for wait.event, and ask again: (5).
[[nodiscard]] bool may_signal(Registration& mine, PhaseWait& wait) noexcept;
[[nodiscard]] Signal signal(Registration& mine) noexcept;
// The same for next(single). `wait` is told how it ends, unless this is the last.
[[nodiscard]] Signal signal_single(Registration& mine, PhaseWait& wait) noexcept;

// Whether the phase is over that the task waits for, which may wait by its event.
[[nodiscard]] inline bool is_over(const Registration& mine) noexcept;
// The same; false: it is to wait by the event now.
[[nodiscard]] bool is_over_or_sleep(const Registration& mine) noexcept;
[[nodiscard]] inline detail::EventWord& event_of(const Registration& mine) noexcept;
// The same for whoever may be late (3): false if `wait` waits from now on.
[[nodiscard]] bool is_over_or_wait(Phases& phases, std::uint64_t phase, PhaseWait& wait) noexcept;
// The task has waited.
void pass(Registration& mine, PhaseEnd& end) noexcept;

// Leaves; true if the caller has the turn. The registration is the caller's again.
[[nodiscard]] bool leave(Registration& mine, PhaseEnd& end) noexcept;

// The caller, who has the turn, gives it to a task that waits in next(single) with a function to
// run, if there is one.
[[nodiscard]] bool hand_turn_on(Phases& phases, PhaseEnd& end) noexcept;
// Whether a phase comes after the one that ends now: what accumulators are told, before end_phase()
// and without the lock.
[[nodiscard]] detail::PhaseFollows what_follows(Phases& phases) noexcept;
// From now on whoever signals or waits is to throw. The caller has the turn. Promises fail: they
// are taken out.
[[nodiscard]] PhaseWait* fail(Phases& phases, const std::exception_ptr& error) noexcept;
enum class Next : std::uint8_t {
  open,      // somebody has still to signal
  started,   // the same, and somebody has signalled already
  over,      // the caller has the turn again: all have signalled, running ahead
  closed     // there is none: no signaller is left
};
// Ends the phase as (6) says: the caller has the turn. False, and nothing done, if that takes
// end_phase().
[[nodiscard]] bool end_quickly(Phases& phases, std::uint64_t phase) noexcept;
void give_owed(Phases& phases) noexcept;
// Ends the phase: the caller has the turn.
[[nodiscard]] Next end_phase(Phases& phases, PhaseEnd& end) noexcept;

[[nodiscard]] inline std::uint64_t unarrived(const std::uint64_t word) noexcept {
  return word & Phases::count_mask;
}
[[nodiscard]] inline std::uint64_t parties(const std::uint64_t word) noexcept {
  return (word >> Phases::count_bits) & Phases::count_mask;
}

inline bool is_over(const Registration& mine) noexcept {
  // acquire: what was done before the signals, and the armed event (3)
  const std::uint64_t word = mine.phases->word.load(std::memory_order_acquire);
  const std::uint64_t waited = mine.waited.load(std::memory_order_relaxed);
  return (((word >> Phases::phase_shift) ^ waited) & 1) != 0;
}
inline detail::EventWord& event_of(const Registration& mine) noexcept {
  return mine.phases->events[mine.waited.load(std::memory_order_relaxed) % 2];
}

}  // namespace phaser
}  // namespace imbrex::task
