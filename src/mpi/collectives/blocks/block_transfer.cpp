// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/collectives/blocks/block_transfer.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "imbrex/detail/plug_ins.hpp"
#include "mpi/abi/completion_calls.hpp"
#include "mpi/abi/inquiries.hpp"
#include "mpi/abi/quirks.hpp"
#include "mpi/collectives/blocks/crossing.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/sends/outgoing.hpp"

namespace imbrex::mpi::blocks {

namespace {

// A request of MPI: no receive is matched here on a place, since no receive there uses wildcards.
struct Posted : Operation {
  explicit Posted(Transfer& its_transfer) : transfer(its_transfer) { complete = &Posted::end; }
  static void end(Operation& self) noexcept {
    const std::unique_ptr<Posted> owned(static_cast<Posted*>(&self));
    Transfer& transfer = owned->transfer;
    if (owned->code == MPI_SUCCESS && owned->call.kind == mpi::Kind::receive) {
      int bytes = 0;
      PMPI_Get_count(&owned->status, MPI_BYTE, &bytes);  // undefined if there are very many
      transfer.withdrawn = bytes == 0;
    }
    transfer.ended(transfer, transfer.withdrawn ? MPI_ERR_OTHER : owned->code);
  }
  Transfer& transfer;
};

// `post` makes MPI's request of an operation, and returns MPI's code.
template <class Post>
void begin(Transfer& transfer, const Call& call, Post post) {
  auto posted = std::make_unique<Posted>(transfer);
  posted->call = call;
  posted->task = detail::current_task();
  Outcome outcome = MPI_SUCCESS;
  {
    const Callback callback(call);
    const Asking quiet(true);
    outcome = quiet.outcome(post(&posted->request));
  }
  if (outcome.code != MPI_SUCCESS) {
    transfer.ended(transfer, outcome.code);
    return;
  }
  engine().add(*posted.release());
  detail::wake_poller();  // the caller goes on, so an idle worker must poll
}

Call call_of(const Place& place, const Transfer& it, const char* const name,
             const mpi::Kind kind) {
  return {.name = name,
          .comm = place.comm,
          .peer = it.peer,
          .tag = it.tag,
          .count = it.count,
          .kind = kind,
          .at_once = true,
          .throws = true};
}

// A send that waits for its turn.
struct Queued : messages::Listener {
  Queued(Transfer& its_transfer, std::unique_ptr<sends::Send> its_send)
      : transfer(its_transfer), send(std::move(its_send)) {
    fire = &Queued::end;
  }
  static void end(Listener& self) noexcept {
    const std::unique_ptr<Queued> owned(static_cast<Queued*>(&self));
    Transfer& transfer = owned->transfer;
    const int code = owned->send->code;
    owned->send.reset();
    transfer.ended(transfer, code);
  }
  Transfer& transfer;
  std::unique_ptr<sends::Send> send;
};

// Bytes. Longer messages wait for their turn.
constexpr std::int64_t short_most = 8192;

// Longer messages stay in flight until they have been received. MPI may take a shorter part at
// once: it would then seem to have left while it waits in a buffer of MPI, in front of more urgent
// ones.
std::int64_t standard_most() {
  static const std::int64_t most =
      std::max(short_most, at_once_most(look(has<Quirk::connections_cross>())));
  return most;
}

// Sends `count` elements from its address.
void send(Place& place, Transfer& it, const int count, MPI_Datatype type, const char* const call) {
  const Call its_call = call_of(place, it, call, mpi::Kind::send);
  const std::int64_t bytes = bytes_of(count, type);
  const bool takes_turns = bytes > short_most;
  const sends::Outgoing outgoing{
      it.address, count, type, it.peer, it.tag, place.comm,
      bytes > standard_most() ? sends::Mode::synchronous : sends::Mode::standard};
  const bool passes = !takes_turns && sends::passes(count, type);
  const sends::Route route =
      passes ? sends::Route() : sends::route_of(outgoing, sends::Asks::nothing, takes_turns);
  if (!route) {
    begin(it, its_call, [&](MPI_Request* request) {
      return PMPI_Isend(it.address, count, type, it.peer, it.tag, place.comm, request);
    });
    return;
  }
  auto queued = std::make_unique<Queued>(it, sends::make(its_call, outgoing, route, takes_turns));
  if (!sends::window().begin(*queued->send)) {
    const int code = queued->send->code;
    queued.reset();
    it.ended(it, code);
    return;
  }
  Queued& waiting = *queued.release();
  if (waiting.send->attend(waiting)) {
    detail::wake_poller();
  } else {
    Queued::end(waiting);
  }
}

}  // namespace

void begin_receive(Place& place, Transfer& it, const char* const call) {
  begin(it, call_of(place, it, call, mpi::Kind::receive), [&](MPI_Request* request) {
    return PMPI_Irecv(it.address, it.count, it.type, it.peer, it.tag, place.comm, request);
  });
}

void begin_send(Place& place, Transfer& it, const char* const call) {
  send(place, it, it.count, it.type, call);
}

void begin_withdrawal(Place& place, Transfer& it, const char* const call) {
  send(place, it, 0, MPI_BYTE, call);
}

void begin_reduction(Place& place, Transfer& it, const void* const from, MPI_Op op,
                     const char* const call) {
  const Call its_call{.name = call,
                      .comm = place.comm,
                      .kind = mpi::Kind::collective,
                      .at_once = true,
                      .throws = true};
  begin(it, its_call, [&](MPI_Request* request) {
    return PMPI_Iallreduce(from, it.address, it.count, it.type, op, place.comm, request);
  });
}

int copy(Place& place, const Transfer& from, const Transfer& to) noexcept {
  const std::int64_t bytes = bytes_of(from.count, from.type);
  // An MPI need not report this for a message to oneself: Open MPI 4 does not.
  if (bytes > bytes_of(to.count, to.type)) return MPI_ERR_TRUNCATE;
  MPI_Aint least = 0;
  MPI_Aint extent = 0;
  PMPI_Type_get_extent(from.type, &least, &extent);
  const bool is_dense = extent * from.count == bytes && !messages::is_derived(from.type);
  if (is_dense && from.type == to.type && from.count == to.count) {
    std::memmove(to.address, from.address, static_cast<std::size_t>(bytes));
    return MPI_SUCCESS;
  }
  const std::lock_guard guard(place.self_lock);
  const Callback callback;
  return ask_quietly([&] {
           return PMPI_Sendrecv(from.address, from.count, from.type, 0, 0, to.address, to.count,
                                to.type, 0, 0, place.self, MPI_STATUS_IGNORE);
         }).code;
}

}  // namespace imbrex::mpi::blocks
