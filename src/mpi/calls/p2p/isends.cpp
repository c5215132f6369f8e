// SPDX-License-Identifier: BSD-3-Clause
// The sends that give a request: MPI_Isend and its kin, with int and with large counts, from the
// table of calls.
#include "mpi/calls/standard.hpp"
#include "mpi/engine/active.hpp"
#include "mpi/engine/handlers.hpp"
#include "mpi/matching/communicator.hpp"
#include "mpi/matching/communicators.hpp"
#include "mpi/watch/check/check.hpp"
#include "mpi/watch/messages.hpp"

namespace imbrex::mpi {

namespace {

// Whoever watches the communicator may give the program another handle.
void tell_watcher(const Call& call, MPI_Request* request) {
  if (!receive::Communicator::any_watched() || !active()) return;
  const receive::Communicator* const on = receive::communicator_of(call.comm);
  const receive::Watcher* const watcher = on != nullptr ? on->watcher() : nullptr;
  if (watcher != nullptr) watcher->outgoing(call, request);
}

// `start()` is MPI's own. The buffer is checked until the handle completes that the program has.
template <class Start>
int begin_send(const Call& call, const void* buffer, MPI_Request* request, Start start) {
  if (refused(call.name)) return MPI_ERR_OTHER;
  if (traces_messages) trace_sent({call.comm, call.peer, call.tag, call.count, call.type});
  const int code = start();
  if (code == MPI_SUCCESS) tell_watcher(call, request);
  return check::begun(call, request, code, buffer, false);
}

}  // namespace

#define IMBREX_MAKE_ISEND(name, Count)                                                        \
  extern "C" int MPI_##name(const void* buffer, Count count, MPI_Datatype type, int peer,     \
                            int tag, MPI_Comm comm, MPI_Request* request) {                   \
    return begin_send({"MPI_" #name, comm, peer, tag, count, type, Kind::send, true}, buffer, \
                      request, [&] {                                                          \
      return PMPI_##name(buffer, count, type, peer, tag, comm, request);                      \
    });                                                                                       \
  }

#define IMBREX_SEND_C(name, twin) IMBREX_MAKE_ISEND(twin, int)
#include "mpi/calls/calls.def"

#if MPI_VERSION >= 4
#define IMBREX_SEND_C(name, twin) IMBREX_MAKE_ISEND(twin##_c, MPI_Count)
#include "mpi/calls/calls.def"
#endif

}  // namespace imbrex::mpi
