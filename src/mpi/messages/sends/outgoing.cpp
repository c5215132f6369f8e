// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/sends/outgoing.hpp"

#include <sched.h>

#include <limits>
#include <memory>

#include "imbrex/detail/plug_ins.hpp"
#include "mpi/abi/inquiries.hpp"
#include "mpi/abi/tcp_bytes.hpp"
#include "mpi/engine/lifetime.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/matching/communicators.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/messages/requests/generalized_request.hpp"
#include "mpi/messages/requests/program_handles.hpp"
#include "mpi/recording/message_records.hpp"
#include "mpi/report/waits/private_world.hpp"

namespace imbrex::mpi::sends {

namespace {

// No named type of an MPI has more bytes (pairs of a long double and an int; complex numbers).
constexpr std::int64_t element_bytes_max = 32;

// Bytes: longer parts of collectives go to few processes at a time. With shorter parts, which are
// many, links would be idle: a transform of 16 KiB parts on four ranks took a fifth longer.
constexpr std::int64_t large_part = 1024 * 1024;

bool is_on() noexcept { return bounds.bytes.load(std::memory_order_relaxed) >= 0; }

}  // namespace

Limits& initial_limits() noexcept {
  static Limits limits;
  return limits;
}

void start() {
  if (detail::number_option("SENDS") == 0) return;
  Limits limits = initial_limits();
  limits.network = &moved_over_tcp;
  window().limit(limits);
  const std::int64_t bytes = detail::number_option("SENDS_ABOVE");
  bounds.few.store(bytes / element_bytes_max, std::memory_order_relaxed);
  bounds.bytes.store(bytes, std::memory_order_relaxed);
}

void finish() noexcept {
  if (!is_on()) return;
  let_go_before_any();
  int left = 0;
  do {
    left = 0;
    engine().hold_still(
        [&left](const Operation& operation) {
          const Send* const send = Send::from(operation);
          if (send != nullptr && messages::is_let_go(*send)) ++left;
        },
        [](bool) {});
    engine().poll();
    if (left != 0) sched_yield();
  } while (left != 0);
  bounds.few.store(-1, std::memory_order_relaxed);
  bounds.bytes.store(-1, std::memory_order_relaxed);
}

bool learn_short(const MPI_Count count, const MPI_Datatype type) noexcept {
  if (!is_on()) return true;
  const std::int64_t bytes = bytes_of(count, type);
  if (bytes < 0) return true;  // MPI reports the error
  if (bytes <= element_bytes_max * count && !messages::is_derived(type)) {
    bounds.place(type).store(type, std::memory_order_relaxed);
  }
  return bytes <= bounds.bytes.load(std::memory_order_relaxed);
}

bool is_long(const MPI_Count count, const MPI_Datatype type) noexcept {
  return is_on() && bytes_of(count, type) > bounds.bytes.load(std::memory_order_relaxed);
}

std::unique_ptr<Send> make(const Call& call, const Outgoing& it, const Route& route,
                           const bool is_part) {
  const std::int64_t bytes = bytes_of(it.count, it.type);
  auto send = std::make_unique<Send>(call.name, it, route, bytes, call.at_once);
  send->turn.of_collective = is_part;
  send->turn.is_part = is_part && bytes > large_part;
  send->turn.is_long = is_part || bytes > bounds.bytes.load(std::memory_order_relaxed);
  return send;
}

Route route_of(const Outgoing& it, const Asks asks, const bool is_part) noexcept {
  if (!is_on() || !in_service() || it.peer == MPI_PROC_NULL) return {};
  messages::Communicator* const place = messages::communicator_of(it.comm);
  const messages::Arguments as_receive{nullptr, it.count, it.type, {it.peer, it.tag}, it.comm};
  if (place == nullptr || !place->accepts_send(as_receive)) return {};
  if (asks == Asks::buffers) {
    let_go_before(it.comm, it.peer);
    return {};
  }
  const bool waits = is_part || is_long(it.count, it.type);
  if (!waits && !window().holds_back(*place, it.peer, it.tag)) return {};
  const int rank = in_world(*members_of(it.comm), it.peer);
  if (rank == private_world::rank()) return {};  // there is no network in between
  return {place, rank == MPI_UNDEFINED ? -1 : rank};
}

int send(const Call& call, const Outgoing& it, const Route& route) {
  const std::unique_ptr<Send> send = make(call, it, route);
  if (!window().begin(*send)) return raise_error(*send);
  wait_for(*send);
  return send->code == MPI_SUCCESS ? MPI_SUCCESS : raise_error(*send);
}

int isend(const Call& call, const Outgoing& it, const Route& route, MPI_Request* request) {
  std::unique_ptr<Send> send = make(call, it, route);
  *request = MPI_REQUEST_NULL;
  messages::Token* const token = messages::take_token(*send);
  if (token == nullptr) return raise_error(call, MPI_ERR_NO_MEM);
  send->give_handle(*token);
  if (!window().begin(*send)) {
    give_token(*token);
    return raise_error(*send);
  }
  (void)send.release();  // it may be complete already: conclude() ends it
  *request = token->request;
  return MPI_SUCCESS;
}

int start(messages::Persistent& it, MPI_Request* request) {
  const messages::Arguments& with = it.arguments;
  const Outgoing outgoing{with.buffer,     with.count, with.type, with.wanted.source,
                          with.wanted.tag, with.comm,  it.mode};
  // If the communicator is freed, its object serves another.
  const bool is_same = it.communicator.handle() == with.comm;
  const Route route = is_same ? route_of(outgoing, Asks::nothing) : Route();
  if (!route) {
    let_go_before_any();
    return PMPI_Start(request);
  }
  auto send = make({.name = "MPI_Start", .at_once = true}, outgoing, route);
  send->owner = it;
  if (!window().begin(*send)) return raise_error(*send);
  it.active = send.release();
  return MPI_SUCCESS;
}

void let_go_before(MPI_Comm comm, const int peer) noexcept {
  if (waiting.load(std::memory_order_acquire) == 0) return;
  if (const messages::Communicator* const it = messages::known_communicator_of(comm)) {
    window().let_go(it, peer);
  }
}

}  // namespace imbrex::mpi::sends
