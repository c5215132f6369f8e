// SPDX-License-Identifier: BSD-3-Clause
// The effect of an insertion on the records of its data, and the task that runs here because of it.
#include <fmt/format.h>

#include "distributed/data/space/bodies.hpp"
#include "distributed/data/space/space.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/error.hpp"

namespace imbrex::detail {

using distributed::Copy;
using distributed::Site;

// ---- who runs it, and whether it may -----------------------------------------------------------

int DataSpace::executor_of(const int on, const std::span<const DataAccess> accesses)
    const noexcept {
  if (on != DataTaskSpec::by_owner) return on;
  for (const DataAccess& access : accesses) {
    if (access.mode != DataMode::in && access.datum->owner >= 0) return access.datum->owner;
  }
  return -1;
}

bool DataSpace::concerns(const int on, const std::span<const DataAccess> accesses) {
  if (network_.recorder != nullptr) [[unlikely]] return true;  // for some rank it counts
  if (loop_ != nullptr) [[unlikely]] return true;  // all ranks plan all of a loop
  const int executor = executor_of(on, accesses);
  if (executor == me_ || executor < 0) return true;  // below 0: insert() reports the error
  for (const DataAccess& access : accesses) {
    const Datum& datum = *access.datum;
    // Steps that create a value concern all ranks: otherwise this rank would not know that it
    // exists.
    if (access.mode == DataMode::reduce || datum.reduction != nullptr || datum.source < 0) {
      return true;
    }
    if (datum.source == me_ && (access.mode != DataMode::in || !datum.holders.has(executor))) {
      return true;
    }
    if (access.mode != DataMode::in && datum.current != nullptr) return true;
    // After a reduction the value may be on another rank than its owner: all ranks must know that
    // it moves.
    if (access.mode != DataMode::in && datum.source != executor) return true;
  }
  trimmed_ = true;
  return false;
}

void DataSpace::refuse(const DataTaskSpec& spec, const std::string& why) const {
  throw Error(fmt::format("imbrex: task \"{}\"{} of space \"{}\" {}", spec.name,
                          detail::in_parentheses(spec.where), options_.name, why));
}

int DataSpace::check(const DataTaskSpec& spec, const std::span<const DataAccess> accesses) {
  ++inserted_;
  for (const DataAccess& access : accesses) {
    Datum& datum = *access.datum;
    if (&datum.space != this) [[unlikely]] {
      refuse(spec, fmt::format("names {}, which belongs to another space",
                               datum.space.text_of(datum)));
    }
    const bool writes = access.mode != DataMode::in;
    if (datum.seen == inserted_ && (writes || datum.seen_written)) [[unlikely]] {
      refuse(spec, fmt::format("names {} twice and writes it: name each datum once",
                               text_of(datum)));
    }
    datum.seen = inserted_;
    datum.seen_written = writes;
    if (datum.source < 0 && datum.reduction == nullptr &&
        (access.mode == DataMode::in || access.mode == DataMode::inout)) [[unlikely]] {
      refuse(spec, fmt::format("reads {}, which no task has written{}", text_of(datum),
                               datum.temporary ? "" : " since it was discarded"));
    }
  }
  const int executor = executor_of(spec.on, accesses);
  if (executor >= ranks() || (executor < 0 && spec.on != DataTaskSpec::by_owner)) [[unlikely]] {
    refuse(spec, fmt::format("is to run on rank {}, but the space has {} ranks", spec.on, ranks()));
  }
  if (executor < 0) [[unlikely]] {
    refuse(spec, "writes no datum that has an owner: choose its rank by on()");
  }
  return executor;
}

void* DataSpace::begin(const DataTaskSpec& spec, const std::span<const DataAccess> accesses,
                       const BodyOps& ops, const std::size_t bytes) {
  if (spec.decides) [[unlikely]] check_iterates("decides()");
  const int executor = check(spec, accesses);
  if (network_.recorder != nullptr) [[unlikely]] {
    record(spec, executor, accesses);
    return nullptr;
  }
  if (loop_ != nullptr) [[unlikely]] {
    return insert_in_loop(spec, executor, accesses, ops, bytes);
  }
  const Site site{spec.name, spec.where, spec.priority};
  for (const DataAccess& access : accesses) {
    Datum& datum = *access.datum;
    if (datum.reduction != nullptr && datum.reduction != access.reduction) [[unlikely]] {
      combine(datum, site);
    }
  }
  if (checks_) [[unlikely]] note(spec, accesses);
  ++counters_.inserted;
  if (executor != me_) {
    insert_elsewhere(executor, site, accesses);
    return nullptr;
  }
  wait_for_room();
  ++counters_.tasks;
  insert_here(site, accesses);
  pending.begin(distributed::Pending::task);
  void* const memory =
      create_with_accesses({spec.name, spec.where, spec.priority, false, specs_, true},
                           distributed::Insertion::run_ops,
                           distributed::Insertion::bytes_for(bytes, uses_.size()));
  return distributed::build_insertion(memory, bytes, *this, spec, ops, uses_).closure();
}

void DataSpace::wait_for_room() {
  if (window_ == 0 || pending.tasks() < window_) [[likely]] return;
  pending.wait_for_room(window_ - 1 - window_ / 4,
                        "insert() into a space of data, whose window is full");
}

// ---- for a simulation ------------------------------------------------------------------------

// Keeps only those records of the data that check() needs: no version of them ever exists.
void DataSpace::record(const DataTaskSpec& spec, const int executor,
                       const std::span<const DataAccess> accesses) {
  if (!network_.recorder->first_viewed().empty()) {
    network_.recorder->abandon();
    refuse(spec, fmt::format("is inserted after view() of {}. A simulation runs no task, so this "
                             "value does not exist, and the program may insert other tasks because "
                             "of it: only programs whose insertions do not depend on values can be "
                             "simulated", network_.recorder->first_viewed()));
  }
  ++counters_.inserted;
  std::vector<distributed::Recorder::Access> all;
  for (const DataAccess& access : accesses) {
    Datum& datum = *access.datum;
    all.push_back({datum.number, access.mode, access.reduction});
    if (datum.reduction != nullptr && datum.reduction != access.reduction) end_reduction(datum);
    if (access.mode == DataMode::reduce) {
      join_reduction(datum, *access.reduction, executor);
    } else if (access.mode != DataMode::in) {
      written(datum, executor, {spec.name, spec.where, 0});
    }
  }
  network_.recorder->task(recorded_, {spec.name, executor, spec.priority}, all);
}

void DataSpace::record(const distributed::recorded::Operation operation, Datum& datum,
                       const int owner) {
  if (datum.reduction != nullptr) end_reduction(datum);
  network_.recorder->movement(operation, recorded_, datum.number, owner);
}

void DataSpace::end_reduction(Datum& datum) {
  if (datum.source < 0) datum.source = datum.reducers.front();
  datum.writer.task = "a reduction";
  datum.reduction = nullptr;
  datum.reducers.clear();
}

// ---- elsewhere -------------------------------------------------------------------------------

void DataSpace::insert_elsewhere(const int executor, const Site& site,
                                 const std::span<const DataAccess> accesses) {
  for (const DataAccess& access : accesses) {
    Datum& datum = *access.datum;
    if (access.mode == DataMode::reduce) [[unlikely]] {
      join_reduction(datum, *access.reduction, executor);
    } else if (access.mode != DataMode::out && datum.source == me_ &&
               !datum.holders.has(executor)) {
      send(datum, executor, site);
    }
  }
  distributed::VersionLeads leads;
  if (looks_ahead_) look_ahead(executor, accesses, leads);
  for (const DataAccess& access : accesses) {
    if (access.mode != DataMode::out && access.mode != DataMode::inout) continue;
    written(*access.datum, executor, site);
    if (looks_ahead_) access.datum->leads = leads;
  }
}

void DataSpace::look_ahead(const int executor, const std::span<const DataAccess> accesses,
                           distributed::VersionLeads& leads) {
  for (const DataAccess& access : accesses) {
    if (access.mode != DataMode::in && access.mode != DataMode::inout) continue;
    Datum& datum = *access.datum;
    if (datum.source == executor) {
      leads.add(datum.leads);
    } else if (datum.source != me_) {
      datum.leads.raise(world(executor), worth_of_sending_to);
    } else if (datum.sending != nullptr) {
      leads.add(*datum.sending, world(executor));
    }
  }
}

void DataSpace::written(Datum& datum, const int rank, const Site& site) {
  datum.source = rank;
  datum.leads.clear();
  if (datum.owner < 0) datum.owner = rank;
  datum.writer = {site.task, site.where};
  if (datum.sending != nullptr) close_list(datum);
  if (rank == me_) {
    datum.holders.clear();
    datum.recipients = 0;
    datum.lists = false;
  } else if (datum.current != nullptr) {
    drop_current(datum);
  }
}

void DataSpace::send(Datum& datum, const int rank, const Site& site) {
  const distributed::Recipient to = recipient(rank, site);
  datum.holders.add(rank);
  ++datum.recipients;
  if (datum.recipients == 1) ++counters_.versions_sent;
  if (datum.recipients == 2) ++counters_.broadcasts;
  if (datum.sending != nullptr) {
    if (datum.sending->add(to)) {
      if (datum.recipients == 2) ++counters_.broadcasts_full;
      return;
    }
    if (datum.recipients > 2 && !datum.lists) --counters_.broadcasts_full;
    datum.lists = true;
    close_list(datum);
  }
  Copy& copy = own(datum);
  datum.sending = new distributed::VersionSend(datum, copy, {to});
  start(*datum.sending, copy, site);
}

void DataSpace::send_once(Datum& datum, Copy& copy, const int rank, const Site& site) {
  auto& sending = *new distributed::VersionSend(datum, copy, {recipient(rank, site)});
  start(sending, copy, site);
  sending.release();
}

distributed::Recipient DataSpace::recipient(const int rank, const Site& site) {
  return recipient(rank, tickets_to_[static_cast<std::size_t>(rank)]++, site.priority);
}
distributed::Recipient DataSpace::recipient(const int rank, const std::uint32_t ticket,
                                            const int priority) const {
  const int urgency = looks_ahead_ ? worth_of_sending_to(world(rank)).of_rank : 0;
  return {world(rank), ticket, priority, urgency};
}

void DataSpace::start(distributed::VersionSend& sending, Copy& copy, const Site& site) {
  pending.begin(distributed::Pending::step);
  specs_.clear();
  add_arrival(copy);
  add_spec(copy, AccessKind::in);
  step("send of data", site,
       [](void* const argument) noexcept {
         static_cast<distributed::VersionSend*>(argument)->send();
       },
       &sending);
}

// ---- here ------------------------------------------------------------------------------------

void DataSpace::insert_here(const Site& site, const std::span<const DataAccess> accesses) {
  specs_.clear();
  uses_.clear();
  for (const DataAccess& access : accesses) {
    if (access.mode == DataMode::in || access.mode == DataMode::inout) {
      (void)bring(*access.datum);
    }
  }
  if (looks_ahead_) {
    distributed::VersionLeads none;
    look_ahead(me_, accesses, none);
  }
  for (const DataAccess& access : accesses) {
    add_use(access);
    if (access.mode != DataMode::in && access.mode != DataMode::reduce) {
      written(*access.datum, me_, site);
    }
  }
}

void DataSpace::add_use(const DataAccess& access) {
  Datum& datum = *access.datum;
  Copy* from = nullptr;
  Copy* to = nullptr;
  switch (access.mode) {
    case DataMode::in:
      from = datum.current;
      if (datum.taken != inserted_) {
        add_arrival(*from);
        add_spec(*from, AccessKind::in);
        datum.taken = inserted_;
      }
      break;
    case DataMode::out:
      to = &target(datum);
      add_arrival(*to);
      add_spec(*to, AccessKind::out);
      break;
    case DataMode::inout:
      from = datum.current;
      add_arrival(*from);
      from->retain();  // target() may release it
      to = &target(datum);
      if (from != to) add_spec(*from, AccessKind::in);
      add_spec(*to, from != to ? AccessKind::out : AccessKind::inout);
      break;
    case DataMode::reduce:
      join_reduction(datum, *access.reduction, me_);
      if (datum.partial == nullptr) datum.partial = &make_copy(datum);
      to = datum.partial;
      add_spec(*to, AccessKind::mutexinoutset);
      break;
  }
  if (from != nullptr && access.mode == DataMode::in) from->retain();
  if (to != nullptr) to->retain();
  uses_.push_back({from, to, access.mode == DataMode::reduce ? access.reduction : nullptr,
                   &datum});
}

Copy& DataSpace::target(Datum& datum) {
  if (datum.home != nullptr && datum.current != datum.home) {
    drop_current(datum);
    datum.home->retain();
    datum.current = datum.home;
  }
  if (datum.current == nullptr) datum.current = &make_copy(datum);
  return *datum.current;
}

void DataSpace::add_spec(Copy& copy, const AccessKind kind) { specs_.emplace_back(&copy, kind); }

void DataSpace::add_arrival(Copy& copy) {
  if (copy.arrival == nullptr) return;
  if (copy.arrival->event.has_fired()) {
    detail::release(*copy.arrival);
    copy.arrival = nullptr;
    return;
  }
  specs_.emplace_back(copy.arrival, AccessKind::after);
}

}  // namespace imbrex::detail
