// SPDX-License-Identifier: BSD-3-Clause
// Questions about phasers: the caller's registration, also for accumulators, and which phases are
// over.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>

#include "imbrex/error.hpp"
#include "sched/run/phasers/turn.hpp"
#include "sched/waist/phasers/registrations.hpp"
#include "task/failure.hpp"

namespace imbrex::detail {

namespace {

// Calls call(registration) for the running task or thread; null: it has none on `phaser`.
template <class Call>
auto with_mine(const PhaserState& phaser, Call call) {
  const auto inside = [&] {
    const Worker* const worker = sched::current_worker();
    const bool in_task = worker != nullptr && worker->task != nullptr;
    return call(in_task ? find_registration(*worker->task, phaser) : nullptr);
  };
  if (!is_outside()) return inside();
  if (sched::known_worker() == nullptr) return call(static_cast<Registration*>(nullptr));
  return sched::visit(Purpose::passes, inside,
                      [&] { return call(static_cast<Registration*>(nullptr)); });
}

}  // namespace

bool is_registered(const PhaserState& phaser) noexcept {
  return with_mine(phaser, [](const Registration* const mine) { return mine != nullptr; });
}

PhaserMode mode_on(const PhaserState& phaser) {
  return with_mine(phaser, [&](const Registration* const mine) {
    if (mine == nullptr) refuse_stranger("mode()", phaser);
    return mine->mode;
  });
}

namespace {

sched::PassedPromise& make_passed(Phases& phases) {
  auto passed = std::make_unique<sched::PassedPromise>();
  passed->kind = CompletionKind::phase;
  passed->references.store(2, std::memory_order_relaxed);  // one of the caller, one of the phaser
  passed->shared.store(false, std::memory_order_relaxed);
  passed->failure = nullptr;
  passed->taken.store(true, std::memory_order_relaxed);
  passed->destroy = [](PromiseState& state) noexcept {
    delete static_cast<sched::PassedPromise*>(&state);
  };
  passed->name = phases.name;
  passed->where = phases.where;
  passed->wait.promise = passed.get();
  passed->phases = &phases;
  return *passed.release();
}

}  // namespace

Completion* passed(PhaserState& phaser, const std::uint64_t phase) {
  Phases& phases = static_cast<Phases&>(phaser);
  sched::PassedPromise& promise = make_passed(phases);
  if (task::phaser::is_over_or_wait(phases, phase, promise.wait)) {
    if (phases.failed.load(std::memory_order_acquire) &&  // pairs with task::phaser::fail()
        phases.phase.load(std::memory_order_relaxed) <= phase) {
      task::set_failure(promise, task::failure_of_nobody(phases.failure_of_backend));
    }
    promise.references.store(1, std::memory_order_relaxed);
    promise.event.head.store(EventWord::fired, std::memory_order_release);
  }
  return &promise;
}

// ---- accumulators ----------------------------------------------------------------------------

namespace {

// Whether no other task is registered, and `mine` has not signalled.
bool is_new(const Phases& phases, const Registration& mine) noexcept
    IMBREX_REQUIRES(phases.lock) {
  return phases.registered == 1 && phases.phase.load(std::memory_order_relaxed) == 0 &&
         mine.signalled.load(std::memory_order_relaxed) == 0;
}

}  // namespace

void add_accumulator(PhaserState& phaser, AccumulatorBase& accumulator) {
  std::unique_ptr<AccumulatorBase> owned(&accumulator);
  Phases& phases = static_cast<Phases&>(phaser);
  with_mine(phaser, [&](const Registration* const mine) {
    if (mine == nullptr) refuse_stranger("an accumulator made", phaser);
    if (phases.backend != nullptr && accumulator.message_bytes() == 0) {
      refuse_at("an accumulator made", phaser,
                "its values cannot be sent to other ranks: use a type that is trivially copyable");
    }
    {
      const std::lock_guard guard(phases.lock);
      if (is_new(phases, *mine)) {
        if (accumulator.ordered) phases.keeps_order = true;
        accumulator.following = phases.accumulators;
        phases.accumulators = owned.release();
        return;
      }
    }
    refuse_at("an accumulator made", phaser,
              fmt::format("other tasks may have begun phases without this accumulator: make it "
                          "before the first next() and before a task is registered; {}",
                          text_of(*mine)));
  });
}

std::exception_ptr failure_of_rank(const int rank) {
  return std::make_exception_ptr(Error(fmt::format(
      "imbrex: the operation of an accumulator has thrown on rank {}: see the output of that rank",
      rank)));
}

bool find_standing(const PhaserState& phaser, Standing& standing) noexcept {
  return with_mine(phaser, [&](const Registration* const mine) {
    if (mine == nullptr) return false;
    standing = {mine->signalled.load(std::memory_order_relaxed),
                mine->waited.load(std::memory_order_relaxed), &mine->path, mine->mode};
    return true;
  });
}

void await_last_phase(PhaserState& phaser) {
  const Phases& phases = static_cast<const Phases&>(phaser);
  if (phases.backend == nullptr || phases.closed.load(std::memory_order_acquire) ||
      task::phaser::parties(phases.word.load(std::memory_order_acquire)) != 0) {
    return;
  }
  await(phaser.event, {.kind = WaitKind::event,
                       .what = "the last phase of a phaser, on other ranks"});
}

Standing standing_on(const PhaserState& phaser, const char* const what) {
  Standing standing;
  if (!find_standing(phaser, standing)) refuse_stranger(what, phaser);
  return standing;
}

void throw_of_accumulator(const PhaserState& phaser, const char* const what,
                          const char* const why) {
  std::string rest = why;
  with_mine(phaser, [&rest](const Registration* const mine) {
    if (mine != nullptr) rest += "; " + text_of(*mine);
  });
  refuse_at(what, phaser, rest);
}

std::uint32_t ahead_of(const PhaserState& phaser) noexcept {
  return std::max<std::uint32_t>(1, static_cast<const Phases&>(phaser).ahead);
}

std::size_t worker_slots() noexcept {
  const sched::RuntimeState* const runtime = sched::runtime();
  if (runtime == nullptr) return 0;
  constexpr std::size_t many = 256;  // threads that may join are too many to keep a slot for each
  const auto most = static_cast<std::size_t>(runtime->workers.most());
  return std::min(most, std::max(runtime->workers.size(), many));
}

std::size_t worker_slot() noexcept {
  const Worker* const worker = sched::current_worker();
  if (worker == nullptr || worker->foreign()) return SIZE_MAX;
  return static_cast<std::size_t>(worker->id);
}

}  // namespace imbrex::detail
