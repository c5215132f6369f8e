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

// The part of the word that belongs to `one`: (1).
std::uint64_t share_of(const Phases& phases, const Registration& one) noexcept
    IMBREX_REQUIRES(phases.lock) {
  const bool arrived = one.signalled.load(std::memory_order_relaxed) >
                       phases.phase.load(std::memory_order_relaxed);
  return Phases::one_party + (arrived ? 0 : Phases::one_unarrived);
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
    phases.word.store(share_of(phases, registration), std::memory_order_relaxed);
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
  // counts as arrived, as its parent.
  phases.word.fetch_add(share_of(phases, child), std::memory_order_relaxed);
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
    // The party runs ahead.
    if (signalled != phases.phase.load(std::memory_order_relaxed)) return {};
    return arrive(phases, signalled);
  }
  const std::uint64_t waited = mine.waited.load(std::memory_order_relaxed);
  if (!signals(mine.mode) || signalled > waited) return {};
  mine.signalled.store(waited + 1, std::memory_order_relaxed);
  return arrive(phases, waited);
}

Signal signal_single(Registration& mine, PhaseWait& wait) noexcept {
  Phases& phases = *mine.phases;
  const std::uint64_t waited = mine.waited.load(std::memory_order_relaxed);
  const std::lock_guard guard(phases.lock);
  Signal done;
  if (mine.signalled.load(std::memory_order_relaxed) == waited) {
    mine.signalled.store(waited + 1, std::memory_order_relaxed);
    done = arrive(phases, waited);
  } else if (is_over(mine)) {
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
  if (phases.phase.load(std::memory_order_relaxed) > phase ||
      phases.closed.load(std::memory_order_relaxed) ||
      phases.failed.load(std::memory_order_relaxed)) {
    return true;
  }
  wait.until = phase == nobody ? nobody : phase + 1;  // the largest number is over when all phases
                                                      // are
  wait.next = phases.waits;
  phases.waits = &wait;
  return false;
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
      const std::uint64_t share = share_of(phases, mine);
      // acq_rel: as arrive()
      const std::uint64_t word = phases.word.fetch_sub(share, std::memory_order_acq_rel);
      last = unarrived(share) == 1 && unarrived(word) == 1;
      phases.gone_ahead = std::max(phases.gone_ahead,
                                   mine.signalled.load(std::memory_order_relaxed));
    }
  }
  event::let_go_all(waiters, end.outcome);
  return last;
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

// Gives the turn to a task of `singles`, if it has one and the phaser has not failed.
bool hand_turn_on(Phases& phases, Waiter*& waiters) noexcept IMBREX_REQUIRES(phases.lock) {
  PhaseWait* const chosen = phases.singles;
  if (chosen == nullptr || phases.failed.load(std::memory_order_relaxed)) return false;
  phases.singles = chosen->next;
  chosen->runs = true;
  fire(*chosen, waiters);
  return true;
}

// Begins the next phase, or closes the phaser.
Next advance(Phases& phases, Waiter*& waiters, PhaseWait*& promises) noexcept
    IMBREX_REQUIRES(phases.lock) {
  const std::uint64_t over = phases.phase.load(std::memory_order_relaxed);
  const std::uint64_t now = over + 1;
  const std::uint64_t present = parties(phases.word.load(std::memory_order_relaxed));
  if (present == 0 && now >= phases.gone_ahead) {
    phases.closed.store(true, std::memory_order_release);
    (void)event::try_fire(phases.event, waiters);
    for (PhaseWait** const list : {&phases.waits, &phases.singles, &phases.blocked}) {
      end_waits(*list, nobody, waiters, promises);
    }
    return Next::closed;
  }
  const std::uint64_t arrived = ahead_of(phases, now);
  phases.events[now % 2].head.store(0, std::memory_order_relaxed);
  // A store: no other thread changes the word now (1), (2).
  phases.word.store(present * Phases::one_party + present - arrived, std::memory_order_relaxed);
  phases.phase.store(now, std::memory_order_release);  // (6); pairs with is_over()
  (void)event::try_fire(phases.events[over % 2], waiters);
  end_waits(phases.waits, now, waiters, promises);
  end_waits(phases.singles, now, waiters, promises);
  if (arrived == present) return Next::over;
  return arrived == 0 ? Next::open : Next::started;
}

}  // namespace

Next end_phase(Phases& phases, const bool single_has_run, PhaseEnd& end) noexcept {
  Waiter* waiters = nullptr;
  Next next = Next::handed_on;
  {
    const std::lock_guard guard(phases.lock);
    if (single_has_run || !hand_turn_on(phases, waiters)) {
      next = advance(phases, waiters, end.promises);
    }
  }
  event::let_go_all(waiters, end.outcome);
  return next;
}

}  // namespace phaser
}  // namespace imbrex::task
