// SPDX-License-Identifier: BSD-3-Clause
// The steps of the running task on its phasers: it signals, waits, leaves.
#include <fmt/format.h>

#include <mutex>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/error.hpp"
#include "sched/run/loop/waiting.hpp"
#include "sched/run/phasers/leave.hpp"
#include "sched/run/notes.hpp"
#include "sched/run/phasers/turn.hpp"
#include "sched/run/ready.hpp"
#include "sched/waist/phasers/registrations.hpp"
#include "task/failure.hpp"
#include "trace/races.hpp"

namespace imbrex::detail {

namespace {

// The running task's registration does not move while the task waits; its worker may change.

void await_phase_event(EventWord& event, const Registration& mine, const char* const what) {
  const WaitReason reason{.kind = WaitKind::members, .what = what, .completion = mine.phases};
  sched::wait_for(*sched::current_worker(), event, reason);
}

void refuse_in_single(const Registration& mine, const char* const what) {
  if (!mine.in_single) return;
  refuse_at(what, *mine.phases,
            fmt::format("this task runs the function of a next(single), and the other tasks of the "
                        "phaser wait: {}",
                        text_of(mine)));
}

// Waits, for a bounded phaser, until the task may signal.
void await_room(Registration& mine) {
  while (mine.phases->ahead != 0) {
    PhaseWait wait;
    if (task::phaser::may_signal(mine, wait)) return;
    await_phase_event(wait.event, mine, "signal");
  }
}

// Throws the error of a phaser that spans several processes.
void check_backend(const Registration& mine) {
  const Phases& phases = *mine.phases;
  if (!phases.failed.load(std::memory_order_acquire)) [[likely]] return;  // pairs with fail()
  std::rethrow_exception(phases.failure_of_backend);
}

// Does the rest of a signal, which the first and the last of a phase have.
void follow_up(Phases& phases, const task::phaser::Signal done) noexcept {
  if (!done.last && (!done.first || phases.backend == nullptr)) return;
  Worker& worker = *sched::current_worker();
  task::Outcome outcome;
  sched::after_signal(worker, phases, done, outcome);
  sched::act_on(worker, outcome);
}

void signal_one(Registration& mine, const char* const what) {
  refuse_in_single(mine, what);
  await_room(mine);
  check_backend(mine);
  trace::races::before(&mine.phases->word);
  follow_up(*mine.phases, task::phaser::signal(mine));
}

// Calls look() in a loop for `ticks` while there is nothing else to run; true once the phase is
// over.
template <class Look>
bool comes_within(const std::uint64_t ticks, const Registration& mine, const Look& look) noexcept {
  const std::uint64_t end = base::ticks() + ticks;
  do {
    for (int round = 0; round < 8; ++round) {
      look();
      if (task::phaser::is_over(mine)) return true;
    }
  } while (base::ticks() < end && nothing_ready());
  return false;
}

// Waits a few microseconds without suspending the task while another worker or process may be about
// to signal; this worker polls for signals of other processes.
bool comes_soon(const Registration& mine) noexcept {
  const Worker& worker = *sched::current_worker();
  const sched::RuntimeState& runtime = *worker.runtime;
  if (worker.foreign() || runtime.one_at_a_time ||
      runtime.oversubscribed.load(std::memory_order_relaxed)) {
    return false;
  }
  PhaserBackend* const backend = mine.phases->backend.get();
  if (backend != nullptr && !backend->is_local) {
    return comes_within(runtime.spin_ticks, mine, [backend] { backend->look(); });
  }
  return runtime.workers.size() > 1 &&
         comes_within(runtime.spin_ticks / 4, mine, [] { base::pause(); });
}

void await_over(Registration& mine, const char* const what) {
  if (mine.mode == PhaserMode::wait_only) {
    PhaseWait wait;
    const std::uint64_t phase = mine.waited.load(std::memory_order_relaxed);
    if (!task::phaser::is_over_or_wait(*mine.phases, phase, wait)) {
      await_phase_event(wait.event, mine, what);
    }
  } else if (!task::phaser::is_over(mine) && !comes_soon(mine)) {
    await_phase_event(task::phaser::event_of(mine), mine, what);
  }
}

void pass(Registration& mine) noexcept {
  trace::races::after(&mine.phases->word);
  if (trace::happens_before::is_kept()) [[unlikely]] sched::notes::follows_everything();
  task::Outcome outcome;
  task::PhaseEnd end{outcome};
  task::phaser::pass(mine, end);
  if (!outcome.ready.empty()) sched::act_on(*sched::current_worker(), outcome);
}

void wait_one(Registration& mine, const char* const what) {
  refuse_in_single(mine, what);
  if (!task::waits(mine.mode)) return;
  if (task::signals(mine.mode) && mine.signalled.load(std::memory_order_relaxed) ==
                                      mine.waited.load(std::memory_order_relaxed)) {
    refuse_at(what, *mine.phases,
              fmt::format("this task would wait for its own signal of phase {}, which it has not "
                          "given: call signal() first, or next(); {}",
                          mine.waited.load(std::memory_order_relaxed), text_of(mine)));
  }
  await_over(mine, what);
  pass(mine);
  check_backend(mine);
}

// In the file of the flight recorder. `what`: a literal.
void note_step(const Registration& mine, const char* const what) noexcept {
  note_flight(FlightEvent::phaser, what, -1, -1,
              static_cast<std::int64_t>(mine.signalled.load(std::memory_order_relaxed)));
}

// Calls call(registration) for the registration on `phaser`, or for all if that is null.
template <class Call>
void for_each(PhaserState* const phaser, const char* const what, Call call) {
  const Worker& worker = *sched::current_worker();
  check_may_wait(worker, what);
  if (phaser != nullptr) return call(registration_on(worker, *phaser, what));
  Registration* mine = first_registration(*worker.task);
  if (mine == nullptr) {
    throw Error(fmt::format("imbrex: {} by {}, which is registered on no phaser: spawn it with "
                            ".phased()",
                            what, describe_current_task()));
  }
  for (; mine != nullptr; mine = mine->following) call(*mine);
}

}  // namespace

void signal(PhaserState* const phaser) {
  if (is_outside()) return visit_to_wait("signal", [phaser] { signal(phaser); });
  for_each(phaser, "signal()", [](Registration& mine) {
    note_step(mine, "signal()");
    signal_one(mine, "signal()");
  });
}

void wait(PhaserState* const phaser) {
  if (is_outside()) return visit_to_wait("wait", [phaser] { wait(phaser); });
  for_each(phaser, "wait()", [](Registration& mine) {
    note_step(mine, "wait()");
    wait_one(mine, "wait()");
  });
}

void next(PhaserState* const phaser) {
  if (is_outside()) return visit_to_wait("next", [phaser] { next(phaser); });
  for_each(phaser, "next()", [](Registration& mine) {
    note_step(mine, "next()");
    signal_one(mine, "next()");
  });
  for_each(phaser, "next()", [](Registration& mine) { wait_one(mine, "next()"); });
}

void drop(PhaserState* const phaser) {
  if (is_outside()) return visit_to_wait("drop", [phaser] { drop(phaser); });
  Worker& worker = *sched::current_worker();
  check_may_wait(worker, "drop");
  task::Outcome outcome;
  for_each(phaser, "drop()", [](Registration& mine) { refuse_in_single(mine, "drop()"); });
  if (phaser == nullptr) {
    sched::leave_phasers(worker, *worker.task, nullptr, outcome);
  } else {
    Registration** link = &worker.task->family->registrations;
    while ((*link)->phases != phaser) link = &(*link)->following;
    sched::leave_phaser(worker, *link, outcome);
  }
  sched::act_on(worker, outcome);
}

void end_phase(PhaserState& phaser) noexcept {
  if (is_outside()) {
    return sched::visit(Purpose::passes, [&] { end_phase(phaser); }, [] {});
  }
  Worker& worker = *sched::current_worker();
  task::Outcome outcome;
  sched::end_accumulated_phase(worker, static_cast<Phases&>(phaser), false, outcome);
  sched::act_on(worker, outcome);
}

void fail_phaser(PhaserState& phaser, const std::exception_ptr& error) noexcept {
  if (is_outside()) {
    return sched::visit(Purpose::passes, [&] { fail_phaser(phaser, error); }, [] {});
  }
  Worker& worker = *sched::current_worker();
  task::Outcome outcome;
  task::PhaseEnd end{outcome, task::phaser::fail(static_cast<Phases&>(phaser), error)};
  for (task::PhaseWait* one = end.promises; one != nullptr; one = one->next) {
    task::set_failure(*one->promise, task::failure_of_nobody(error));
  }
  sched::complete_promises(worker, end);
  sched::act_on(worker, outcome);
}

// ---- single ----------------------------------------------------------------------------------

namespace {

Registration& only_registration(PhaserState* const phaser) {
  const char* const what = "next(single)";
  Registration* found = nullptr;
  for_each(phaser, what, [&](Registration& mine) {
    if (found != nullptr) {
      refuse_at(what, *mine.phases,
                fmt::format("this task is registered on {}, too: name the phaser: p.next(single, "
                            "...)",
                            text_of(*found->phases)));
    }
    found = &mine;
  });
  return *found;
}

void check_single(const Registration& mine) {
  const char* const what = "next(single)";
  refuse_in_single(mine, what);
  Phases& phases = *mine.phases;
  std::string other;
  {
    const std::lock_guard guard(phases.lock);
    if (phases.not_single == 0) return;
    const Registration* one = phases.first;
    while (one->mode == PhaserMode::single) one = one->after;
    other = fmt::format("task \"{}\" ({}) is registered as {}", one->task->name,
                        text_of(one->where), text_of(one->mode));
  }
  refuse_at(what, phases,
            fmt::format("all tasks of the phaser must be registered as single, but {}; {}", other,
                        text_of(mine)));
}

// Runs the function while all other tasks wait. The phase ends even if the function throws.
void run_single(Registration& mine, void (*const run)(void* context), void* const context) {
  struct End {
    Registration& mine;
    ~End() {
      mine.in_single = false;
      Worker& worker = *sched::current_worker();
      task::Outcome outcome;
      trace::races::before(&mine.phases->word);
      sched::end_accumulated_phase(worker, *mine.phases, true, outcome);
      sched::act_on(worker, outcome);
      pass(mine);
    }
  };
  mine.in_single = true;
  const End end{mine};
  trace::races::after(&mine.phases->word);
  if (trace::happens_before::is_kept()) [[unlikely]] sched::notes::follows_everything();
  run(context);
}

}  // namespace

void next_single(PhaserState* const phaser, void (*const run)(void* context),
                 void* const context) {
  if (is_outside()) {
    return visit_to_wait("next", [&] { next_single(phaser, run, context); });
  }
  Registration& mine = only_registration(phaser);
  check_single(mine);
  note_step(mine, "next(single)");
  await_room(mine);
  PhaseWait wait;
  trace::races::before(&mine.phases->word);
  follow_up(*mine.phases, task::phaser::signal_single(mine, wait));
  if (!wait.event.has_fired()) await_phase_event(wait.event, mine, "next(single)");
  if (wait.runs) return run_single(mine, run, context);
  pass(mine);
  check_backend(mine);
}

}  // namespace imbrex::detail
