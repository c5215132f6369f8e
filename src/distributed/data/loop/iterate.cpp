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
    const std::uint64_t round = static_cast<std::uint64_t>(detail::iteration()) / self.period;
    if (self.step->runs_in(round)) self.step->run(round);
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
       .accesses = step.accesses, .distinct = true, .decides = step.decides},
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
                          "inserts tasks, flushes, discards and moves. All else comes before or "
                          "after the loop",
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
  if (!loop_->is_comparing()) ++counters_.inserted;
  return loop_->add_task(spec, executor, accesses, ops, bytes);
}
void DataSpace::flush_in_loop(Datum& datum, const std::source_location& where) {
  loop_->add_movement(distributed::EntryKind::flush, datum, -1, where);
}
void DataSpace::discard_in_loop(Datum& datum, const std::source_location& where) {
  loop_->add_movement(distributed::EntryKind::discard, datum, -1, where);
}
void DataSpace::move_in_loop(Datum& datum, const int owner, const std::source_location& where) {
  loop_->add_movement(distributed::EntryKind::move, datum, owner, where);
}
void DataSpace::built_in_loop() { loop_->task_is_built(); }
void DataSpace::not_built_in_loop(const std::exception_ptr error) noexcept {
  loop_->task_is_not_built(error);
}

// A simulation sees the tasks of each iteration.
void DataSpace::insert_each(const IterateSpec& spec, void (*const body)(void*, std::int64_t),
                            void* const argument) {
  std::vector<int> owners;
  for (const Datum& datum : data_) owners.push_back(datum.owner);
  const std::int64_t period = std::min(spec.period, spec.count);
  inserts_each_ = true;
  try {
    for (std::int64_t i = 0; i < spec.count; ++i) {
      body(argument, i);
      if (i + 1 != period) continue;
      for (const Datum& datum : data_) {
        const int before = owners[datum.number];
        if (datum.temporary || datum.owner == before) continue;
        Loop(*this, {spec.count, period, spec.where})
            .refuse(distributed::text_of_moved(datum, datum.owner, before));
      }
    }
  } catch (...) {
    inserts_each_ = false;
    network_.recorder->abandon();  // a run inserts nothing of this loop
    throw;
  }
  inserts_each_ = false;
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
  if (checks_) [[unlikely]] {
    if (const std::exception_ptr error = end_if_different()) std::rethrow_exception(error);
  }
  if (loop.is_empty()) return;
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
    if (its.datum->reduction != nullptr && !its.joins()) combine(*its.datum, site);
  }
  pending.wait_for_all(what);
  for (auto& [number, its] : loop.data()) provide_for_loop(its, site);
  pending.wait_for_all(what);
  for (auto& [number, its] : loop.data()) {
    fill_slots(its);
    if (!its.changes() || loop.may_end_in_first_period()) continue;
    close_list(*its.datum);
    drop_current(*its.datum);
  }
  for (distributed::Slot& slot : loop.slots()) {
    if (slot.copy == nullptr) slot.copy = &make_copy(*slot.datum);
  }
  for (std::size_t rank = 0; rank < tickets_to_.size(); ++rank) {
    loop.transfers().to[rank].first = tickets_to_[rank];
    loop.transfers().from[rank].first = tickets_from_[rank];
  }
}

// The value before the loop reaches the ranks that use it in the first period.
void DataSpace::provide_for_loop(LoopDatum& its, const Site& site) {
  Datum& datum = *its.datum;
  if (datum.source < 0) return;
  for (const distributed::LoopReader& reader : its.early_readers) {
    provide(datum, reader.rank, site);
  }
  if (!its.changes()) {
    if (its.now.flushed) bring_home(datum, site);  // for the whole loop
    return;
  }
  if (datum.home != nullptr && datum.current != nullptr && datum.current != datum.home &&
      its.at_start != nullptr && its.at_start == its.mine) {
    merge(datum, *datum.home, *datum.current, nullptr, site);
  }
}

// The slots that the first period reads.
void DataSpace::fill_slots(LoopDatum& its) {
  const auto put = [](distributed::Slot& slot, Copy& copy) {
    copy.retain();
    slot.copy = &copy;
  };
  Datum& datum = *its.datum;
  if (its.joins() && its.partial != nullptr && datum.partial != nullptr) {
    put(*its.partial, *datum.partial);
  }
  if (its.mine != nullptr && datum.home != nullptr && its.changes()) put(*its.mine, *datum.home);
  if (its.at_start == nullptr) return;
  if (datum.source < 0) {
    if (its.at_start->copy == nullptr) its.at_start->copy = &make_copy(datum);
    return its.clear_start();
  }
  if (its.at_start->copy != nullptr) return;
  Copy& has = own(datum);
  if (&has != datum.home || !its.changes()) return put(*its.at_start, has);
  // Tasks here may write the program's memory, which is in another slot.
  its.at_start->copy = &make_copy(datum);
  if (has.trouble == nullptr) its.at_start->copy->assign(has);
  its.at_start->copy->trouble = has.trouble;
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
  const std::int64_t iterations = loop.iterations(), period = loop.spec().period;
  const auto periods = static_cast<std::uint32_t>((iterations + period - 1) / period);
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
    its.datum->leads.clear();
    const auto& end = its.ends.at(static_cast<std::uint32_t>((iterations - 1) % period));
    const bool in_first = iterations < period;
    const distributed::DatumPlace& place = in_first ? end.in_first_period : end.place;
    its.datum->owner = place.owner;
    leave_reduction(its, place);
    if (in_first ? place.changed : its.changes()) {
      leave_value(its, end);
    } else if (in_first && place.flushed && its.datum->home != nullptr && place.owner == me_) {
      put_current(*its.datum, *its.datum->home);
    }
  }
}

void DataSpace::put_current(Datum& datum, Copy& copy) noexcept {
  copy.retain();
  drop_current(datum);
  datum.current = &copy;
}

// A reduction that has not ended in the loop stays open behind it.
void DataSpace::leave_reduction(LoopDatum& its, const distributed::DatumPlace& place) {
  Datum& datum = *its.datum;
  datum.reduction = place.reduction;
  datum.reducers = place.reducers;
  if (its.partial == nullptr) return;
  if (datum.partial != nullptr) std::exchange(datum.partial, nullptr)->release();
  if (std::ranges::find(place.reducers, me_) == place.reducers.end()) return;
  datum.partial = its.partial->copy;
  datum.partial->retain();
}

void DataSpace::leave_value(LoopDatum& its, const distributed::LoopEndOfDatum& end) {
  Datum& datum = *its.datum;
  close_list(datum);
  drop_current(datum);
  datum.source = end.place.source;
  datum.writer = end.place.writer;
  datum.holders.clear();
  datum.recipients = 0;
  datum.lists = false;
  if (datum.source < 0) return;
  if (end.slot != nullptr) put_current(datum, *end.slot->copy);
  if (datum.source != me_ || end.version == LoopDatum::none) return;
  for (const distributed::LoopReader& reader : its.versions[end.version].readers) {
    datum.holders.add(reader.rank);
    ++datum.recipients;
  }
}

}  // namespace imbrex::detail
