// SPDX-License-Identifier: BSD-3-Clause
// Space::iterate(): records a period, begins with what a period before would have left, runs the
// steps as the core's iterate(), and leaves the records of the data as insertions would.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "distributed/data/loop/data_loop.hpp"
#include "distributed/data/recorder.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"

namespace imbrex::distributed {
namespace {

// The closure of a step's task.
struct StepBody {
  LoopStep* step;
  std::uint64_t period;

  static void run(void* const closure) {
    const StepBody& self = *static_cast<const StepBody*>(closure);
    self.step->run(static_cast<std::uint64_t>(detail::iteration()) / self.period);
  }
  static std::span<const std::byte> captured(void*) noexcept { return {}; }
  static const void* code(const void* const closure) noexcept {
    return static_cast<const StepBody*>(closure)->step->code();
  }
  static constexpr detail::RepeatOps repeat{&run, &captured};
  static constexpr detail::BodyOps ops{&run, [](void*) noexcept {}, nullptr, &code, nullptr,
                                       &repeat};
};

void create(LoopStep& step, const std::uint64_t period) {
  void* const memory = detail::create_with_accesses(
      {.name = step.name, .where = step.where, .priority = step.priority,
       .accesses = step.accesses, .distinct = true},
      StepBody::ops, sizeof(StepBody));
  ::new (memory) StepBody{&step, period};
  (void)detail::submit_with_accesses(memory, false);
}

}  // namespace
}  // namespace imbrex::distributed

namespace imbrex::detail {

using distributed::Copy;
using distributed::Loop;
using distributed::LoopDatum;
using distributed::Site;

// ---- what the body inserts -------------------------------------------------------------------

void DataSpace::refuse_in_loop(const char* const what) const {
  if (!body_runs()) [[likely]] return;
  throw Error(fmt::format("imbrex: {} of space \"{}\" in the body of iterate(): the body only "
                          "inserts tasks with the accesses in, out and inout. All else comes "
                          "before or after the loop",
                          what, options_.name));
}

void DataSpace::check_iterates(const char* const what) const {
  if (body_runs()) return;
  throw Error(fmt::format("imbrex: {} of space \"{}\", outside of the body of its iterate()", what,
                          options_.name));
}

void* DataSpace::insert_in_loop(const DataTaskSpec& spec, const int executor,
                                const std::span<const DataAccess> accesses, const BodyOps& ops,
                                const std::size_t bytes) {
  if (checks_) [[unlikely]] note(spec, accesses);
  ++counters_.inserted;
  return loop_->add_task(spec, executor, accesses, ops, bytes);
}
void DataSpace::built_in_loop() { loop_->task_is_built(); }
void DataSpace::not_built_in_loop(const std::exception_ptr error) noexcept {
  loop_->task_is_not_built(error);
}

// A simulation sees the tasks of each iteration.
void DataSpace::insert_each(const IterateSpec& spec, void (*const body)(void*, std::int64_t),
                            void* const argument) {
  const std::uint64_t before = counters_.inserted;
  inserts_each_ = true;
  try {
    for (std::int64_t i = 0; i < spec.count; ++i) body(argument, i);
  } catch (...) {
    inserts_each_ = false;
    network_.recorder->abandon();  // a run inserts nothing of this loop
    throw;
  }
  inserts_each_ = false;
  if (counters_.inserted == before) refuse_empty_loop(spec);
}

void DataSpace::refuse_empty_loop(const IterateSpec& spec) const {
  throw Error(fmt::format("imbrex: iterate() of space \"{}\" at {}: the body has inserted no "
                          "task: there is nothing to repeat",
                          options_.name, detail::text_of(spec.where)));
}

// ---- the call --------------------------------------------------------------------------------

void DataSpace::iterate(const IterateSpec& spec, void (*const body)(void*, std::int64_t),
                        void* const argument) {
  refuse_in_loop("iterate()");
  if (spec.period < 1 || spec.period > UINT32_MAX) {
    throw Error(fmt::format("imbrex: iterate() of space \"{}\" at {} with .period = {}: valid: 1 "
                            "to {}", options_.name, detail::text_of(spec.where), spec.period,
                            UINT32_MAX));
  }
  if (checks_) [[unlikely]] note(spec);
  if (spec.count <= 0) return;
  if (network_.recorder != nullptr) [[unlikely]] return insert_each(spec, body, argument);
  Loop loop(*this, {spec.count, std::min(spec.period, spec.count), spec.where});
  record_loop(loop, body, argument);
  if (loop.is_empty()) refuse_empty_loop(spec);
  if (checks_) [[unlikely]] {
    if (const std::exception_ptr error = end_if_different()) std::rethrow_exception(error);
  }
  loop.plan();
  begin_loop(loop);
  run_loop(loop);
  end_loop(loop);
}

void DataSpace::record_loop(Loop& loop, void (*const body)(void*, std::int64_t),
                            void* const argument) {
  struct Recording {
    Loop*& loop_of_space;
    Loop& loop;
    ~Recording() {
      loop_of_space = nullptr;
      loop.end_recording();
    }
  } recording{loop_, loop};
  loop_ = &loop;
  const std::int64_t period = loop.spec().period;
  const auto call = [&](const std::int64_t first) {
    for (std::int64_t i = 0; i < period; ++i) {
      loop.begin_iteration(i);
      body(argument, first + i);
    }
  };
  call(0);
  if (!checks_ || loop.spec().count < 2 * period) return;
  loop.begin_comparison();
  call(period);
  loop.end_comparison();
}

// ---- before and after the iterations ---------------------------------------------------------

// All ranks take these steps in the same order, as if the program had inserted them.
void DataSpace::begin_loop(Loop& loop) {
  constexpr const char* what = "the tasks before iterate() of a space of data";
  const Site site{"iterate", loop.spec().where, 0};
  for (auto& [number, its] : loop.data()) {
    if (its.datum->reduction != nullptr) combine(*its.datum, site);
  }
  pending.wait_for_all(what);
  for (auto& [number, its] : loop.data()) {
    Datum& datum = *its.datum;
    for (const int rank : its.early_readers) provide(datum, rank, site);
    if (datum.home != nullptr && datum.current != nullptr && datum.current != datum.home &&
        its.at_start != nullptr && its.at_start == its.mine && !its.versions.empty()) {
      merge(datum, *datum.home, *datum.current, nullptr, site);
    }
  }
  pending.wait_for_all(what);
  const auto put = [](distributed::Slot& slot, Copy& copy) {
    copy.retain();
    slot.copy = &copy;
  };
  for (auto& [number, its] : loop.data()) {
    Datum& datum = *its.datum;
    if (its.mine != nullptr && datum.home != nullptr && !its.versions.empty()) {
      put(*its.mine, *datum.home);
    }
    if (its.at_start != nullptr && its.at_start->copy == nullptr) {
      Copy& has = own(datum);
      if (&has != datum.home || its.versions.empty()) {
        put(*its.at_start, has);
      } else {  // tasks here may write the program's memory, which is in another slot
        its.at_start->copy = &make_copy(datum);
        if (has.trouble == nullptr) its.at_start->copy->assign(has);
        its.at_start->copy->trouble = has.trouble;
      }
    }
    if (its.versions.empty()) continue;
    close_list(datum);
    drop_current(datum);
  }
  for (distributed::Slot& slot : loop.slots()) {
    if (slot.copy == nullptr) slot.copy = &make_copy(*slot.datum);
  }
  for (std::size_t rank = 0; rank < tickets_to_.size(); ++rank) {
    loop.transfers().to[rank].first = tickets_to_[rank];
    loop.transfers().from[rank].first = tickets_from_[rank];
  }
}

void DataSpace::run_loop(const Loop& loop) {
  struct Body {
    const Loop& loop;
    void operator()(const std::int64_t iteration) const {
      const auto period = static_cast<std::uint64_t>(loop.spec().period);
      const std::uint64_t offset = static_cast<std::uint64_t>(iteration) % period;
      for (const auto& step : loop.steps()) {
        if (step->offset == offset) distributed::create(*step, period);
      }
    }
  } body{loop};
  const std::exception_ptr error = detail::iterate(
      {loop.spec().count, loop.spec().period, loop.spec().where, "iterate()"},
      [](void* const argument, const std::int64_t iteration) {
        (*static_cast<const Body*>(argument))(iteration);
      },
      &body);
  if (error != nullptr) std::rethrow_exception(error);  // not of a step, which never throws
}

void DataSpace::end_loop(Loop& loop) {
  const auto periods =
      static_cast<std::uint32_t>((loop.spec().count + loop.spec().period - 1) / loop.spec().period);
  for (std::size_t rank = 0; rank < tickets_to_.size(); ++rank) {
    tickets_to_[rank] += periods * loop.transfers().to[rank].count;
    tickets_from_[rank] += periods * loop.transfers().from[rank].count;
  }
  const SpaceCounters counted = loop.counters();
  counters_.tasks += counted.tasks;
  counters_.versions_sent += counted.versions_sent;
  counters_.broadcasts += counted.broadcasts;
  counters_.broadcasts_full += counted.broadcasts_full;
  for (auto& [number, its] : loop.data()) {
    Datum& datum = *its.datum;
    datum.owner = its.end.place.owner;
    datum.leads.clear();
    if (its.versions.empty()) continue;
    datum.source = its.end.place.source;
    datum.writer = its.end.place.writer;
    datum.holders.clear();
    datum.recipients = 0;
    datum.lists = false;
    if (its.end.slot != nullptr) {
      datum.current = its.end.slot->copy;
      datum.current->retain();
    }
    if (datum.source != me_ || its.end.version == LoopDatum::none) continue;
    for (const auto& reader : its.versions[its.end.version].readers) {
      datum.holders.add(reader.rank);
      ++datum.recipients;
    }
  }
}

}  // namespace imbrex::detail
