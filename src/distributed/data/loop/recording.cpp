// SPDX-License-Identifier: BSD-3-Clause
// What the body of Space::iterate() inserts becomes entries. Only those records of the data change
// that the checks of an insertion need, and end_recording() restores them.
#include <fmt/format.h>

#include <algorithm>
#include <new>
#include <utility>

#include "distributed/data/loop/data_loop.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/error.hpp"

namespace imbrex::distributed {

using detail::DataAccess;
using detail::DataMode;

void DeleteInsertion::operator()(Insertion* const insertion) const noexcept {
  if (insertion->trouble == nullptr) insertion->ops->drop(insertion->closure());
  ::operator delete(static_cast<void*>(insertion), std::align_val_t(alignof(Insertion)));
}

namespace {

[[nodiscard]] OwnedInsertion make_insertion(DataSpace& space, const detail::DataTaskSpec& spec,
                                            const std::size_t uses, const detail::BodyOps& ops,
                                            const std::size_t bytes) {
  void* const memory = ::operator new(Insertion::bytes_for(bytes, uses),
                                      std::align_val_t(alignof(Insertion)));
  return OwnedInsertion(
      &build_insertion(memory, bytes, space, spec, ops, std::vector<Use>(uses)));
}

// A value exists from here on; the plan finds its source.
void end_recorded_reduction(Datum& datum) noexcept {
  if (datum.reduction != nullptr && datum.source < 0) datum.source = datum.owner;
}

[[nodiscard]] bool same_accesses(const Entry& one, const Entry& other) {
  return std::ranges::equal(one.accesses, other.accesses, [](const auto& a, const auto& b) {
    return a.datum == b.datum && a.mode == b.mode && a.reduction == b.reduction;
  });
}

}  // namespace

Loop::~Loop() {
  for (Slot& slot : slots_) {
    if (slot.copy != nullptr) slot.copy->release();
  }
}

std::string Loop::text() const {
  return fmt::format("iterate() of space \"{}\" at {}", space_.name(),
                     detail::text_of(spec_.where));
}

std::string Loop::text_of(const Entry& entry) const {
  const std::string where = detail::in_parentheses(entry.where);
  switch (entry.kind) {
    case EntryKind::task: break;
    case EntryKind::combine: return fmt::format("a reduction before \"{}\"{}", entry.name, where);
    case EntryKind::flush:
    case EntryKind::discard:
    case EntryKind::move:
      return fmt::format("{}() of {}{}", entry.name, space_.text_of(entry.datum()), where);
  }
  return fmt::format("task \"{}\"{}", entry.name, where);
}

void Loop::refuse(const std::string& why) const {
  throw Error(fmt::format("imbrex: {}: {}", text(), why));
}

LoopDatum& Loop::of(Datum& datum) {
  LoopDatum& its = data_[datum.number];
  if (its.datum == nullptr) {
    its.datum = &datum;
    its.before.owner = datum.owner;
    its.before.source = datum.source;
    its.before.writer = datum.writer;
    its.before.reduction = datum.reduction;
  }
  return its;
}

void Loop::end_recording() noexcept {
  for (auto& [number, datum] : data_) {
    datum.datum->owner = datum.before.owner;
    datum.datum->source = datum.before.source;
    datum.datum->reduction = datum.before.reduction;
  }
}

// ---- entries ---------------------------------------------------------------------------------

void* Loop::add_task(const detail::DataTaskSpec& spec, const int rank,
                     const std::span<const DataAccess> accesses, const detail::BodyOps& ops,
                     const std::size_t bytes) {
  for (const DataAccess& access : accesses) {
    Datum& datum = *access.datum;
    (void)of(datum);
    if (datum.reduction != access.reduction) end_recorded_reduction(datum);
    datum.reduction = access.reduction;
    if (access.mode == DataMode::in) continue;
    if (datum.owner < 0) datum.owner = rank;
    if (access.mode != DataMode::reduce) datum.source = rank;
  }
  Entry entry{.decides = spec.decides, .offset = offset_, .rank = rank, .on = spec.on,
              .priority = spec.priority, .name = spec.name, .where = spec.where,
              .accesses = {accesses.begin(), accesses.end()}, .insertion = nullptr};
  void* closure = nullptr;
  if (rank == space_.rank()) {
    if (ops.repeat == nullptr) refuse(text_of(entry) + " has a body that cannot run again");
    entry.insertion = make_insertion(space_, spec, accesses.size(), ops, bytes);
    closure = entry.insertion->closure();
  }
  keep(std::move(entry));
  return closure;
}

void Loop::keep(Entry&& entry) {
  if (!comparing_) {
    entries_.push_back(std::move(entry));
    return;
  }
  compared_insertion_ = std::move(entry.insertion);
  compare(entry);
}

void Loop::add_movement(const EntryKind kind, Datum& datum, const int rank,
                        const std::source_location& where) {
  (void)of(datum);
  if (kind == EntryKind::discard) {
    datum.source = -1;
    if (datum.temporary) datum.owner = -1;
  } else {
    end_recorded_reduction(datum);
  }
  datum.reduction = nullptr;
  if (kind == EntryKind::move) {
    datum.owner = rank;
    if (datum.source >= 0) datum.source = rank;
  }
  const char* const name = kind == EntryKind::flush     ? "flush"
                           : kind == EntryKind::discard ? "discard"
                                                        : "move";
  keep({.kind = kind, .offset = offset_, .rank = rank, .name = name, .where = where,
        .accesses = {{&datum, DataMode::in}}, .insertion = nullptr});
}

void Loop::task_is_not_built(const std::exception_ptr error) {
  OwnedInsertion& insertion = comparing_ ? compared_insertion_ : entries_.back().insertion;
  insertion->trouble = &space_.failed(*insertion, error);
  if (comparing_) ++compared_;
}

// ---- the second period, with IMBREX_CHECK ----------------------------------------------------

void Loop::compare(const Entry& entry) {
  constexpr const char* hint = "Give what changes with the iteration to the task itself, by "
                               "launch([](std::int64_t i, ...) { ... }), or set .period";
  if (compared_ == entries_.size()) {
    refuse(fmt::format("IMBREX_CHECK: the body inserts more in the second period: {}. {}",
                       text_of(entry), hint));
  }
  const Entry& before = entries_[compared_];
  if (before.kind != entry.kind || before.decides != entry.decides ||
      std::string_view(before.name) != entry.name || before.rank != entry.rank ||
      before.on != entry.on || before.offset != entry.offset ||
      before.priority != entry.priority || !same_accesses(before, entry)) {
    refuse(fmt::format("IMBREX_CHECK: insertion {} of the first period is {}, and in the second it "
                       "is {}, with another name, datum, rank or priority. {}",
                       compared_ + 1, text_of(before), text_of(entry), hint));
  }
  if (compared_insertion_ == nullptr) ++compared_;
}

void Loop::task_is_built() {
  if (!comparing_) return;
  const OwnedInsertion again = std::move(compared_insertion_);
  const Entry& before = entries_[compared_++];
  const Insertion& first = *before.insertion;
  if (first.trouble != nullptr) return;
  const auto captured = [](const Insertion& it) {
    return it.ops->repeat->captured(const_cast<Insertion&>(it).closure());
  };
  if (std::ranges::equal(captured(first), captured(*again))) return;
  refuse(fmt::format("IMBREX_CHECK: {} has captured other values in the second period. Give what "
                     "changes with the iteration to the task itself, by "
                     "launch([](std::int64_t i, ...) {{ ... }}), or set .period",
                     text_of(before)));
}

void Loop::end_comparison() const {
  if (compared_ == entries_.size()) return;
  refuse(fmt::format("IMBREX_CHECK: the body inserts less in the second period: {} is missing",
                     text_of(entries_[compared_])));
}

}  // namespace imbrex::distributed
