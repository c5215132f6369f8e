// SPDX-License-Identifier: BSD-3-Clause
// Completions that are no tasks: joints, promises, named events.
#include <fmt/format.h>

#include <utility>

#include "base/check.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"
#include "imbrex/runtime.hpp"
#include "sched/run/notes.hpp"
#include "sched/trigger/progress_functions.hpp"
#include "sched/waist/caller.hpp"
#include "task/failure.hpp"
#include "task/joint.hpp"

namespace imbrex::detail {

namespace {

// A promise without a place in the program is named by a description.
std::string describe(const PromiseState& state) {
  if (state.where.line() == 0) return state.name;
  return fmt::format("promise \"{}\" ({})", state.name, text_of(state.where));
}

// The origin of the value of `completion`.
std::string describe_source(const Completion& completion) {
  if (task::is_task(completion)) {
    return fmt::format("task {}", sched::describe(static_cast<const Task&>(completion)));
  }
  const auto& state = static_cast<const PromiseState&>(completion);
  if (completion.kind == CompletionKind::remote) {
    return fmt::format("a future of \"{}\"", state.name);
  }
  return describe(state);
}

Completion* join(const std::span<Completion* const> parts, const bool all, const char* what) {
  for (const Completion* const part : parts) {
    if (part == nullptr) throw Error(fmt::format("imbrex: {} with an empty future", what));
  }
  for (Completion* const part : parts) share(*part);
  Completion& joint = task::join(parts, all);
  if (records_waits.load(std::memory_order_relaxed)) [[unlikely]] {
    sched::notes::joins(joint, parts, all);
  }
  return &joint;
}

}  // namespace

Completion* join_all(const std::span<Completion* const> parts) {
  return join(parts, true, "when_all");
}
Completion* join_any(const std::span<Completion* const> parts) {
  if (parts.empty()) throw Error("imbrex: when_any() of no futures would never be ready: give it "
                                 "one future at least");
  return join(parts, false, "when_any");
}
Slot<std::size_t>& joint_index(Completion& joint) noexcept {
  return static_cast<task::Joint&>(joint).index;
}

// A live promise could make another future, which is detected in time only for a value that cannot
// be copied (check_not_taken()). A named future of several ranks can always be asked for again.
// acquire: a thread that sees no promise counts every future that a promise has made.
bool take_value(const Completion& completion, FutureCount<true>& futures, const bool copyable) {
  constexpr std::uint32_t taken_out = FutureCount<true>::taken_out;
  const bool named = completion.kind == CompletionKind::remote;
  const bool promised =
      completion.kind == CompletionKind::promise &&
      static_cast<const PromiseState&>(completion).holders.load(std::memory_order_acquire) != 0;
  std::uint32_t count = 1;
  // acquire: after all reads by others; otherwise relaxed: nothing is handed on
  if (!named && !(copyable && promised) &&
      futures.count.compare_exchange_strong(count, count | taken_out, std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
    futures.taker.store(current_task().name, std::memory_order_relaxed);
    return true;
  }
  check_not_taken(completion, futures);
  if (copyable) return false;
  const std::string others =
      named ? "other tasks can ask for it by its name"
            : fmt::format("{} more {} it", count - 1, count == 2 ? "Future holds" : "Futures hold");
  throw Error(fmt::format("imbrex: the value of {}, which cannot be copied, is asked for in task "
                          "{} by get() of an rvalue, and {}: read it by get() of a named future, "
                          "which returns a reference",
                          describe_source(completion), describe_current_task(), others));
}

void throw_taken_out(const Completion& completion, const FutureCount<true>& futures) {
  const char* const taker = futures.taker.load(std::memory_order_relaxed);
  throw Error(fmt::format("imbrex: the value of {} is asked for in task {}, and was moved out "
                          "before, by get() of an rvalue{}",
                          describe_source(completion), describe_current_task(),
                          taker == nullptr ? "" : " in task " + describe(TaskLabel{taker, {}, 0})));
}

std::exception_ptr take_failure(const Completion& completion) noexcept {
  if (completion.failure == nullptr) return nullptr;
  task::take_all(completion);
  return task::exception_of(*completion.failure);
}

void rethrow_failure(const Completion& completion) {
  std::rethrow_exception(take_failure(completion));
}

void fail(PromiseState& state, std::exception_ptr error) noexcept {
  task::set_failure(state, task::failure_of_promise(state, std::move(error)));
  const auto tell = [&state] { sched::current_worker()->runtime->unowned.fail(*state.failure); };
  if (is_outside()) return sched::visit(Purpose::passes, tell, [] {});
  tell();
}

bool take(PromiseState& state) noexcept {
  return !state.taken.exchange(true, std::memory_order_acq_rel);
}
void complete(PromiseState& state) noexcept {
  if (records_waits.load(std::memory_order_relaxed)) [[unlikely]] sched::notes::sets(state);
  fire(state.event);
}

void note_destructor() noexcept {
  const std::exception_ptr error = std::make_exception_ptr(
      Error(fmt::format("imbrex: a destructor has thrown in {}, where nothing can catch that: {}",
                        describe_current_task(), thrown_text(std::current_exception()))));
  task::Failure& failure = task::failure_of_nobody(error);
  const auto tell = [&failure] { sched::current_worker()->runtime->unowned.fail(failure); };
  if (is_outside()) {
    sched::visit(Purpose::passes, tell, [&failure] { base::report(task::describe(failure)); });
  } else {
    tell();
  }
  task::drop(failure);
}

void throw_set_twice(const PromiseState& state) {
  throw Error(fmt::format("imbrex: {} set twice, the second time in {}", describe(state),
                          describe_current_task()));
}

void throw_no_exception(const PromiseState& state, const char* const call) {
  throw Error(fmt::format("imbrex: {}() of {}, in {}, is given a null pointer instead of an "
                          "exception: give it std::current_exception() in a catch clause, or "
                          "std::make_exception_ptr()",
                          call, describe(state), describe_current_task()));
}

void drop_holder(PromiseState& state) noexcept {
  if (state.holders.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (take(state)) {
    // If no task asks, the value is not missed: no scope is told.
    task::set_failure(state, task::failure_of_nobody(std::make_exception_ptr(BrokenPromise(
        fmt::format("imbrex: {} was given up without a value: its last Promise was destroyed",
                    describe(state))))));
    complete(state);
  }
  release(state);
}

// ---- named events ----------------------------------------------------------------------------

Completion* name_event(const EventName& name, const std::source_location& where) {
  if (is_outside()) return sched::visit_to_spawn([&] { return name_event(name, where); });
  Worker& worker = *sched::current_worker();
  if (worker.callbacks != 0) refuse_to_wait("an event named");
  return worker.runtime->triggers->name(worker, name, where);
}

void trigger(const EventName& name) {
  if (is_outside()) {
    return sched::visit(Purpose::passes, [&] { trigger(name); },
                        [] { refuse_without_runtime("trigger"); });
  }
  Worker& worker = *sched::current_worker();
  worker.runtime->triggers->trigger(worker, name);
}

void add_progress(const ProgressSpec& spec) {
  if (is_outside()) return visit_to_wait("progress", [&] { add_progress(spec); });
  Worker& worker = *sched::current_worker();
  check_may_wait(worker, "progress");
  const Family* const family = worker.task->family;
  if (family == nullptr || family->current->outer == nullptr) {
    throw Error(fmt::format(
        "imbrex: progress function registered at {} in {}, which has no finish() open: call "
        "progress() in the body of the finish() whose tasks need it",
        text_of(spec.where), describe_current_task()));
  }
  worker.runtime->triggers->add(*family->current, spec);
}

}  // namespace imbrex::detail
