// SPDX-License-Identifier: BSD-3-Clause
// What the entries of a period mean: sources, versions and readers, found on each rank by walks
// through the period. The first two begin with the records before the loop, and find those behind
// a period that follows another one; the third collects the versions of such a period and their
// readers; the last makes its steps.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "distributed/data/loop/data_loop.hpp"
#include "imbrex/detail/observation.hpp"

namespace imbrex::distributed {

using detail::DataAccess;
using detail::DataMode;

namespace {
void add_reader(std::vector<LoopReader>& readers, const LoopReader& reader) {
  if (std::ranges::find(readers, reader.rank, &LoopReader::rank) == readers.end()) {
    readers.push_back(reader);
  }
}
}  // namespace

void Loop::plan() {
  add_combinations();
  for (auto& [number, its] : data_) {
    its.now = its.before;
    its.now.reduction = nullptr;
    const Datum& datum = *its.datum;
    if (datum.reduction == nullptr) continue;
    if (its.joins()) {
      its.now.reduction = datum.reduction;
      its.now.reducers = datum.reducers;
    } else if (its.now.source < 0) {
      its.now.source = datum.reducers.front();  // the loop begins with its combination
    }
  }
  walk(Walk::first);
  check_owners();
  walk(Walk::settle);  // a value that the first period has created may have come from elsewhere
  walk(Walk::collect);
  close_period();
  const auto ranks = static_cast<std::size_t>(space_.ranks());
  transfers_.to.resize(ranks);
  transfers_.from.resize(ranks);
  walk(Walk::make);
}

bool Loop::may_end_in_first_period() const noexcept {
  return std::ranges::any_of(entries_, [this](const Entry& entry) {
    return entry.decides && entry.offset + 1 < spec_.period;
  });
}

// ---- combinations ----------------------------------------------------------------------------

// A reduction ends before the next access of another kind, perhaps in the next period, unless that
// drops its elements.
void Loop::add_combinations() {
  struct Place {
    std::size_t entry;
    const detail::DataReduction* reduction;  // null: another access
  };
  std::map<std::uint64_t, std::vector<Place>> places;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    for (const DataAccess& access : entries_[i].accesses) {
      places[access.datum->number].push_back({i, access.reduction});
    }
  }
  std::multimap<std::size_t, Entry> added;  // by the entry behind
  for (const auto& [number, all] : places) {
    LoopDatum& its = data_.at(number);
    const auto reduces = std::ranges::find_if(all, &Place::reduction);
    if (reduces == all.end()) continue;
    its.first_reduction = reduces->reduction;
    its.begins_with = all.front().reduction;
    const detail::DataReduction* before = all.back().reduction;
    for (const Place& place : all) {
      const Entry& next = entries_[place.entry];
      const detail::DataReduction* const open = std::exchange(before, place.reduction);
      if (open == nullptr || open == place.reduction || next.kind == EntryKind::discard) continue;
      Entry made{.kind = EntryKind::combine, .offset = next.offset, .priority = next.priority,
                 .name = next.name, .where = next.where,
                 .accesses = {{its.datum, DataMode::reduce, open}},
                 .insertion = nullptr};
      added.emplace(place.entry, std::move(made));
    }
  }
  if (added.empty()) return;
  std::vector<Entry> entries;
  auto next = added.begin();
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    for (; next != added.end() && next->first == i; ++next) {
      entries.push_back(std::move(next->second));
    }
    entries.push_back(std::move(entries_[i]));
  }
  entries_ = std::move(entries);
}

// ---- walks -----------------------------------------------------------------------------------

void Loop::walk(const Walk kind) {
  walk_ = kind;
  for (auto& [number, its] : data_) {
    its.now.changed = false;
    its.written = 0;
    if (kind == Walk::make) {
      begin_steps(its);
    } else {
      its.version = LoopDatum::none;
    }
  }
  const auto last = static_cast<std::uint32_t>((spec_.count - 1) % spec_.period);
  std::uint32_t offset = 0;
  bool decides = false;
  const auto end_iterations = [&](const std::uint32_t next) {
    for (; offset < next; ++offset) {
      if (std::exchange(decides, false) || offset == last) note_end(offset);
    }
  };
  for (Entry& entry : entries_) {
    end_iterations(entry.offset);
    decides = decides || entry.decides;
    pass(entry);
  }
  end_iterations(static_cast<std::uint32_t>(spec_.period));
}

void Loop::note_end(const std::uint32_t offset) {
  if (walk_ != Walk::first && walk_ != Walk::make) return;
  for (auto& [number, its] : data_) {
    LoopEndOfDatum& end = its.ends[offset];
    if (walk_ == Walk::first) {
      end.in_first_period = its.now;
    } else {
      end.place = its.now;
      end.slot = its.here;
      end.version = its.version;
    }
  }
}

void Loop::pass(Entry& entry) {
  LoopDatum* const datum = entry.kind == EntryKind::task ? nullptr : &of(entry.datum());
  switch (entry.kind) {
    case EntryKind::task:
      if (walk_ == Walk::collect) check_rank(entry);
      break;
    case EntryKind::combine: {
      const int source = datum->now.source;
      const std::vector<int>& reducers = datum->now.reducers;
      entry.adds = source >= 0;
      entry.rank = entry.adds ? source : reducers.empty() ? -1 : reducers.front();
      if (walk_ != Walk::first) break;
      entry.adds_first = entry.adds;
      entry.first_reducers = reducers;
      break;
    }
    case EntryKind::flush: entry.rank = datum->now.owner; break;
    case EntryKind::discard:
      if (walk_ == Walk::first) entry.first_reducers = datum->now.reducers;
      break;
    case EntryKind::move: break;
  }
  if (walk_ == Walk::make) make_steps(entry);
  switch (entry.kind) {
    case EntryKind::task: return pass_task(entry);
    case EntryKind::combine: return pass_combination(entry, *datum);
    case EntryKind::flush:
      read(*datum, entry);
      datum->now.flushed = true;
      return;
    case EntryKind::discard: {
      DatumPlace& now = datum->now;
      now = {.owner = datum->datum->temporary ? -1 : now.owner, .source = -1,
             .writer = now.writer, .changed = true, .flushed = false, .reduction = nullptr,
             .reducers = {}};
      datum->version = LoopDatum::none;
      datum->here = nullptr;
      datum->discarded = true;
      return;
    }
    case EntryKind::move: return pass_move(entry, *datum);
  }
}

void Loop::pass_task(const Entry& entry) {
  for (const DataAccess& access : entry.accesses) {
    if (access.mode == DataMode::in || access.mode == DataMode::inout) {
      read(of(*access.datum), entry);
    }
  }
  for (const DataAccess& access : entry.accesses) {
    LoopDatum& its = of(*access.datum);
    if (access.mode == DataMode::reduce) {
      its.now.reduction = access.reduction;
      if (its.now.owner < 0) its.now.owner = entry.rank;
      std::vector<int>& reducers = its.now.reducers;
      if (std::ranges::find(reducers, entry.rank) == reducers.end()) {
        reducers.push_back(entry.rank);
      }
    } else if (access.mode != DataMode::in) {
      write(its, entry);
    }
  }
  if (walk_ == Walk::make && entry.decides) make_decision(entry);
}

void Loop::pass_combination(const Entry& entry, LoopDatum& datum) {
  // Nobody has added before the first period.
  if (walk_ == Walk::first && datum.now.reducers.empty()) return;
  if (entry.adds) {
    read(datum, entry);
  } else if (entry.adds_first && walk_ == Walk::collect) {
    add_reader(datum.early_readers, {entry.rank, entry.priority});
  }
  datum.now.reduction = nullptr;
  datum.now.reducers.clear();
  write(datum, entry);
}

void Loop::pass_move(const Entry& entry, LoopDatum& datum) {
  datum.moved = true;
  if (datum.now.source >= 0 && datum.now.source != entry.rank) {
    read(datum, entry);
    write(datum, entry);
  }
  datum.now.owner = entry.rank;
}

void Loop::read(LoopDatum& datum, const Entry& entry) {
  if (walk_ != Walk::collect) return;
  if (datum.now.source < 0) {
    refuse(fmt::format("{} reads {}, which has no value in the second period: the body discards it",
                       text_of(entry), space_.text_of(*datum.datum)));
  }
  if (datum.version == LoopDatum::none) {
    return add_reader(datum.early_readers, {entry.rank, entry.priority});
  }
  LoopVersion& version = datum.versions[datum.version];
  if (entry.rank != version.rank) add_reader(version.readers, {entry.rank, entry.priority});
}

void Loop::write(LoopDatum& datum, const Entry& entry) {
  datum.now.source = entry.rank;
  if (datum.now.owner < 0) datum.now.owner = entry.rank;
  datum.now.writer = {entry.name, entry.where};
  datum.now.changed = true;
  datum.now.flushed = false;
  datum.version = datum.written++;
  if (walk_ == Walk::collect) datum.versions.push_back({entry.rank, {}, nullptr});
  if (walk_ == Walk::make) send_version(entry, datum);
}

// The early readers of a period read the last version of the period before.
void Loop::close_period() {
  for (auto& [number, its] : data_) {
    if (its.versions.empty() || its.now.source < 0) continue;
    LoopVersion& last = its.versions.back();
    for (const LoopReader& reader : its.early_readers) {
      if (reader.rank != last.rank) add_reader(last.readers, reader);
    }
  }
}

// ---- what cannot repeat ----------------------------------------------------------------------

std::string text_of_moved(const Datum& datum, const int owner, const int owner_before) {
  return fmt::format("move() leaves {} with the owner rank {} behind the period, which began with "
                     "the owner rank {}: the next period would run elsewhere. Move it back in the "
                     "body, or move it before or behind the loop",
                     datum.space.text_of(datum), owner, owner_before);
}

void Loop::check_owners() const {
  for (const auto& [number, its] : data_) {
    if (!its.moved || its.before.owner < 0 || its.now.owner == its.before.owner) continue;
    refuse(text_of_moved(*its.datum, its.now.owner, its.before.owner));
  }
}

// The owners may be others than in the first period, where a temporary is written by several ranks.
void Loop::check_rank(const Entry& entry) const {
  if (entry.on != detail::DataTaskSpec::by_owner) return;
  for (const DataAccess& access : entry.accesses) {
    if (access.mode == DataMode::in) continue;
    const int owner = data_.at(access.datum->number).now.owner;
    if (owner == entry.rank) return;
    if (owner < 0) continue;
    refuse(fmt::format("{} runs on rank {} in the first period, and later on rank {}, the owner of "
                       "{}: choose its rank by on()", text_of(entry), entry.rank, owner,
                       space_.text_of(*access.datum)));
  }
  refuse(fmt::format("{} runs on rank {} in the first period, and later writes no datum that has "
                     "an owner: choose its rank by on()", text_of(entry), entry.rank));
}

}  // namespace imbrex::distributed
