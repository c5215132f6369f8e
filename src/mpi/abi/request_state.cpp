// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/abi/request_state.hpp"

#ifdef OPEN_MPI

#include <utility>

namespace imbrex::mpi {

bool reads_requests = false;
MPI_Request never_complete = MPI_REQUEST_NULL;

namespace {

bool start_on_demand(MPI_Request* request) noexcept {
  constexpr auto query = [](void*, MPI_Status* status) {
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
  };
  constexpr auto release = [](void*) { return MPI_SUCCESS; };
  constexpr auto cancel = [](void*, int) { return MPI_SUCCESS; };
  return PMPI_Grequest_start(query, release, cancel, nullptr, request) == MPI_SUCCESS;
}

// Tests a request that completes on demand.
bool reads_pending_and_complete() noexcept {
  MPI_Request request;
  if (!start_on_demand(&request)) return false;
  const bool pending = state_of(request) == RequestState::pending;
  PMPI_Grequest_complete(request);
  const bool complete = state_of(request) == RequestState::complete;
  PMPI_Wait(&request, MPI_STATUS_IGNORE);
  return pending && complete;
}

// Tests a persistent receive from this rank, through all its states.
bool reads_inactive() noexcept {
  constexpr int tag = 28'657;
  char in = 0;
  const char out = 1;
  MPI_Request request;
  if (PMPI_Recv_init(&in, 1, MPI_CHAR, 0, tag, MPI_COMM_SELF, &request) != MPI_SUCCESS) {
    return false;
  }
  bool right = state_of(request) == RequestState::inactive;
  PMPI_Start(&request);
  right = right && state_of(request) == RequestState::pending;
  PMPI_Rsend(&out, 1, MPI_CHAR, 0, tag, MPI_COMM_SELF);
  int over = 0;
  while (over == 0) PMPI_Request_get_status(request, &over, MPI_STATUS_IGNORE);
  right = right && state_of(request) == RequestState::complete;
  PMPI_Wait(&request, MPI_STATUS_IGNORE);
  right = right && state_of(request) == RequestState::inactive;
  PMPI_Request_free(&request);
  return right;
}

}  // namespace

void learn_to_read_requests() noexcept {
  reads_requests = state_of(MPI_REQUEST_NULL) == RequestState::inactive &&
                   reads_pending_and_complete() && reads_inactive() &&
                   start_on_demand(&never_complete);
}

void end_reading_requests() noexcept {
  if (!std::exchange(reads_requests, false)) return;
  PMPI_Grequest_complete(never_complete);
  PMPI_Wait(&never_complete, MPI_STATUS_IGNORE);
}

}  // namespace imbrex::mpi

#endif
