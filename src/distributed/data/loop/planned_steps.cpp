// SPDX-License-Identifier: BSD-3-Clause
// The steps of this rank, from the versions and readers that the walks of plan.cpp have found:
// tasks and the transfers of versions. Steps are made in the order of the program, as their
// accesses expect.
#include <algorithm>
#include <utility>

#include "distributed/data/loop/data_loop.hpp"

namespace imbrex::distributed {

using detail::AccessKind;
using detail::AccessSpec;
using detail::DataAccess;
using detail::DataMode;

namespace {
[[nodiscard]] bool has_reader(const std::vector<LoopReader>& readers, const int rank) noexcept {
  return std::ranges::find(readers, rank, &LoopReader::rank) != readers.end();
}
void add_spec(std::vector<AccessSpec>& specs, const Slot& slot, const AccessKind kind) {
  specs.emplace_back(&slot, kind);
}
// How often the iterations at one place of the period run.
[[nodiscard]] std::uint64_t instances(const std::uint32_t offset, const std::int64_t iterations,
                                      const std::int64_t period) noexcept {
  if (iterations <= offset) return 0;
  return static_cast<std::uint64_t>((iterations - offset + period - 1) / period);
}
}  // namespace

SpaceCounters Loop::counters() const noexcept {
  SpaceCounters all;
  for (const Counted& counted : counted_) {
    const std::uint64_t times = instances(counted.offset, iterations(), spec_.period);
    all.tasks += times * counted.counters.tasks;
    all.versions_sent += times * counted.counters.versions_sent;
    all.broadcasts += times * counted.counters.broadcasts;
    all.broadcasts_full += times * counted.counters.broadcasts_full;
  }
  return all;
}

// The period before has left the last version where it was written and where it is read.
void Loop::begin_steps(LoopDatum& datum) {
  const int me = space_.rank();
  const bool is_early = has_reader(datum.early_readers, me);
  datum.version = LoopDatum::none;
  datum.here = nullptr;
  if (datum.versions.empty()) {
    if (is_early) datum.here = &mine(datum);
  } else if (datum.now.source >= 0) {
    datum.version = datum.versions.size() - 1;
    LoopVersion& version = datum.versions.back();
    const bool is_home =
        datum.now.flushed && datum.now.owner == me && datum.datum->home != nullptr;
    if (version.rank == me || is_home) {
      datum.here = &mine(datum);
    } else if (has_reader(version.readers, me)) {
      version.received = &make_slot(*datum.datum);
      datum.here = version.received;
    }
  }
  if (is_early) datum.at_start = datum.here != nullptr ? datum.here : &mine(datum);
}

Slot& Loop::make_slot(Datum& datum) { return slots_.emplace_back(&datum, nullptr); }

Slot& Loop::mine(LoopDatum& datum) {
  if (datum.mine == nullptr) datum.mine = &make_slot(*datum.datum);
  return *datum.mine;
}

Slot& Loop::partial(LoopDatum& datum) {
  if (datum.partial == nullptr) datum.partial = &make_slot(*datum.datum);
  return *datum.partial;
}

// ---- tasks -----------------------------------------------------------------------------------

void Loop::make_steps(Entry& entry) {
  switch (entry.kind) {
    case EntryKind::task: return make_task(entry);
    case EntryKind::combine: return make_combination(entry, of(entry.datum()));
    case EntryKind::flush: return make_flush(entry, of(entry.datum()));
    case EntryKind::discard: return make_discard(entry, of(entry.datum()));
    case EntryKind::move: return make_move(entry, of(entry.datum()));
  }
}

void Loop::make_task(Entry& entry) {
  decision_ = nullptr;
  if (entry.decides && space_.ranks() > 1) decision_ = &make_slot(space_.decision());
  if (entry.rank != space_.rank()) return;
  std::vector<SlotUse> uses;
  std::vector<AccessSpec> specs;
  for (const DataAccess& access : entry.accesses) uses.push_back(use_of(access, specs));
  if (decision_ != nullptr) add_spec(specs, *decision_, AccessKind::out);
  auto step = std::make_unique<TaskStep>(*entry.insertion, entry.priority, entry.offset,
                                         std::move(uses));
  if (entry.decides) step->decide(end_, decision_);
  step->accesses = std::move(specs);
  (void)add(std::move(step));
  counted_.push_back({entry.offset, {.tasks = 1}});
}

SlotUse Loop::use_of(const DataAccess& access, std::vector<AccessSpec>& specs) {
  LoopDatum& datum = of(*access.datum);
  if (access.mode == DataMode::in) {
    if (std::ranges::find(specs, static_cast<const void*>(datum.here), &AccessSpec::address) ==
        specs.end()) {
      add_spec(specs, *datum.here, AccessKind::in);
    }
    return {.from = datum.here};
  }
  if (access.mode == DataMode::out) {
    add_spec(specs, mine(datum), AccessKind::out);
    return {.to = datum.mine};
  }
  if (access.mode == DataMode::reduce) {
    add_spec(specs, partial(datum), AccessKind::mutexinoutset);
    return {.to = datum.partial, .reduction = access.reduction};
  }
  if (datum.here == &mine(datum)) {
    add_spec(specs, *datum.mine, AccessKind::inout);
    return {.from = datum.mine, .to = datum.mine};
  }
  const bool takes = datum.datum->home == nullptr;
  add_spec(specs, *datum.here, takes ? AccessKind::inout : AccessKind::in);
  add_spec(specs, *datum.mine, AccessKind::out);
  return {.from = datum.here, .to = datum.mine, .takes = takes};
}

// ---- transfers -------------------------------------------------------------------------------

// The version that the entry leaves goes to all its readers.
void Loop::send_version(const Entry& entry, LoopDatum& datum) {
  const int me = space_.rank();
  LoopVersion& version = datum.versions[datum.version];
  datum.here = nullptr;
  if (entry.rank == me) {
    datum.here = &mine(datum);
    if (version.readers.empty()) return;
    (void)send(entry, *datum.here, version.readers);
    const std::uint64_t is_broadcast = version.readers.size() < 2 ? 0 : 1;
    counted_.push_back({entry.offset, {.versions_sent = 1, .broadcasts = is_broadcast,
                                       .broadcasts_full = is_broadcast}});
  } else if (has_reader(version.readers, me)) {
    if (version.received == nullptr) version.received = &make_slot(*datum.datum);
    receive(entry, entry.rank, *version.received);
    datum.here = version.received;
  }
}

SendStep& Loop::send(const Entry& entry, Slot& slot, const std::span<const LoopReader> readers) {
  std::vector<SendStep::To> to;
  for (const LoopReader& reader : readers) {
    PairTransfers::Pair& pair = transfers_.to[static_cast<std::size_t>(reader.rank)];
    to.push_back({reader.rank, pair.count++, reader.priority});
  }
  auto step = std::make_unique<SendStep>(entry.place(), slot, transfers_, std::move(to));
  SendStep& made = *step;
  (void)add(std::move(step));
  add_spec(made.accesses, slot, AccessKind::in);
  return made;
}

void Loop::receive(const Entry& entry, const int source, Slot& slot) {
  PairTransfers::Pair& pair = transfers_.from[static_cast<std::size_t>(source)];
  const Writer writer{entry.name, entry.where};
  LoopStep& step = add(std::make_unique<ReceiveStep>(
      entry.place(), slot, transfers_, ReceiveStep::From{source, pair.count++, writer}));
  add_spec(step.accesses, slot, AccessKind::out);
}

LoopStep& Loop::add(std::unique_ptr<LoopStep> step) {
  step->rounds = rounds_;
  return *steps_.emplace_back(std::move(step));
}

}  // namespace imbrex::distributed
