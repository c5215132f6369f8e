// SPDX-License-Identifier: BSD-3-Clause
// The sends that give a request: MPI_Isend and its variants, with int and with large counts, from
// the table of calls.
#include "mpi/abi/standard.hpp"
#include "mpi/engine/lifetime.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/matching/communicators.hpp"
#include "mpi/messages/sends/outgoing.hpp"

namespace imbrex::mpi {

namespace {

// MPI has begun the send. The watcher of the communicator may give the program another handle.
[[gnu::noinline]] void notify_watcher(const Call& call, MPI_Request* request) {
  if (!in_service()) return;
  const messages::Communicator* const on = messages::communicator_of(call.comm);
  const messages::Watcher* const watcher = on != nullptr ? on->watcher() : nullptr;
  if (watcher != nullptr) watcher->outgoing(call, request);
}

// True if the send is begun here; `code` is then its result.
[[gnu::noinline]] bool begin_in_turn(const Call& call, const sends::Asks asks,
                                     const void* const buffer, MPI_Request* const request,
                                     int& code) {
  const sends::Outgoing outgoing{buffer,   call.count, call.type,           call.peer,
                                 call.tag, call.comm,  sends::mode_of(asks)};
  const sends::Route route = sends::route_of(outgoing, asks);
  if (route) code = sends::isend(call, outgoing, route, request);
  return static_cast<bool>(route);
}

}  // namespace

#define IMBREX_MAKE_ISEND(name, Count)                                                          \
  IMBREX_FUNCTION(name)(const void* buffer, Count count, MPI_Datatype type, int peer, int tag,  \
                        MPI_Comm comm, MPI_Request* request) {                                  \
    const auto call = [&] {                                                                     \
      return Call{"MPI_" #name, comm, peer, tag, count, type, Kind::send, true};                \
    };                                                                                          \
    int code = MPI_SUCCESS;                                                                     \
    if (sends::passes(count, type) ||                                                           \
        !begin_in_turn(call(), sends::asks_of(#name), buffer, request, code)) [[likely]] {      \
      code = PMPI_##name(buffer, count, type, peer, tag, comm, request);                        \
    }                                                                                           \
    if (code == MPI_SUCCESS && messages::Communicator::any_watched()) [[unlikely]] {             \
      notify_watcher(call(), request);                                                            \
    }                                                                                           \
    return code;                                                                                \
  }

#define IMBREX_SEND_C(name, twin) IMBREX_MAKE_ISEND(twin, int)
#include "mpi/calls/calls.def"

#if MPI_VERSION >= 4
#define IMBREX_SEND_C(name, twin) IMBREX_MAKE_ISEND(twin##_c, MPI_Count)
#include "mpi/calls/calls.def"
#endif

}  // namespace imbrex::mpi
