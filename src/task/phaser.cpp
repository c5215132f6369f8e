// SPDX-License-Identifier: BSD-3-Clause
#include "task/phaser.hpp"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>

#include "task/task.hpp"

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

std::uint64_t word_of(const std::uint64_t phase, const std::uint64_t its_parties,
                      const std::uint64_t its_unarrived) noexcept {
  return (phase << (2 * Phases::count_bits)) | (its_parties << Phases::count_bits) | its_unarrived;
}

void link(Phases& phases, Registration& made) noexcept IMBREX_REQUIRES(phases.lock) {
  made.before = nullptr;
  made.after = phases.first;
  if (phases.first != nullptr) phases.first->before = &made;
  phases.first = &made;
  ++phases.registered;
  if (made.mode != PhaserMode::single) ++phases.not_single;
  if (made.mode == PhaserMode::signal_only) ++phases.runners;
  if (!waits(made.mode)) return;
  ++phases.waiters;
  const std::uint64_t waited = made.waited.load(std::memory_order_relaxed);
  if (phases.ahead != 0) ++phases.at[waited % phases.at.size()];
}

void unlink(Phases& phases, const Registration& mine) noexcept IMBREX_REQUIRES(phases.lock) {
  (mine.before == nullptr ? phases.first : mine.before->after) = mine.after;
  if (mine.after != nullptr) mine.after->before = mine.before;
  --phases.registered;
  if (mine.mode != PhaserMode::single) --phases.not_single;
  if (mine.mode == PhaserMode::signal_only) --phases.runners;
}

// Adds the tasks that wait for `wait` to `waiters`. Read before: once fired, it may be gone.
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

// Raises `slowest` to the least phase that somebody waits for; those go on whom that had blocked.
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

void open(Phases& phases, Registration& made, std::vector<std::uint32_t> at) noexcept {
  const std::lock_guard guard(phases.lock);
  phases.at = std::move(at);
  link(phases, made);
  if (signals(made.mode)) {
    phases.word.store(word_of(0, 1, 1), std::memory_order_relaxed);
  } else {
    phases.closed.store(true, std::memory_order_relaxed);
  }
  if (!waits(made.mode)) phases.slowest = nobody;
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
  // has arrived as the parent has.
  const bool arrived = child.signalled.load(std::memory_order_relaxed) >
                       phases.phase.load(std::memory_order_relaxed);
  phases.word.fetch_add(Phases::one_party + (arrived ? 0 : Phases::one_unarrived),
                        std::memory_order_relaxed);
  return true;
}

namespace {

// acq_rel: whoever has the turn comes after all signals, each of which adds to one release
// sequence.
Signal arrive(Phases& phases, const std::uint64_t phase) noexcept {
  const std::uint64_t word = phases.word.fetch_sub(Phases::one_unarrived,
                                                   std::memory_order_acq_rel);
  return {unarrived(word) == parties(word), unarrived(word) == 1, phase};
}

}  // namespace

bool may_signal(Registration& mine, PhaseWait& wait) noexcept {
  Phases& phases = *mine.phases;
  if (phases.ahead == 0 || !signals(mine.mode)) return true;
  const std::uint64_t signalled = mine.signalled.load(std::memory_order_relaxed);
  if (mine.mode != PhaserMode::signal_only &&
      signalled > mine.waited.load(std::memory_order_relaxed)) {
    return true;  // it has signalled already: that changes nothing
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
    if (signalled != phases.phase.load(std::memory_order_relaxed)) return {};  // it runs ahead
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
    if (done.last && phases.span == nullptr) return done;
  } else if (phases.phase.load(std::memory_order_relaxed) > waited) {
    wait.event.head.store(detail::EventWord::fired, std::memory_order_relaxed);  // it is over
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
  wait.until = phase == nobody ? nobody : phase + 1;  // the largest number is over when all is
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
    if (phases.closed.load(std::memory_order_relaxed)) return;  // w is bounded by nothing now
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
      const bool arrived = mine.signalled.load(std::memory_order_relaxed) >
                           phases.phase.load(std::memory_order_relaxed);
      // acq_rel: as arrive()
      const std::uint64_t word = phases.word.fetch_sub(
          Phases::one_party + (arrived ? 0 : Phases::one_unarrived), std::memory_order_acq_rel);
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

bool is_last(Phases& phases) noexcept {
  if (parties(phases.word.load(std::memory_order_acquire)) != 0) return false;
  const std::lock_guard guard(phases.lock);
  return phases.phase.load(std::memory_order_relaxed) + 1 >= phases.gone_ahead;
}

PhaseWait* fail(Phases& phases, const std::exception_ptr& error) noexcept {
  PhaseWait* promises = nullptr;
  const std::lock_guard guard(phases.lock);
  phases.failure_of_span = error;
  phases.failed.store(true, std::memory_order_release);  // pairs with who does not take the lock
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

// The parties that have signalled `phase`, which begins, by running ahead.
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
      // release: pairs with is_over(). Nobody else changes the word meanwhile (2).
      phases.word.store(word_of(now, present, present - arrived), std::memory_order_release);
      if (arrived == present) {
        next = Next::over;
      } else if (arrived != 0) {
        next = Next::started;
      }
      Waiter* those = nullptr;
      (void)event::try_fire(phases.events[over % 2], those);
      waiters = those;
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
