// SPDX-License-Identifier: BSD-3-Clause
// The steps of this rank, from the versions and readers that plan.cpp has found: a third walk
// through the period. Steps are made in the order of the program, as their accesses expect.
#include <algorithm>
#include <utility>

#include "distributed/data/loop/data_loop.hpp"

namespace imbrex::distributed {

using detail::AccessKind;
using detail::AccessSpec;
using detail::DataAccess;
using detail::DataMode;

namespace {
[[nodiscard]] StepPlace place_of(const Entry& entry) noexcept {
  return {entry.where, entry.priority, entry.offset};
}
[[nodiscard]] bool has_reader(const LoopVersion& version, const int rank) noexcept {
  return std::ranges::find(version.readers, rank, &LoopVersion::Reader::rank) !=
         version.readers.end();
}
void add_spec(std::vector<AccessSpec>& specs, const Slot& slot, const AccessKind kind) {
  specs.emplace_back(&slot, kind);
}
}  // namespace

void Loop::make_steps() {
  const auto ranks = static_cast<std::size_t>(space_.ranks());
  transfers_.to.resize(ranks);
  transfers_.from.resize(ranks);
  for (auto& [number, datum] : data_) begin_steps(datum);
  const auto last = static_cast<std::uint32_t>((spec_.count - 1) % spec_.period);
  const auto end = [this] {
    for (auto& [number, datum] : data_) {
      datum.end = {datum.now, datum.here, datum.version};
    }
  };
  bool ended = false;
  for (Entry& entry : entries_) {
    if (!ended && entry.offset > last) {
      end();
      ended = true;
    }
    steps_of(entry);
  }
  if (!ended) end();
}

// The period before has left the last version where it was written and where it is read.
void Loop::begin_steps(LoopDatum& datum) {
  datum.written = 0;
  const int me = space_.rank();
  const bool is_early = std::ranges::find(datum.early_readers, me) != datum.early_readers.end();
  if (datum.version == LoopDatum::none) {
    if (is_early) datum.here = &mine(datum);
  } else if (LoopVersion& version = datum.versions[datum.version]; version.rank == me) {
    datum.here = &mine(datum);
  } else if (has_reader(version, me)) {
    version.received = &make_slot(datum);
    datum.here = version.received;
  }
  datum.at_start = is_early ? datum.here : nullptr;
}

Slot& Loop::make_slot(const LoopDatum& datum) { return slots_.emplace_back(datum.datum, nullptr); }

Slot& Loop::mine(LoopDatum& datum) {
  if (datum.mine == nullptr) datum.mine = &make_slot(datum);
  return *datum.mine;
}

// How often a step of that iteration of the period runs.
std::uint64_t Loop::instances(const std::uint32_t offset) const noexcept {
  return static_cast<std::uint64_t>((spec_.count - offset + spec_.period - 1) / spec_.period);
}

// ---- tasks -----------------------------------------------------------------------------------

void Loop::steps_of(Entry& entry) {
  if (entry.rank == space_.rank()) {
    std::vector<SlotUse> uses;
    std::vector<AccessSpec> specs;
    for (const DataAccess& access : entry.accesses) uses.push_back(use_of(access, specs));
    steps_.push_back(std::make_unique<TaskStep>(*entry.insertion, entry.priority, entry.offset,
                                                std::move(uses)));
    steps_.back()->accesses = std::move(specs);
    counters_.tasks += instances(entry.offset);
  }
  for (const DataAccess& access : entry.accesses) {
    if (access.mode != DataMode::in) written(entry, of(*access.datum));
  }
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
  if (datum.here == &mine(datum)) {
    add_spec(specs, *datum.mine, AccessKind::inout);
    return {.from = datum.mine, .to = datum.mine};
  }
  const bool takes = datum.datum->home == nullptr;
  add_spec(specs, *datum.here, takes ? AccessKind::inout : AccessKind::in);
  add_spec(specs, *datum.mine, AccessKind::out);
  return {.from = datum.here, .to = datum.mine, .takes = takes};
}

// The version that the entry leaves goes to all its readers.
void Loop::written(const Entry& entry, LoopDatum& datum) {
  write(datum, entry);
  const int me = space_.rank();
  LoopVersion& version = datum.versions[datum.version];
  datum.here = nullptr;
  if (entry.rank == me) {
    datum.here = &mine(datum);
    if (version.readers.empty()) return;
    send(entry, *datum.here, version.readers);
    const std::uint64_t times = instances(entry.offset);
    counters_.versions_sent += times;
    if (version.readers.size() < 2) return;
    counters_.broadcasts += times;
    counters_.broadcasts_full += times;
  } else if (has_reader(version, me)) {
    if (version.received == nullptr) version.received = &make_slot(datum);
    receive(entry, *version.received);
    datum.here = version.received;
  }
}

// ---- transfers -------------------------------------------------------------------------------

void Loop::send(const Entry& entry, Slot& slot,
                const std::span<const LoopVersion::Reader> readers) {
  std::vector<SendStep::To> to;
  for (const LoopVersion::Reader& reader : readers) {
    PairTransfers::Pair& pair = transfers_.to[static_cast<std::size_t>(reader.rank)];
    to.push_back({reader.rank, pair.count++, reader.priority});
  }
  steps_.push_back(
      std::make_unique<SendStep>(place_of(entry), slot, transfers_, std::move(to)));
  add_spec(steps_.back()->accesses, slot, AccessKind::in);
}

void Loop::receive(const Entry& entry, Slot& slot) {
  PairTransfers::Pair& pair = transfers_.from[static_cast<std::size_t>(entry.rank)];
  const Writer writer{entry.name, entry.where};
  steps_.push_back(std::make_unique<ReceiveStep>(
      place_of(entry), slot, transfers_, ReceiveStep::From{entry.rank, pair.count++, writer}));
  add_spec(steps_.back()->accesses, slot, AccessKind::out);
}

}  // namespace imbrex::distributed
