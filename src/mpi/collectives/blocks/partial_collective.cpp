// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/collectives/blocks/partial_collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "mpi/abi/inquiries.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/collectives/blocks/cut.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/matching/receive.hpp"
#include "mpi/messages/sends/outgoing.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex {

namespace mpi::blocks {
namespace {

std::string describe(const Part& part) {
  return fmt::format("part {} {} rank {}{}", part.number, part.incoming ? "from" : "for", part.peer,
                     part.neighbor < 0 ? "" : fmt::format(" (neighbour {})", part.neighbor));
}

// The error for this code.
MpiError error_of(const detail::CollectiveState& state, const Part& part, const int code) {
  if (!part.withdrawn) {
    const std::string place =
        fmt::format("{} ({})", detail::describe(state.task), describe(part));
    return make_error(state.call, code, place);
  }
  const bool relayed = state.kind == Kind::broadcast && part.peer != state.root;
  return {fmt::format("imbrex: {}, begun by {}: {} failed: MPI_ERR_OTHER: rank {} {}", state.call,
                      detail::describe(state.task), describe(part), part.peer,
                      relayed ? "could not forward the part, since it did not receive it: the rank "
                                "where the failure began prints the cause"
                              : "holds the part, and no handle is left on that rank to call "
                                "send()"),
          state.call, code, code};
}

}  // namespace
}  // namespace mpi::blocks

namespace detail {

namespace blocks = mpi::blocks;

CollectiveState::CollectiveState(const char* const its_call, std::shared_ptr<Place> its_place,
                                 const blocks::Kind its_kind, const int its_root,
                                 const CollectiveOptions& options,
                                 std::unique_ptr<const blocks::Neighbors> its_neighbors)
    : call(its_call),
      place(std::move(its_place)),
      kind(its_kind),
      root(its_root),
      parts(options.parts),
      hold(options.hold),
      neighbors(std::move(its_neighbors)),
      incoming(static_cast<std::size_t>(block_count(true)) * static_cast<std::size_t>(parts)),
      outgoing(static_cast<std::size_t>(block_count(false)) * static_cast<std::size_t>(parts)) {
  ready.set();
}

CollectiveState::~CollectiveState() {
  for (auto& [type, copy] : types) PMPI_Type_free(&copy);
}

MPI_Datatype CollectiveState::keep(MPI_Datatype type) {
  if (!mpi::messages::is_derived(type)) return type;
  const auto [place_of_it, is_new] = types.try_emplace(type, MPI_DATATYPE_NULL);
  if (is_new) place_of_it->second = mpi::copy_of(type);
  return place_of_it->second;
}

void CollectiveState::plan(const bool comes, const int block, const int number,
                           const void* const address, const Piece& piece) {
  if (piece.count == 0) return;
  if (piece.count < 0 || piece.type == MPI_DATATYPE_NULL) {
    throw Error(fmt::format("imbrex: {}: part {} of the block {} rank {} has {}: give 0 or more "
                            "elements of a type",
                            call, number, comes ? "from" : "for", peer_of(comes, block),
                            piece.count < 0 ? fmt::format("{} elements", piece.count)
                                            : std::string("no type")));
  }
  if (mpi::bytes_of(piece.count, piece.type) == 0) return;
  auto part = std::make_unique<Part>();
  part->ended = &CollectiveState::ended;
  const char* const first = static_cast<const char*>(address) + piece.displacement;
  part->address = const_cast<char*>(first);  // NOLINT: a send only reads there
  part->count = piece.count;
  part->type = keep(piece.type);
  part->peer = peer_of(comes, block);
  if (neighbors != nullptr) {
    const auto& ends = comes ? neighbors->sources : neighbors->destinations;
    part->neighbor = block;
    part->edge = ends[static_cast<std::size_t>(block)].edge;
  }
  part->state = this;
  part->incoming = comes;
  part->number = number;
  part->displacement = piece.displacement;
  (comes ? incoming : outgoing)[index(comes, block, number)] = std::move(part);
  open.fetch_add(1, std::memory_order_relaxed);
}

// The receives of all parts come first: later sends of this rank may depend on them.
void CollectiveState::start() {
  if (hold) mpi::engine().hold(1);
  for (Parts* const some : {&incoming, &outgoing}) {
    for (const std::unique_ptr<Part>& part : *some) {
      if (part == nullptr) continue;
      part->tag = place->tags.tag(instance, kind, part->edge * parts + part->number);
    }
  }
  if (kind == blocks::Kind::allreduce) {
    start_reductions();
    if (mpi::switches.traces_messages) [[unlikely]] record_joint();
    count_down();
    return;
  }
  const auto each = [&](const Parts& some, const int step, auto visit) {
    const bool comes = step < 0;
    const int size = block_count(comes);
    for (int number = 0; number < parts; ++number) {
      for (int distance = 1; distance <= size; ++distance) {
        const int block = neighbors != nullptr
                              ? distance - 1
                              : (place->rank + size + step * distance) % size;
        Part* const part = some[index(comes, block, number)].get();
        if (part != nullptr) visit(*part);
      }
    }
  };
  each(incoming, -1, [&](Part& part) {
    watch(part, nullptr);
    if (part.peer == place->rank) return;
    if (mpi::switches.traces_messages) [[unlikely]] record_begin(part, false);
    begin_receive(*place, part, call);
  });
  if (mpi::switches.traces_messages) [[unlikely]] record_joint();
  if (!hold) {
    each(outgoing, 1, [&](Part& part) {
      const bool goes_on = kind == blocks::Kind::broadcast && place->rank != root;
      if (!goes_on) let_go(part);
    });
  }
  count_down();
}

void CollectiveState::watch(Part& part, const void* const sent) {
  if (!mpi::check::on()) [[likely]] return;
  const mpi::Call seen{.name = call,
                       .peer = part.peer,
                       .count = part.count,
                       .type = part.type,
                       .kind = part.incoming ? mpi::Kind::receive : mpi::Kind::send};
  mpi::check::Buffers buffers{{part.address, part.count, part.type, part.incoming}};
  if (sent != nullptr) buffers.push_back({sent, part.count, part.type, false});
  part.guard = std::make_unique<mpi::check::Guard>();
  part.guard->begin(seen, task, buffers);
}

namespace {

mpi::Call call_of(const CollectiveState& state, const mpi::blocks::Part& part) {
  const bool reduces = state.kind == blocks::Kind::allreduce;
  return {.name = state.call,
          .comm = state.place->comm,
          .peer = part.peer,
          .tag = part.tag,
          .count = part.count,
          .type = part.type,
          .kind = reduces         ? mpi::Kind::collective
                  : part.incoming ? mpi::Kind::receive
                                  : mpi::Kind::send,
          .at_once = true};
}

}  // namespace

void CollectiveState::record_begin(Part& part, const bool passes_on) {
  const mpi::Call seen = call_of(*this, part);
  const Future<void> future = part.promise.future();
  const Completion* const its = completion_of(future);
  part.in_trace = seen.kind == mpi::Kind::collective ? mpi::trace_part_reduced(seen, its)
                  : part.incoming                    ? mpi::trace_part_posted(seen, its)
                                  : mpi::trace_part_sent(seen, its, passes_on);
}

void CollectiveState::record_end(const Part& part) const noexcept {
  mpi::trace_part_ended(call_of(*this, part), part.in_trace, task.id);
}

void CollectiveState::record_joint() const {
  const Future<void> joint = all.future();
  std::vector<Future<void>> futures;
  std::vector<Completion*> its;
  for (const Parts* const some : {&incoming, &outgoing}) {
    for (const std::unique_ptr<Part>& part : *some) {
      if (part == nullptr) continue;
      futures.push_back(part->promise.future());
      its.push_back(completion_of(futures.back()));
    }
  }
  trace_joins(*completion_of(joint), its);
}

void CollectiveState::start_reductions() {
  for (int number = 0; number < parts; ++number) {
    Part* const part = incoming[index(true, place->rank, number)].get();
    if (part == nullptr) continue;
    const bool in_place = reduced == MPI_IN_PLACE;
    const void* const from =
        in_place ? reduced : static_cast<const char*>(reduced) + part->displacement;
    watch(*part, in_place ? nullptr : from);
    if (mpi::switches.traces_messages) [[unlikely]] record_begin(*part, false);
    begin_reduction(*place, *part, from, op, call);
  }
}

void CollectiveState::let_go(Part& part) {
  if (part.left.exchange(true, std::memory_order_relaxed)) {
    throw Error(fmt::format("imbrex: {} has been sent already, by send() of {}",
                            blocks::describe(part), call));
  }
  watch(part, nullptr);
  if (part.peer != place->rank) {
    if (mpi::switches.traces_messages) [[unlikely]] record_begin(part, false);
    begin_send(*place, part, call);
    return;
  }
  Part& to = *part.partner;
  const int code = copy(*place, part, to);
  ended(to, code);
  ended(part, code);
}

void CollectiveState::ended(blocks::Transfer& transfer, const int code) noexcept {
  Part& part = static_cast<Part&>(transfer);
  CollectiveState& state = *part.state;
  std::exception_ptr error = part.withdrawn_for;
  if (error == nullptr && code != MPI_SUCCESS) {
    error = std::make_exception_ptr(blocks::error_of(state, part, code));
  }
  part.guard.reset();  // before the memory is sent on
  if (part.in_trace != 0 && error == nullptr) [[unlikely]] state.record_end(part);
  // First the parts that other ranks wait for. Both parts are open, and so keep the state.
  if (Part* const next = part.incoming ? part.partner : nullptr) {
    if (error == nullptr) {
      next->left.store(true, std::memory_order_relaxed);
      state.watch(*next, nullptr);
      if (part.in_trace != 0) [[unlikely]] state.record_begin(*next, true);
      begin_send(*state.place, *next, state.call);
    } else {
      state.withdraw(*next, error);
    }
  }
  state.end(part, error != nullptr && code == MPI_SUCCESS ? MPI_ERR_OTHER : code, error);
}

void CollectiveState::withdraw(Part& part, const std::exception_ptr& why) noexcept {
  part.left.store(true, std::memory_order_relaxed);
  part.withdrawn_for = why;
  begin_withdrawal(*place, part, call);
}

void CollectiveState::end(Part& part, const int code, const std::exception_ptr& error) noexcept {
  part.guard.reset();  // before tasks that wait for it run, which may use its memory
  if (error == nullptr) {
    part.promise.set();
  } else {
    {
      const std::lock_guard guard(lock);
      if (first_error == nullptr) first_error = error;
    }
    part.promise.set_exception(error);
    // As taken: if all().get() is never called, that error is reported once, and not for each part.
    try {
      part.promise.future().get();
    } catch (...) {
    }
  }
  // Before all() is ready: a task that waits for all() has seen the events of each part.
  notify_watcher(part, code);
  count_down();
}

void CollectiveState::notify_watcher(const Part& part, const int code) const noexcept {
  const mpi::messages::Watcher* const watcher = place->watcher();
  if (watcher == nullptr) return;
  watcher->ended({.comm = place->program,
                  .incoming = part.incoming,
                  .peer = part.peer,
                  .block = part.neighbor < 0 ? part.peer : part.neighbor,
                  .part = part.number,
                  .address = reinterpret_cast<const void*>(
                      blocks::extent_of(part.address, part.count, part.type).begin),
                  .call = call,
                  .code = code});
}

void CollectiveState::count_down() noexcept {
  // Release: the thread that ends it sees the writes of each part, by acquire.
  if (open.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  std::exception_ptr error;
  {
    const std::lock_guard guard(lock);
    error = first_error;
  }
  compared = {};
  place->end(instance, error == nullptr);
  if (error == nullptr) {
    all.set();
  } else {
    all.set_exception(error);
  }
  if (hold) mpi::engine().hold(-1);  // tasks that waited are ready by now
  drop_reference();
}

void CollectiveState::drop_reference() noexcept {
  if (references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

void CollectiveState::abandon() noexcept {
  (void)give_up("no handle of the collective is left to send them");
  drop_reference();
}

bool CollectiveState::give_up(const char* const why) noexcept {
  if (!hold || (kind == blocks::Kind::broadcast && place->rank != root)) return false;
  std::vector<Part*> held;
  for (const std::unique_ptr<Part>& part : outgoing) {
    if (part != nullptr && !part->left.exchange(true, std::memory_order_relaxed)) {
      held.push_back(part.get());
    }
  }
  if (held.empty()) return false;
  const std::string more = held.size() == 1 ? "" : fmt::format(" and {} more", held.size() - 1);
  const std::string text = fmt::format(
      "{}, begun by {}: not sent: {}{}; {}, so they fail, also on the receiving ranks. Call send() "
      "for each part, or begin without .hold",
      call, detail::describe(task), blocks::describe(*held.front()), more, why);
  mpi::print(text);
  const std::exception_ptr error = std::make_exception_ptr(Error("imbrex: " + text));
  for (Part* const part : held) {
    if (part->peer != place->rank) {
      withdraw(*part, error);
    } else {
      end(*part->partner, MPI_ERR_OTHER, error);
      end(*part, MPI_ERR_OTHER, error);
    }
  }
  return true;
}

void CollectiveState::describe(std::vector<std::string>& lines) const {
  const auto add = [&](const Parts& some, const char* const what, auto waits) {
    const Part* first = nullptr;
    int more = -1;
    for (const std::unique_ptr<Part>& part : some) {
      if (part == nullptr || part->promise.future().ready() || !waits(*part)) continue;
      if (first == nullptr) first = part.get();
      ++more;
    }
    if (first == nullptr) return;
    lines.push_back(fmt::format("{}, begun by {}: {} {}{}", call, detail::describe(task),
                                blocks::describe(*first), what,
                                more == 0 ? "" : fmt::format(", and {} more", more)));
  };
  add(incoming, "has not arrived", [](const Part&) { return true; });
  if (!hold) return;
  add(outgoing, "is held: no task has called send() for it",
      [](const Part& part) { return !part.left.load(std::memory_order_relaxed); });
}

int CollectiveState::block_count(const bool comes) const noexcept {
  if (neighbors == nullptr) return place->size;
  return static_cast<int>((comes ? neighbors->sources : neighbors->destinations).size());
}

int CollectiveState::peer_of(const bool comes, const int block) const noexcept {
  if (neighbors == nullptr) return block;
  const auto& ends = comes ? neighbors->sources : neighbors->destinations;
  return ends[static_cast<std::size_t>(block)].rank;
}

std::size_t CollectiveState::index(const bool comes, const int block, const int part) const {
  if (block < 0 || block >= block_count(comes) || part < 0 || part >= parts) {
    const char* const whose = neighbors == nullptr ? "rank" : "neighbour";
    throw Error(fmt::format("imbrex: {} has no part {} of {} {}: it has {} parts for each of {} "
                            "{}s", call,
                            part, whose, block, parts, block_count(comes), whose));
  }
  return static_cast<std::size_t>(block) * static_cast<std::size_t>(parts) +
         static_cast<std::size_t>(part);
}

int CollectiveState::neighbour_for(const int rank, const int step) const {
  (void)index(step < 0, rank, 0);
  if (kind == blocks::Kind::allreduce) return place->rank;
  if (kind != blocks::Kind::broadcast) return rank;
  return (place->rank + step + place->size) % place->size;
}

Future<void> CollectiveState::future_of(const bool comes, const int block, const int part) const {
  const std::unique_ptr<Part>& it = (comes ? incoming : outgoing)[index(comes, block, part)];
  return it == nullptr ? ready.future() : it->promise.future();
}

}  // namespace detail

// ---- handles of programs -----------------------------------------------------------------------

namespace {

detail::CollectiveState& require_state(detail::CollectiveState* const state) {
  if (state == nullptr) throw Error("imbrex: use of an empty Collective");
  return *state;
}

}  // namespace

Collective detail::collective_of(CollectiveState* const owned) noexcept {
  return Collective(owned);
}

Collective::Collective(const Collective& other) noexcept : state_(other.state_) {
  if (state_ != nullptr) state_->handles.fetch_add(1, std::memory_order_relaxed);
}
Collective::Collective(Collective&& other) noexcept
    : state_(std::exchange(other.state_, nullptr)) {}
Collective& Collective::operator=(Collective other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Collective::~Collective() {
  // Acquire: abandon() sees the sends of other threads.
  if (state_ != nullptr && state_->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    state_->abandon();
  }
}

Future<void> Collective::from(const int rank, const int part) const {
  detail::CollectiveState& it = require_state(state_);
  return it.future_of(true, it.neighbour_for(rank, -1), part);
}

Future<void> Collective::to(const int rank, const int part) const {
  detail::CollectiveState& it = require_state(state_);
  const bool reduces = it.kind == mpi::blocks::Kind::allreduce;
  return it.future_of(reduces, it.neighbour_for(rank, 1), part);
}

void Collective::send(const int rank, const int part) const {
  detail::CollectiveState& it = require_state(state_);
  (void)it.index(false, rank, part);
  if (!it.hold) {
    throw Error(fmt::format("imbrex: send() of {}, which holds no parts: begin it with .hold = "
                            "true",
                            it.call));
  }
  if (it.kind == mpi::blocks::Kind::broadcast && it.place->rank != it.root) return;
  if (auto& goes = it.outgoing[it.index(false, it.neighbour_for(rank, 1), part)]) it.let_go(*goes);
}

Future<void> Collective::all() const { return require_state(state_).all.future(); }
int Collective::parts() const { return require_state(state_).parts; }

}  // namespace imbrex
