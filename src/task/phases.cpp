// SPDX-License-Identifier: BSD-3-Clause
#include "task/phases.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "task/descriptor.hpp"

namespace imbrex::task {

Phases::~Phases() {
  while (accumulators != nullptr) {
    const std::unique_ptr<detail::AccumulatorBase> first_one(accumulators);
    accumulators = first_one->following;
  }
}

namespace phaser {

namespace {

constexpr std::uint64_t nobody = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint64_t marks = Phases::sleeps | Phases::locked;

std::uint64_t word_of(const std::uint64_t phase, const std::uint64_t its_parties,
                      const std::uint64_t its_unarrived) noexcept {
  return (phase << Phases::phase_shift) | (its_parties << Phases::count_bits) | its_unarrived;
}
// Whether the phase of `word` and `phase` have the same lowest bit.
bool is_alike(const std::uint64_t word, const std::uint64_t phase) noexcept {
  return (((word >> Phases::phase_shift) ^ phase) & 1) == 0;
}

// From now on the current phase ends only under the lock; returns its number (7).
std::uint64_t pin(Phases& phases) noexcept IMBREX_REQUIRES(phases.lock) {
  // acquire: a thread that finds a phase over sees its effects
  const std::uint64_t word = phases.word.fetch_or(Phases::locked, std::memory_order_acq_rel);
  std::uint64_t now = phases.phase.load(std::memory_order_relaxed);
  if (!is_alike(word, now)) phases.phase.store(++now, std::memory_order_release);
  return now;
}

// Whether `one` has signalled the phase of `word`: (1).
bool has_signalled(Phases& phases, const Registration& one, const std::uint64_t word) noexcept
    IMBREX_REQUIRES(phases.lock) {
  const std::uint64_t signalled = one.signalled.load(std::memory_order_relaxed);
  if (one.mode == PhaserMode::signal_only) {
    return signalled > phases.phase.load(std::memory_order_relaxed);
  }
  return !is_alike(word, signalled);
}

// Whether the next phase must end under the lock, as far as can be seen now.
bool needs_lock(const Phases& phases) noexcept IMBREX_REQUIRES(phases.lock) {
  return phases.ahead != 0 || phases.runners != 0 || phases.waits != nullptr ||
         phases.singles != nullptr || phases.failed.load(std::memory_order_relaxed);
}

void link(Phases& phases, Registration& registration) noexcept IMBREX_REQUIRES(phases.lock) {
  registration.before = nullptr;
  registration.after = phases.first;
  if (phases.first != nullptr) phases.first->before = &registration;
  phases.first = &registration;
  ++phases.registered;
  if (registration.mode != PhaserMode::single) ++phases.not_single;
  if (registration.mode == PhaserMode::signal_only) ++phases.runners;
  if (!waits(registration.mode)) return;
  ++phases.waiters;
  const std::uint64_t waited = registration.waited.load(std::memory_order_relaxed);
  if (phases.ahead != 0) ++phases.at[waited % phases.at.size()];
}

void unlink(Phases& phases, const Registration& mine) noexcept IMBREX_REQUIRES(phases.lock) {
  (mine.before == nullptr ? phases.first : mine.before->after) = mine.after;
  if (mine.after != nullptr) mine.after->before = mine.before;
  --phases.registered;
  if (mine.mode != PhaserMode::single) --phases.not_single;
  if (mine.mode == PhaserMode::signal_only) --phases.runners;
}

// Adds the waiters of `wait` to `waiters`. Reads `wait` first, because it may be gone once fired.
void fire(PhaseWait& wait, Waiter*& waiters) noexcept {
  Waiter* mine = nullptr;
  (void)event::try_fire(wait.event, mine);
  if (mine != nullptr) waiters = waiters == nullptr ? mine : event::chain(mine, waiters);
}

// Ends the waits of `list` until `now`: tasks go to `waiters`, promises to `promises`.
void end_waits(PhaseWait*& list, const std::uint64_t now, Waiter*& waiters,
               PhaseWait*& promises) noexcept {
  for (PhaseWait** link = &list; *link != nullptr;) {
    PhaseWait& wait = **link;
    if (wait.until > now) {
      link = &wait.next;
      continue;
    }
    *link = wait.next;
    if (wait.promise != nullptr) {
      wait.next = promises;
      promises = &wait;
    } else {
      fire(wait, waiters);
    }
  }
}

// Raises `slowest` to the least phase that a party waits for; the signallers that it blocked
// resume.
void find_slowest(Phases& phases, Waiter*& waiters) noexcept IMBREX_REQUIRES(phases.lock) {
  if (phases.ahead == 0) return;
  if (phases.waiters == 0) {
    phases.slowest = nobody;
  } else {
    while (phases.at[phases.slowest % phases.at.size()] == 0) ++phases.slowest;
  }
  PhaseWait* none = nullptr;
  end_waits(phases.blocked, phases.slowest, waiters, none);
}

}  // namespace

void open(Phases& phases, Registration& registration, std::vector<std::uint32_t> at) noexcept {
  const std::lock_guard guard(phases.lock);
  phases.at = std::move(at);
  link(phases, registration);
  if (signals(registration.mode)) {
    phases.word.store(word_of(0, 1, 1) | (needs_lock(phases) ? Phases::locked : 0),
                      std::memory_order_relaxed);
  } else {
    phases.closed.store(true, std::memory_order_relaxed);
  }
  if (!waits(registration.mode)) phases.slowest = nobody;
}

bool add(const Registration& parent, Registration& child) noexcept {
  Phases& phases = *parent.phases;
  child.signalled.store(parent.signalled.load(std::memory_order_relaxed),
                        std::memory_order_relaxed);
  child.waited.store(parent.waited.load(std::memory_order_relaxed), std::memory_order_relaxed);
  const std::lock_guard guard(phases.lock);
  if (phases.registered == Phases::most) return false;
  link(phases, child);
  if (!signals(child.mode)) return true;
  // With s = p the parent, which has not arrived, keeps the phase open (2); with s > p, the child
  // counts as arrived, as its parent. A child that runs ahead pins all phases.
  if (child.mode == PhaserMode::signal_only) (void)pin(phases);
  std::uint64_t word = phases.word.load(std::memory_order_relaxed);
  std::uint64_t added = 0;
  do {
    added = Phases::one_party +
            (has_signalled(phases, child, word) ? 0 : Phases::one_unarrived);
  } while (!phases.word.compare_exchange_weak(word, word + added, std::memory_order_relaxed));
  return true;
}

namespace {

// acq_rel: the thread with the turn comes after all signals, each of which adds to one release
// sequence.
Signal arrive(Phases& phases, const std::uint64_t phase) noexcept {
  const std::uint64_t word = phases.word.fetch_sub(Phases::one_unarrived,
                                                   std::memory_order_acq_rel);
  return {.first = unarrived(word) == parties(word),
          .last = unarrived(word) == 1,
          .quick = (word & marks) == 0,
          .phase = phase};
}

}  // namespace

bool may_signal(Registration& mine, PhaseWait& wait) noexcept {
  Phases& phases = *mine.phases;
  if (phases.ahead == 0 || !signals(mine.mode)) return true;
  const std::uint64_t signalled = mine.signalled.load(std::memory_order_relaxed);
  if (mine.mode != PhaserMode::signal_only &&
      signalled > mine.waited.load(std::memory_order_relaxed)) {
    return true;  // the party has signalled already: no effect
  }
  const std::lock_guard guard(phases.lock);
  if (phases.slowest == nobody || signalled < phases.slowest + phases.ahead) return true;
  wait.until = signalled - phases.ahead + 1;
  wait.next = phases.blocked;
  phases.blocked = &wait;
  return false;
}

Signal signal(Registration& mine) noexcept {
  Phases& phases = *mine.phases;
  const std::uint64_t signalled = mine.signalled.load(std::memory_order_relaxed);
  if (mine.mode == PhaserMode::signal_only) {
    const std::lock_guard guard(phases.lock);
    mine.signalled.store(signalled + 1, std::memory_order_relaxed);
    if (signalled != pin(phases)) return {};  // the party runs ahead
    return arrive(phases, signalled);
  }
  const std::uint64_t waited = mine.waited.load(std::memory_order_relaxed);
  if (!signals(mine.mode) || signalled > waited) return {};
  mine.signalled.store(waited + 1, std::memory_order_relaxed);
  const bool here =
      phases.backend == nullptr || phases.backend->alone.load(std::memory_order_relaxed);
  if (here && phases.accumulators != nullptr) {
    // Waiting tasks read the word again and again, so it is written once, when all other work is
    // done. acquire: as arrive()
    const std::uint64_t word = phases.word.load(std::memory_order_acquire);
    if (unarrived(word) == 1 && (word & marks) == 0) {
      return {.last = true, .quick = true, .owed = true, .phase = waited};
    }
  }
  Signal done = arrive(phases, waited);
  if (!here || phases.accumulators != nullptr || !done.last || !done.quick) return done;
  if (end_quickly(phases, waited)) return {};  // there was no other work
  done.quick = false;
  return done;
}

void give_owed(Phases& phases) noexcept {
  // acq_rel: as arrive()
  (void)phases.word.fetch_sub(Phases::one_unarrived, std::memory_order_acq_rel);
}

Signal signal_single(Registration& mine, PhaseWait& wait) noexcept {
  Phases& phases = *mine.phases;
  const std::uint64_t waited = mine.waited.load(std::memory_order_relaxed);
  const std::lock_guard guard(phases.lock);
  const std::uint64_t now = pin(phases);  // before its signal: the thread with the turn finds it
                                          // there
  Signal done;
  if (mine.signalled.load(std::memory_order_relaxed) == waited) {
    mine.signalled.store(waited + 1, std::memory_order_relaxed);
    done = arrive(phases, waited);
    if (done.last && phases.backend == nullptr) return done;
  } else if (now > waited) {
    // the phase is over
    wait.event.head.store(detail::EventWord::fired, std::memory_order_relaxed);
    return done;
  }
  wait.until = waited + 1;
  wait.next = phases.singles;
  phases.singles = &wait;
  return done;
}

bool is_over_or_wait(Phases& phases, const std::uint64_t phase, PhaseWait& wait) noexcept {
  const std::lock_guard guard(phases.lock);
  if (pin(phases) > phase || phases.closed.load(std::memory_order_relaxed) ||
      phases.failed.load(std::memory_order_relaxed)) {
    return true;
  }
  wait.until = phase == nobody ? nobody : phase + 1;  // the largest number is over when all phases
                                                      // are
  wait.next = phases.waits;
  phases.waits = &wait;
  return false;
}

bool is_over_or_sleep(const Registration& mine) noexcept {
  std::atomic<std::uint64_t>& word = mine.phases->word;
  const std::uint64_t waited = mine.waited.load(std::memory_order_relaxed);
  // acquire: as is_over(). The mark stays until the phase ends.
  std::uint64_t seen = word.load(std::memory_order_acquire);
  if (is_alike(seen, waited) && (seen & Phases::sleeps) == 0) {
    seen = word.fetch_or(Phases::sleeps, std::memory_order_acq_rel);
  }
  return !is_alike(seen, waited);
}

void pass(Registration& mine, PhaseEnd& end) noexcept {
  const std::uint64_t waited = mine.waited.load(std::memory_order_relaxed);
  Phases& phases = *mine.phases;
  if (phases.ahead == 0) {
    mine.waited.store(waited + 1, std::memory_order_relaxed);
    return;
  }
  Waiter* waiters = nullptr;
  {
    const std::lock_guard guard(phases.lock);
    mine.waited.store(waited + 1, std::memory_order_relaxed);
    if (phases.closed.load(std::memory_order_relaxed)) return;  // w is not bounded any more
    --phases.at[waited % phases.at.size()];
    ++phases.at[(waited + 1) % phases.at.size()];
    find_slowest(phases, waiters);
  }
  event::let_go_all(waiters, end.outcome);
}

bool leave(Registration& mine, PhaseEnd& end) noexcept {
  Phases& phases = *mine.phases;
  Waiter* waiters = nullptr;
  bool last = false;
  {
    const std::lock_guard guard(phases.lock);
    unlink(phases, mine);
    if (task::waits(mine.mode)) {
      --phases.waiters;
      if (phases.ahead != 0 && !phases.closed.load(std::memory_order_relaxed)) {
        --phases.at[mine.waited.load(std::memory_order_relaxed) % phases.at.size()];
        find_slowest(phases, waiters);
      }
    }
    if (signals(mine.mode)) {
      if (mine.mode == PhaserMode::signal_only) (void)pin(phases);
      std::uint64_t word = phases.word.load(std::memory_order_relaxed);
      bool arrived = false;
      std::uint64_t taken = 0;
      do {
        arrived = has_signalled(phases, mine, word);
        taken = Phases::one_party + (arrived ? 0 : Phases::one_unarrived);
        // acq_rel: as arrive()
      } while (!phases.word.compare_exchange_weak(word, word - taken, std::memory_order_acq_rel,
                                                  std::memory_order_relaxed));
      last = !arrived && unarrived(word) == 1;
      phases.gone_ahead = std::max(phases.gone_ahead,
                                   mine.signalled.load(std::memory_order_relaxed));
    }
  }
  event::let_go_all(waiters, end.outcome);
  return last;
}

bool hand_turn_on(Phases& phases, PhaseEnd& end) noexcept {
  Waiter* waiters = nullptr;
  {
    const std::lock_guard guard(phases.lock);
    PhaseWait* const chosen = phases.singles;
    if (chosen == nullptr) return false;
    phases.singles = chosen->next;
    chosen->runs = true;
    fire(*chosen, waiters);
  }
  event::let_go_all(waiters, end.outcome);
  return true;
}

detail::PhaseFollows what_follows(Phases& phases) noexcept {
  using enum detail::PhaseFollows;
  if (parties(phases.word.load(std::memory_order_acquire)) != 0) return yes;
  const std::lock_guard guard(phases.lock);
  const std::uint64_t now = phases.phase.load(std::memory_order_relaxed);
  if (phases.gone_ahead > now + 1) return yes;
  return phases.gone_ahead > now ? no : none_has_signalled;
}

PhaseWait* fail(Phases& phases, const std::exception_ptr& error) noexcept {
  PhaseWait* promises = nullptr;
  const std::lock_guard guard(phases.lock);
  phases.failure_of_backend = error;
  phases.failed.store(true, std::memory_order_release);  // pairs with reads without the lock
  (void)pin(phases);
  for (PhaseWait** link = &phases.waits; *link != nullptr;) {
    PhaseWait& wait = **link;
    if (wait.promise == nullptr) {
      link = &wait.next;
      continue;
    }
    *link = wait.next;
    wait.next = promises;
    promises = &wait;
  }
  return promises;
}

namespace {

// The number of parties that have signalled `phase`, which begins, by running ahead.
std::uint64_t ahead_of(const Phases& phases, const std::uint64_t phase) noexcept
    IMBREX_REQUIRES(phases.lock) {
  if (phases.runners == 0) return 0;
  std::uint64_t count = 0;
  for (const Registration* one = phases.first; one != nullptr; one = one->after) {
    if (one->mode == PhaserMode::signal_only &&
        one->signalled.load(std::memory_order_relaxed) > phase) {
      ++count;
    }
  }
  return count;
}

}  // namespace

bool end_quickly(Phases& phases, const std::uint64_t phase) noexcept {
  std::uint64_t word = phases.word.load(std::memory_order_relaxed);
  if ((word & marks) != 0) return false;
  phases.events[(phase + 1) % 2].head.store(0, std::memory_order_relaxed);
  std::uint64_t next = 0;
  do {
    if ((word & marks) != 0) return false;
    next = word_of(phase + 1, parties(word), parties(word));
    // release: pairs with is_over()
  } while (!phases.word.compare_exchange_weak(word, next, std::memory_order_release,
                                              std::memory_order_relaxed));
  phases.phase.store(phase + 1, std::memory_order_release);  // (7)
  return true;
}

namespace {

// Announces that phase `now` is current, for which `arrived` of the parties have signalled. True if
// tasks sleep that waited for the phase before.
bool announce(Phases& phases, const std::uint64_t now, const std::uint64_t arrived) noexcept
    IMBREX_REQUIRES(phases.lock) {
  const bool lock = needs_lock(phases);
  std::uint64_t word = phases.word.load(std::memory_order_relaxed);
  const std::uint64_t present = parties(word);  // no other thread changes it meanwhile (1)
  const std::uint64_t next = word_of(now, present, present - arrived);
  std::uint64_t marked = 0;
  do {
    marked = lock || (word & Phases::sleeps) != 0 ? Phases::locked : 0;
    // release: pairs with is_over()
  } while (!phases.word.compare_exchange_weak(word, next | marked, std::memory_order_acq_rel,
                                              std::memory_order_relaxed));
  return (word & Phases::sleeps) != 0;
}

}  // namespace

Next end_phase(Phases& phases, PhaseEnd& end) noexcept {
  Waiter* waiters = nullptr;
  Next next = Next::open;
  {
    const std::lock_guard guard(phases.lock);
    const std::uint64_t over = phases.phase.load(std::memory_order_relaxed);
    const std::uint64_t present = parties(phases.word.load(std::memory_order_relaxed));
    std::uint64_t now = over + 1;
    if (present == 0 && now >= phases.gone_ahead) {
      phases.closed.store(true, std::memory_order_release);
      now = nobody;
      next = Next::closed;
      (void)event::try_fire(phases.event, waiters);
    } else {
      phases.events[now % 2].head.store(0, std::memory_order_relaxed);
      phases.phase.store(now, std::memory_order_release);
      const std::uint64_t arrived = ahead_of(phases, now);
      if (announce(phases, now, arrived)) {
        (void)event::try_fire(phases.events[over % 2], waiters);
      }
      if (arrived == present) {
        next = Next::over;
      } else if (arrived != 0) {
        next = Next::started;
      }
    }
    end_waits(phases.waits, now, waiters, end.promises);
    end_waits(phases.singles, now, waiters, end.promises);
    if (phases.closed.load(std::memory_order_relaxed)) {
      end_waits(phases.blocked, nobody, waiters, end.promises);
    }
  }
  event::let_go_all(waiters, end.outcome);
  return next;
}

}  // namespace phaser
}  // namespace imbrex::task
