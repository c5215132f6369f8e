// SPDX-License-Identifier: BSD-3-Clause
// The calls that end a communicator or change what is known of it.
#include "mpi/calls/spare.hpp"
#include "mpi/engine/active.hpp"
#include "mpi/matching/communicators.hpp"
#include "mpi/order/order.hpp"
#include "mpi/sends/begin.hpp"
#include "mpi/watch/check/comm_free.hpp"
#include "mpi/watch/check/ranks/ranks.hpp"

namespace imbrex::mpi::receive {

namespace {

// Called before `call` takes the handle away. Receives that wait here are MPI's to complete from
// now on. Not MPI_SUCCESS if a task waits on `comm`: then the call must return the code.
int close_for(const char* call, MPI_Comm comm) {
  const int refused = check::refuse_to_free(call, comm);
  if (refused != MPI_SUCCESS || !in_service()) return refused;
  if (const int code = order::refuse_to_free(call, comm); code != MPI_SUCCESS) return code;
  if (Communicator* const it = known_communicator_of(comm)) {
    sends::let_go_before(comm, -1);
    if (Detour* const detour = it->detour()) {
      const int code = detour->drain(call);
      if (code != MPI_SUCCESS) return code;
      it->end_detour();
      detour->end();
    }
    it->close(true);
  }
  check::end_communicator(comm);
  return MPI_SUCCESS;
}

}  // namespace

}  // namespace imbrex::mpi::receive

// ---- what programs call ----------------------------------------------------------------------

IMBREX_FUNCTION(Comm_free)(MPI_Comm* comm) {
  using namespace imbrex::mpi;
  const int refused = receive::close_for("MPI_Comm_free", *comm);
  return refused == MPI_SUCCESS ? PMPI_Comm_free(comm) : refused;
}

IMBREX_FUNCTION(Comm_disconnect)(MPI_Comm* comm) {
  using namespace imbrex::mpi;
  constexpr const char* name = "MPI_Comm_disconnect";
  int refused = refuse_where_forbidden(name);
  if (refused == MPI_SUCCESS) refused = receive::close_for(name, *comm);
  if (refused != MPI_SUCCESS) return refused;
  return by_spare_thread(name, [comm] { return PMPI_Comm_disconnect(comm); });
}
