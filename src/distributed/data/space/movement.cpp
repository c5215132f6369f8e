// SPDX-License-Identifier: BSD-3-Clause
// How values move between ranks: received copies, sent versions, and the steps that a program
// inserts only for movement.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "distributed/carrier/errors.hpp"
#include "distributed/data/copies/departures.hpp"
#include "distributed/data/space/space.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/error.hpp"

namespace imbrex::distributed {
namespace {

// Stands for a version that a message will bring.
struct Coming : detail::RemoteState {
  Coming(Datum& its_datum, Copy& its_copy, const int its_source, const std::uint32_t its_ticket,
         const Writer& its_writer)
      : datum(its_datum), copy(its_copy), source(its_source), ticket(its_ticket),
        writer(its_writer) {
    references.store(2, std::memory_order_relaxed);  // one of the copy, one of the transfer
    failure = nullptr;
    kind = detail::CompletionKind::remote;
    plain = true;
    destroy = [](detail::PromiseState& state) noexcept { delete static_cast<Coming*>(&state); };
    name = "data from another rank";
    describe = [](const detail::RemoteState& state, std::string& text) {
      static_cast<const Coming&>(state).append_to(text);
    };
    (void)detail::take(*this);
  }
  void append_to(std::string& text) const {
    text += fmt::format("{}, from rank {}", datum.space.text_of(datum), source);
    if (writer.task != nullptr) {
      text += fmt::format(", in the version that task \"{}\"{} writes", writer.task,
                          detail::in_parentheses(writer.where));
    }
  }

  Datum& datum;
  Copy& copy;  // a reference, until it is passed on
  const int source;
  const std::uint32_t ticket;
  const Writer writer;
};

void arrived(void* const context, Buffer* const buffer, const std::exception_ptr error) noexcept {
  auto& arrival = *static_cast<Coming*>(context);
  DataSpace& space = arrival.datum.space;
  if (buffer != nullptr) {
    const std::size_t bytes = arrival.copy.bytes();
    space.received(bytes);
    if (detail::tracing()) [[unlikely]] {
      const int root = space.world(arrival.source);
      detail::trace_copy({.sent = false, .peer = root, .root = root, .ticket = arrival.ticket,
                          .bytes = bytes,
                          .datum = trace_key({space.id(), arrival.datum.number})});
    }
    arrival.copy.arrive(buffer);
  } else {
    arrival.copy.trouble = &space.keep(detail::thrown_text(error));
  }
  detail::complete(arrival);
}

void passed_on(void* const context) noexcept {
  auto& arrival = *static_cast<Coming*>(context);
  DataSpace& space = arrival.datum.space;
  arrival.copy.passed_on();
  arrival.copy.release();
  detail::release(arrival);
  space.pending.end(Pending::step);
}

// Both have the shape of the datum, except for gaps.
void combine_elements(const detail::DataReduction& reduction, const DataMemory& to,
                      const DataMemory& from) {
  const DataShape& shape = from.shape;
  for (std::size_t column = 0; column < shape.columns; ++column) {
    reduction.combine(
        static_cast<std::byte*>(to.memory) + column * to.shape.leading * shape.element_bytes,
        static_cast<std::byte*>(from.memory) + column * shape.leading * shape.element_bytes,
        shape.rows);
  }
}

}  // namespace

void merge_values(Datum& datum, Copy& to, Copy& from,
                  const detail::DataReduction* const reduction) noexcept {
  DataSpace& space = datum.space;
  const Trouble* trouble = from.trouble;
  if (trouble == nullptr && reduction != nullptr) trouble = to.trouble;
  if (trouble != nullptr) {
    space.not_run(*trouble);
  } else {
    try {
      if (reduction != nullptr) {
        combine_elements(*reduction, to.writable(true), from.readable());
      } else {
        to.assign(from);
      }
    } catch (...) {
      trouble = &space.keep(fmt::format("imbrex: the copy of {} on rank {} has failed: {}",
                                        space.text_of(datum), space.rank(),
                                        detail::thrown_text(std::current_exception())));
      space.not_run(*trouble);
    }
  }
  to.trouble = trouble;
}

}  // namespace imbrex::distributed

namespace imbrex::detail {

using distributed::Copy;
using distributed::Site;

// ---- copies ----------------------------------------------------------------------------------

Copy& DataSpace::make_copy(const Datum& datum) {
  return *new Copy(copy_bytes, datum.shape, nullptr);
}

Copy& DataSpace::own(Datum& datum) {
  if (datum.current == nullptr) datum.current = &make_copy(datum);
  return *datum.current;
}

Copy& DataSpace::bring(Datum& datum) {
  if (datum.current != nullptr) return *datum.current;
  if (datum.source == me_) return own(datum);
  datum.current = &receive(datum, datum.source);
  return *datum.current;
}

Copy& DataSpace::receive(Datum& datum, const int source) {
  Copy& copy = make_copy(datum);
  begin_arrival(datum, copy, source, tickets_from_[static_cast<std::size_t>(source)]++,
                datum.writer);
  return copy;
}

void DataSpace::begin_arrival(Datum& datum, Copy& copy, const int source,
                              const std::uint32_t ticket, const distributed::Writer& writer) {
  auto* const arrival = new distributed::Coming(datum, copy, source, ticket, writer);
  copy.retain();
  copy.arrival = arrival;
  pending.begin(distributed::Pending::step);
  broadcasts().expect({id(), datum.number}, world(source),
                      ticket, copy.bytes(), {distributed::arrived, distributed::passed_on,
                                             arrival});
}

void DataSpace::drop_current(Datum& datum) noexcept {
  if (datum.current != nullptr) std::exchange(datum.current, nullptr)->release();
}

void DataSpace::close_list(Datum& datum) noexcept {
  if (datum.sending != nullptr) std::exchange(datum.sending, nullptr)->release();
}

void DataSpace::provide(Datum& datum, const int rank, const Site& site) {
  if (looks_ahead_ && rank != datum.source) datum.leads.raise(world(rank), worth_of_sending_to);
  if (rank == me_) {
    (void)bring(datum);
  } else if (datum.source == me_ && !datum.holders.has(rank)) {
    send(datum, rank, site);
  }
}

// ---- steps -----------------------------------------------------------------------------------

namespace {
struct Step {
  void (*call)(void*) noexcept;
  void* argument;
};
constexpr BodyOps step_ops{[](void* const closure) {
                             const Step step = *static_cast<const Step*>(closure);
                             step.call(step.argument);
                           },
                           [](void*) noexcept {}, nullptr};

struct Merge {
  Datum& datum;
  Copy& to;
  Copy& from;
  const DataReduction* reduction;
};

void run_merge(void* const argument) noexcept {
  const std::unique_ptr<Merge> merge(static_cast<Merge*>(argument));
  auto& [datum, to, from, reduction] = *merge;
  DataSpace& space = datum.space;
  distributed::merge_values(datum, to, from, reduction);
  to.release();
  from.release();
  space.pending.end(distributed::Pending::step);
}
}  // namespace

void DataSpace::step(const char* const name, const Site& site, void (*const call)(void*) noexcept,
                     void* const argument) {
  void* const memory = create_with_accesses(
      {name, site.where, site.priority, false, specs_, true}, step_ops, sizeof(Step));
  ::new (memory) Step{call, argument};
  (void)submit_with_accesses(memory, false);
}

void DataSpace::merge(Datum& datum, Copy& to, Copy& from, const DataReduction* const reduction,
                      const Site& site) {
  to.retain();
  from.retain();
  pending.begin(distributed::Pending::step);
  specs_.clear();
  add_arrival(from);
  add_arrival(to);
  add_spec(from, AccessKind::in);
  add_spec(to, reduction != nullptr ? AccessKind::inout : AccessKind::out);
  step(reduction != nullptr ? "combination of data" : "flush of data", site, run_merge,
       new Merge{datum, to, from, reduction});
}

// ---- what a program inserts for the sake of movement --------------------------------------------

void DataSpace::flush(Datum& datum, const std::source_location& where) {
  const Site site{"flush", where, 0};
  if (checks_) [[unlikely]] note("flush", datum, -1);
  if (datum.source < 0 && datum.reduction == nullptr) {
    throw Error(fmt::format("imbrex: flush() of {}, which no task has written, at {}",
                            text_of(datum), detail::text_of(where)));
  }
  if (network_.recorder != nullptr) [[unlikely]] {
    return record(distributed::recorded::Operation::flush, datum, -1);
  }
  if (loop_ != nullptr) [[unlikely]] return flush_in_loop(datum, where);
  if (datum.reduction != nullptr) combine(datum, site);
  provide(datum, datum.owner, site);
  bring_home(datum, site);
}

void DataSpace::bring_home(Datum& datum, const Site& site) {
  if (datum.owner != me_ || datum.home == nullptr || datum.current == datum.home) return;
  merge(datum, *datum.home, *datum.current, nullptr, site);
  drop_current(datum);
  datum.home->retain();
  datum.current = datum.home;
}

void DataSpace::flush_all(const std::source_location& where) {
  for (Datum& datum : data_) {
    if (datum.source >= 0 || datum.reduction != nullptr) flush(datum, where);
  }
}

void DataSpace::discard(Datum& datum, const std::source_location& where) {
  if (checks_) [[unlikely]] note("discard", datum, -1);
  if (network_.recorder != nullptr) [[unlikely]] {
    record(distributed::recorded::Operation::discard, datum, -1);
  }
  if (loop_ != nullptr) [[unlikely]] return discard_in_loop(datum, where);
  close_list(datum);
  drop_current(datum);
  if (datum.partial != nullptr) std::exchange(datum.partial, nullptr)->release();
  datum.reduction = nullptr;
  datum.reducers.clear();
  datum.source = -1;
  if (datum.temporary) datum.owner = -1;
}

void DataSpace::move(Datum& datum, const int owner, const std::source_location& where) {
  check_rank("move()", owner);
  const Site site{"move", where, 0};
  if (checks_) [[unlikely]] note("move", datum, owner);
  if (network_.recorder != nullptr) [[unlikely]] {
    record(distributed::recorded::Operation::move, datum, owner);
    datum.owner = owner;
    if (datum.source >= 0) written(datum, owner, site);
    return;
  }
  if (loop_ != nullptr) [[unlikely]] return move_in_loop(datum, owner, where);
  if (datum.reduction != nullptr) combine(datum, site);
  datum.owner = owner;
  if (datum.source < 0 || datum.source == owner) return;
  provide(datum, owner, site);
  // As if a task there had written the present value.
  written(datum, owner, site);
}

}  // namespace imbrex::detail
