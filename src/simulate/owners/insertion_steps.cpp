// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/owners/insertion_steps.hpp"

#include <algorithm>
#include <utility>

namespace imbrex::simulate {

using detail::AccessKind;
using detail::DataMode;
using distributed::recorded::Operation;

Sequence::Sequence(const std::string& path, const int ranks, const std::uint32_t names)
    : stream_(path), names_(names), lists_(static_cast<std::size_t>(ranks)) {}

Sequence::~Sequence() {
  for (const StepList& list : lists_) {
    for (const Step& step : list.steps) {
      if (step.version != nullptr) step.version->release();
    }
  }
  for (Space& space : spaces_) std::ranges::for_each(space.data, &Sequence::forget_version);
}

StepList& Sequence::steps(const int rank) {
  StepList& list = lists_[static_cast<std::size_t>(rank)];
  while (list.steps.empty()) read();
  return list;
}

// ---- the file --------------------------------------------------------------------------------

void Sequence::read() {
  if (ended_) return add_to_all(Step::Kind::end, 0);
  const Operation operation = stream_.operation();
  switch (operation) {
    case Operation::end: ended_ = true; break;
    case Operation::space: read_space(); break;
    case Operation::datum: read_datum(); break;
    case Operation::name: stream_.skip(stream_.number()); break;
    case Operation::task: read_task(); break;
    case Operation::flush:
    case Operation::discard:
    case Operation::move: read_movement(operation); break;
    case Operation::finish:
    case Operation::close: add_to_all(Step::Kind::finish, read_number_of_space()); break;
    case Operation::operations: break;
  }
}

void Sequence::read_space() {
  if (spaces_.size() > UINT16_MAX) stream_.refuse("more than 65,536 spaces cannot be simulated");
  spaces_.emplace_back().window = stream_.number();
  spaces_.back().tickets.resize(lists_.size() * lists_.size());
}

std::uint16_t Sequence::read_number_of_space() {
  return static_cast<std::uint16_t>(stream_.number_below(spaces_.size(), "space"));
}
std::uint64_t Sequence::read_number_of_datum(const Space& space) {
  return stream_.number_below(space.data.size(), "datum");
}

void Sequence::read_datum() {
  Space& space = spaces_[read_number_of_space()];
  Datum& datum = space.data.emplace_back();
  datum.owner = static_cast<int>(stream_.number_below(lists_.size() + 1, "owner")) - 1;
  datum.source = datum.owner;
  datum.temporary = datum.owner < 0;
  datum.bytes = stream_.number_below(std::uint64_t{1} << 40, "datum of so many bytes:");
}

void Sequence::read_task() {
  const std::uint16_t space = read_number_of_space();
  const auto name = static_cast<std::uint32_t>(stream_.number_below(names_, "name"));
  const auto executor = static_cast<int>(stream_.number_below(lists_.size(), "rank"));
  const int priority = distributed::recorded::unfolded(stream_.number());
  accesses_.clear();
  for (std::uint64_t left = stream_.number(); left != 0; --left) {
    const std::uint64_t access = stream_.number();
    const auto mode = static_cast<DataMode>(access & 3);
    if (access >> 2 >= spaces_[space].data.size()) {
      stream_.refuse("a task names a datum that does not exist: the file is damaged");
    }
    accesses_.push_back({access >> 2, mode,
                         mode == DataMode::reduce ? static_cast<std::int64_t>(stream_.number())
                                                  : -1});
  }
  ++position_;
  insert(space, name, executor, priority);
}

void Sequence::read_movement(const Operation operation) {
  const std::uint16_t space = read_number_of_space();
  const std::uint64_t number = read_number_of_datum(spaces_[space]);
  Datum& datum = spaces_[space].data[number];
  const Place place{space, number, datum, 0};
  ++position_;
  if (operation == Operation::discard) {
    datum.copies.clear();
    datum.partials.clear();
    datum.reducers.clear();
    datum.reduction = -1;
    datum.source = -1;
    forget_version(datum);
    if (datum.temporary) datum.owner = -1;
    return;
  }
  if (datum.reduction >= 0) combine(place);
  if (operation == Operation::flush) return bring(place, datum.owner);
  move(place, static_cast<int>(stream_.number_below(lists_.size(), "rank")));
}

// ---- the steps -------------------------------------------------------------------------------

Step& Sequence::add(const int rank, const Step::Kind kind, const Place& place) {
  Step step{.kind = kind};
  step.space = place.space;
  step.position = position_;
  step.priority = place.priority;
  step.datum = place.number;
  return lists_[static_cast<std::size_t>(rank)].steps.emplace_back(step);
}

void Sequence::add_to_all(const Step::Kind kind, const std::uint16_t space) {
  Step step{.kind = kind};
  step.space = space;
  step.position = ++position_;
  for (StepList& list : lists_) list.steps.push_back(step);
}

void Sequence::add_access(const int rank, const std::uint64_t copy, const AccessKind kind) {
  StepList& list = lists_[static_cast<std::size_t>(rank)];
  list.accesses.push_back({copy, kind});
  ++list.steps.back().accesses;
}

// As begin(), insert_here() and insert_elsewhere() of space/insertion.cpp.
void Sequence::insert(const std::uint16_t space, const std::uint32_t name, const int executor,
                      const int priority) {
  std::vector<Datum>& data = spaces_[space].data;
  for (const Access& access : accesses_) {
    Datum& datum = data[access.datum];
    const Place place{space, access.datum, datum, priority};
    if (datum.reduction >= 0 && datum.reduction != access.reduction) combine(place);
    if (access.mode == DataMode::in || access.mode == DataMode::inout) bring(place, executor);
  }
  const AllLeads leads = looks_ahead_ ? leads_to(executor, spaces_[space]) : AllLeads();
  StepList& list = lists_[static_cast<std::size_t>(executor)];
  Step step{.kind = Step::Kind::task};
  step.space = space;
  step.position = position_;
  step.name = name;
  step.priority = priority;
  list.steps.push_back(step);
  for (std::size_t i = 0; i < accesses_.size(); ++i) {
    const Access& access = accesses_[i];
    Datum& datum = data[access.datum];
    if (access.mode == DataMode::reduce) {
      datum.reduction = access.reduction;
      if (datum.owner < 0) datum.owner = executor;
      if (std::ranges::find(datum.reducers, executor) == datum.reducers.end()) {
        datum.reducers.push_back(executor);
      }
      add_access(executor, hold(datum.partials, executor), AccessKind::mutexinoutset);
      continue;
    }
    const bool is_again = std::any_of(
        accesses_.begin(), accesses_.begin() + static_cast<std::ptrdiff_t>(i),
        [&](const Access& other) { return other.datum == access.datum; });
    if (is_again) continue;  // a datum may be read twice
    const std::uint64_t copy = hold(datum.copies, executor);
    add_access(executor, copy, access.mode == DataMode::in    ? AccessKind::in
                               : access.mode == DataMode::out ? AccessKind::out
                                                                : AccessKind::inout);
    if (access.mode == DataMode::in) continue;
    written(datum, executor);
    datum.leads = leads;
  }
}

// ---- copies ----------------------------------------------------------------------------------

std::uint64_t* Sequence::find(std::vector<Held>& copies, const int rank) noexcept {
  const auto found = std::ranges::find(copies, rank, &Held::rank);
  return found != copies.end() ? &found->copy : nullptr;
}

// The copy of `rank`, which may be new.
std::uint64_t Sequence::hold(std::vector<Held>& copies, const int rank) {
  if (const std::uint64_t* const copy = find(copies, rank)) return *copy;
  return copies.emplace_back(Held{rank, ++last_copy_}).copy;
}

std::uint32_t Sequence::take_ticket(const Place& place, const int from, const int to) {
  const auto row = static_cast<std::size_t>(from) * lists_.size();
  return spaces_[place.space].tickets[row + static_cast<std::size_t>(to)]++;
}

// `rank` needs the value: its source sends it, unless `rank` has it.
void Sequence::bring(const Place& place, const int rank) {
  Datum& datum = place.datum;
  if (find(datum.copies, rank) != nullptr) return;
  if (datum.source < 0) {
    stream_.refuse("a task reads a datum that no task has written: the file is damaged");
  }
  const std::uint64_t from = hold(datum.copies, datum.source);
  if (datum.source == rank) return;
  if (datum.version == nullptr) {
    raise(place, rank);
    datum.version = new Version;
  }
  ++datum.version->coming;
  datum.version->retain();
  const std::uint32_t ticket = take_ticket(place, datum.source, rank);
  Step& sent = add(datum.source, Step::Kind::send, place);
  sent.version = datum.version;
  sent.copy = from;
  sent.rank = rank;
  sent.ticket = ticket;
  Step& received = add(rank, Step::Kind::receive, place);
  received.copy = hold(datum.copies, rank);
  received.rank = datum.source;
  received.ticket = ticket;
}

// A new version, which only `rank` has.
void Sequence::written(Datum& datum, const int rank) {
  const std::uint64_t copy = hold(datum.copies, rank);
  datum.copies.assign(1, {rank, copy});
  datum.source = rank;
  if (datum.owner < 0) datum.owner = rank;
  forget_version(datum);
}

void Sequence::forget_version(Datum& datum) noexcept {
  datum.leads.clear();
  if (datum.version != nullptr) std::exchange(datum.version, nullptr)->release();
}

// ---- leads: as DataSpace::look_ahead() on each rank ------------------------------------------

// To a version that a task of `executor` writes, which has the accesses that are being read.
Sequence::AllLeads Sequence::leads_to(const int executor, const Space& space) const {
  AllLeads all;
  for (const Access& access : accesses_) {
    if (access.mode != DataMode::in && access.mode != DataMode::inout) continue;
    const Datum& datum = space.data[access.datum];
    if (datum.source != executor) {
      if (datum.version != nullptr) leads_from(all, datum.source).add(*datum.version, executor);
      continue;
    }
    for (const LeadsFrom& earlier : datum.leads) {
      if (earlier.leads.is_open()) leads_from(all, earlier.rank).add(earlier.leads);
    }
  }
  return all;
}

VersionLeads& Sequence::leads_from(AllLeads& all, const int rank) {
  const auto found = std::ranges::find(all, rank, &LeadsFrom::rank);
  return found != all.end() ? found->leads : all.emplace_back(LeadsFrom{rank, {}}).leads;
}

// `rank` gets the first copy of the version. In a run the other ranks raise their leads at each
// reader. Here the worth of all sends is equal, so that changes nothing: ranks learn degrees of
// urgency (`ga`) from messages of the program, and these programs have none.
void Sequence::raise(const Place& place, const int rank) {
  for (const LeadsFrom& its : place.datum.leads) {
    if (!its.leads.is_open()) continue;
    add(its.rank, Step::Kind::raise, place).rank = rank;
    lists_[static_cast<std::size_t>(its.rank)].leads.push_back(its.leads);
  }
}

void Sequence::move(const Place& place, const int owner) {
  place.datum.owner = owner;
  if (place.datum.source < 0 || place.datum.source == owner) return;
  bring(place, owner);
  written(place.datum, owner);
}

// ---- reductions: as space/reductions.cpp -----------------------------------------------------

void Sequence::combine(const Place& place) {
  Datum& datum = place.datum;
  const int root = datum.source >= 0 ? datum.source : datum.reducers.front();
  std::vector<int> members{root};
  for (const int rank : datum.reducers) {
    if (rank != root) members.push_back(rank);
  }
  // Senders first: the receiver's step names what the sender's has counted.
  for (std::size_t at = members.size(); at-- > 0;) combine_on(place, members, at);
  if (datum.source < 0) {
    datum.copies.assign(1, {root, hold(datum.partials, root)});
  }
  datum.partials.clear();
  datum.reducers.clear();
  datum.reduction = -1;
  written(datum, root);
}

void Sequence::combine_on(const Place& place, const std::vector<int>& members,
                          const std::size_t at) {
  Datum& datum = place.datum;
  const int rank = members[at];
  const std::uint64_t* const partial = find(datum.partials, rank);
  std::uint64_t into = partial != nullptr ? *partial : 0;
  if (at == 0 && datum.source >= 0) {
    into = hold(datum.copies, rank);
    if (partial != nullptr) merge(place, rank, into, *partial);
  }
  std::uint32_t ticket = 0;
  for (std::size_t step = 1; (at & step) == 0 && at + step < members.size(); step *= 2) {
    const int from = members[at + step];
    // One transfer between these ranks in this reduction: the sender has taken the ticket.
    ticket = spaces_[place.space]
                 .tickets[static_cast<std::size_t>(from) * lists_.size() +
                          static_cast<std::size_t>(rank)] - 1;
    Step& received = add(rank, Step::Kind::receive, place);
    received.copy = ++last_copy_;
    received.rank = from;
    received.ticket = ticket;
    merge(place, rank, into, received.copy);
  }
  if (at == 0) return;
  const int to = members[at & (at - 1)];
  ticket = take_ticket(place, rank, to);
  Step& sent = add(rank, Step::Kind::send_once, place);
  sent.copy = into;
  sent.rank = to;
  sent.ticket = ticket;
}

void Sequence::merge(const Place& place, const int rank, const std::uint64_t into,
                     const std::uint64_t from) {
  (void)add(rank, Step::Kind::merge, place);
  add_access(rank, from, AccessKind::in);
  add_access(rank, into, AccessKind::inout);
}

}  // namespace imbrex::simulate
