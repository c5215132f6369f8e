// SPDX-License-Identifier: BSD-3-Clause
// The calls that free a communicator or change its properties.
#include "mpi/abi/standard.hpp"
#include "mpi/calls/spare.hpp"
#include "mpi/check/checks.hpp"
#include "mpi/check/comm_free.hpp"
#include "mpi/check/ranks/ranks.hpp"
#include "mpi/check/unordered.hpp"
#include "mpi/collectives/blocks/blocks.hpp"
#include "mpi/collectives/order/order.hpp"
#include "mpi/engine/lifetime.hpp"
#include "mpi/messages/matching/communicators.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/messages/sends/outgoing.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex::mpi {

namespace {

// Called before `call` takes the handle away. MPI completes the receives that wait here from now
// on. Not MPI_SUCCESS if a task waits on `comm`: the call must then return the code.
int close_for(const char* call, MPI_Comm comm) {
  const int refused = check::refuse_to_free(call, comm);
  if (refused != MPI_SUCCESS || !in_service()) return refused;
  if (const int code = order::refuse_to_free(call, comm); code != MPI_SUCCESS) return code;
  if (messages::Communicator* const it = messages::known_communicator_of(comm)) {
    sends::let_go_before(comm, -1);
    it->close(true);
  }
  check::end_communicator(comm);
  check::forget_posts(comm);
  return MPI_SUCCESS;
}

int dup_with_info(const Call& call, MPI_Info info, MPI_Comm* created) {
#if IMBREX_MPI_4
  if (!in_service()) return PMPI_Comm_dup_with_info(call.comm, info, created);
  const TracedCollective traced(call);
  check::Guard guard;
  const detail::TaskLabel task = check::on() ? detail::current_task() : detail::TaskLabel();
  return carry_out(call, MPI_STATUS_IGNORE, [&](MPI_Request* request) {
    const int code = PMPI_Comm_idup_with_info(call.comm, info, created, request);
    if (check::on() && code == MPI_SUCCESS) [[unlikely]] guard.begin(call, task, {});
    return code;
  });
#else
  return by_spare_thread(call.name,
                         [&] { return PMPI_Comm_dup_with_info(call.comm, info, created); });
#endif
}

}  // namespace

}  // namespace imbrex::mpi

// ---- what programs call ----------------------------------------------------------------------

IMBREX_FUNCTION(Comm_free)(MPI_Comm* comm) {
  using namespace imbrex::mpi;
  const int refused = close_for("MPI_Comm_free", *comm);
  return refused == MPI_SUCCESS ? PMPI_Comm_free(comm) : refused;
}

IMBREX_FUNCTION(Comm_disconnect)(MPI_Comm* comm) {
  using namespace imbrex::mpi;
  constexpr const char* name = "MPI_Comm_disconnect";
  int refused = refuse_where_forbidden(name);
  if (refused == MPI_SUCCESS) refused = close_for(name, *comm);
  if (refused != MPI_SUCCESS) return refused;
  return by_spare_thread(name, [comm] { return PMPI_Comm_disconnect(comm); });
}

IMBREX_FUNCTION(Comm_dup_with_info)(MPI_Comm comm, MPI_Info info, MPI_Comm* duplicate) {
  using namespace imbrex::mpi;
  const Call call{.name = "MPI_Comm_dup_with_info", .comm = comm, .kind = Kind::collective};
  int code = blocks::look_at_info(call, info);
  if (code == MPI_SUCCESS) code = dup_with_info(call, info, duplicate);
  return code == MPI_SUCCESS ? blocks::keep_info(call, *duplicate, info) : code;
}

IMBREX_FUNCTION(Comm_set_info)(MPI_Comm comm, MPI_Info info) {
  using namespace imbrex::mpi;
  const Call call{.name = "MPI_Comm_set_info", .comm = comm};
  if (const int code = blocks::look_at_info(call, info); code != MPI_SUCCESS) return code;
  // This comes before the call of MPI, since another thread may poll at this time.
  if (in_service() && info != MPI_INFO_NULL && messages::info_asserts_no_wildcards(info)) {
    if (messages::Communicator* const it = messages::communicator_of(comm)) it->stop_matching();
  }
  int code = PMPI_Comm_set_info(comm, info);
  if (code == MPI_SUCCESS) code = blocks::keep_info(call, comm, info);
  if (messages::Communicator* const it = messages::known_communicator_of(comm)) {
    sends::let_go_before(comm, -1);  // waiting sends were ordered under the earlier hints
    it->forget_assertions();
  }
  return code;
}
