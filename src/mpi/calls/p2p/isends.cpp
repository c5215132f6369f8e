// SPDX-License-Identifier: BSD-3-Clause
// The sends that give a request: MPI_Isend and its kin, with int and with large counts, from the
// table of calls.
#include "mpi/calls/standard.hpp"
#include "mpi/engine/active.hpp"
#include "mpi/matching/communicator.hpp"
#include "mpi/matching/communicators.hpp"
#include "mpi/sends/begin.hpp"

namespace imbrex::mpi {

namespace {

// MPI has begun the send. Whoever watches the communicator may give the program another handle.
void tell_watcher(const Call& call, MPI_Request* request) {
  if (!receive::Communicator::any_watched() || !in_service()) return;
  const receive::Communicator* const on = receive::communicator_of(call.comm);
  const receive::Watcher* const watcher = on != nullptr ? on->watcher() : nullptr;
  if (watcher != nullptr) watcher->outgoing(call, request);
}

// `mpis_own()` is MPI's own call.
template <sends::Asks asks, class Own>
int begin(const Call& call, const void* const buffer, MPI_Request* const request, Own mpis_own) {
  int code = MPI_SUCCESS;
  if (sends::passes(call.count, call.type)) [[likely]] {
    code = mpis_own();
  } else {
    const sends::Outgoing outgoing{buffer,   call.count, call.type,           call.peer,
                                   call.tag, call.comm,  sends::mode_of(asks)};
    const sends::Route route = sends::route_of(outgoing, asks);
    code = route ? sends::isend(call, outgoing, route, request) : mpis_own();
  }
  if (code == MPI_SUCCESS) tell_watcher(call, request);
  return code;
}

}  // namespace

#define IMBREX_MAKE_ISEND(name, Count)                                                          \
  IMBREX_FUNCTION(name)(const void* buffer, Count count, MPI_Datatype type, int peer, int tag,  \
                        MPI_Comm comm, MPI_Request* request) {                                  \
    const Call call{"MPI_" #name, comm, peer, tag, count, type, Kind::send, true};              \
    return begin<sends::asks_of(#name)>(call, buffer, request, [&] {                            \
      return PMPI_##name(buffer, count, type, peer, tag, comm, request);                        \
    });                                                                                         \
  }

#define IMBREX_SEND_C(name, twin) IMBREX_MAKE_ISEND(twin, int)
#include "mpi/calls/calls.def"

#if MPI_VERSION >= 4
#define IMBREX_SEND_C(name, twin) IMBREX_MAKE_ISEND(twin##_c, MPI_Count)
#include "mpi/calls/calls.def"
#endif

}  // namespace imbrex::mpi
