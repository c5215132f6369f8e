// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/progress/open_mpi_request.hpp"

#include <cstddef>
#include <cstring>

#include "mpi/below/abi/request_state.hpp"

namespace imbrex::mpi::progress {

#ifdef OPEN_MPI

namespace {

void (*notice_completion)() noexcept = nullptr;  // check_request_callback() sets it, before use

using Callback = int(MPI_Request);

// Offsets of more members of ompi_request_t.
using request_layout::complete_at;
constexpr std::size_t callback_at = 136;
constexpr std::size_t data_at = 144;
constexpr std::size_t object_at = 152;

void* member(MPI_Request request, std::size_t offset) noexcept {
  void* value;
  std::memcpy(&value, reinterpret_cast<const char*>(request) + offset, sizeof value);
  return value;
}

Callback** callback_of(MPI_Request request) noexcept {
  return reinterpret_cast<Callback**>(reinterpret_cast<char*>(request) + callback_at);
}

// Returns zero: MPI goes on as without it. MPI has cleared the member before the call.
int on_completion(MPI_Request) {
  notice_completion();
  return 0;
}

int checked_calls = 0;
MPI_Request checked_request = MPI_REQUEST_NULL;
int on_checked_completion(MPI_Request request) {
  if (request == checked_request) ++checked_calls;
  return 0;
}

}  // namespace

// A receive from oneself: what must be null is null, the communicator stands where it should, and
// the callback comes, once, with the request.
std::string check_request_callback(void (*notice)() noexcept) {
  const std::string failed =
      "the requests of this Open MPI are not laid out as those of 4.1 and 5.0: leave "
      "IMBREX_REQUEST_CALLBACK at 0";
  char in = 0;
  const char out = 1;
  constexpr int tag = 28'657;
  MPI_Request request;
  if (PMPI_Irecv(&in, 1, MPI_CHAR, 0, tag, MPI_COMM_SELF, &request) != MPI_SUCCESS) return failed;
  const bool laid_out = member(request, complete_at) == nullptr &&
                        member(request, callback_at) == nullptr &&
                        member(request, data_at) == nullptr &&
                        member(request, object_at) == static_cast<void*>(MPI_COMM_SELF);
  checked_request = request;
  checked_calls = 0;
  if (laid_out) *callback_of(request) = &on_checked_completion;
  MPI_Request sent;
  PMPI_Isend(&out, 1, MPI_CHAR, 0, tag, MPI_COMM_SELF, &sent);
  PMPI_Wait(&sent, MPI_STATUS_IGNORE);
  PMPI_Wait(&request, MPI_STATUS_IGNORE);
  if (!laid_out || checked_calls != 1 || in != out) return failed;
  notice_completion = notice;
  return "";
}

void call_back_when_complete(MPI_Request request) noexcept {
  if (request == MPI_REQUEST_NULL || *callback_of(request) != nullptr) return;
  *callback_of(request) = &on_completion;
  // It may have completed before it had the callback: then nobody will call.
  if (member(request, complete_at) != nullptr) notice_completion();
}

#else

std::string check_request_callback(void (*)() noexcept) {
  return "IMBREX_REQUEST_CALLBACK is for Open MPI: leave it at 0 with this MPI";
}

void call_back_when_complete(MPI_Request) noexcept {}

#endif

}  // namespace imbrex::mpi::progress
