// SPDX-License-Identifier: BSD-3-Clause
// MPI_Sendrecv and MPI_Sendrecv_replace: a receive and a send at once.
#include <climits>
#include <memory>
#include <new>

#include "messages.hpp"
#include "receive/calls.hpp"
#include "wait.hpp"

namespace imbrex::mpi::receive {

namespace {

struct Sending {
  const void* buffer;
  MPI_Count count;
  MPI_Datatype type;
  int destination;
  int tag;
  MPI_Comm comm;
};

int isend(const Sending& it, MPI_Request* request) {
  const Callback callback;
#if MPI_VERSION >= 4
  if (it.count > INT_MAX) {
    return PMPI_Isend_c(it.buffer, it.count, it.type, it.destination, it.tag, it.comm, request);
  }
#endif
  return PMPI_Isend(it.buffer, static_cast<int>(it.count), it.type, it.destination, it.tag, it.comm,
                    request);
}

int exchange(const char* name, const Sending& sending, const Arguments& it, MPI_Status* status) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int code = irecv(name, it, &requests[0]);
  if (code != MPI_SUCCESS) return code;
  const check::Guard guard({.name = name,
                            .comm = sending.comm,
                            .peer = sending.destination,
                            .tag = sending.tag,
                            .count = sending.count,
                            .type = sending.type},
                           {sending.buffer, false});
  code = isend(sending, &requests[1]);
  if (code != MPI_SUCCESS) {
    // The buffer is the caller's again only when MPI has let go of it.
    (void)cancel(&requests[0]);
    (void)wait(name, &requests[0], MPI_STATUS_IGNORE);
    return code;
  }
  MPI_Status statuses[2] = {};
  code = wait_all(name, 2, requests, statuses);
  if (code == MPI_ERR_IN_STATUS) {
    code = statuses[0].MPI_ERROR != MPI_SUCCESS ? statuses[0].MPI_ERROR : statuses[1].MPI_ERROR;
  }
  copy_status(statuses[0], status);
  if (code == MPI_SUCCESS && detail::tracing() && suspends()) {
    trace_received(it.comm, statuses[0]);
  }
  return code;
}

void trace(const Sending& it) noexcept {
  if (!detail::tracing() || !suspends()) return;
  trace_sent({it.comm, it.destination, it.tag, static_cast<int>(it.count), it.type});
}

int fail(MPI_Comm comm, int code) {
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

// The outgoing data are packed into memory of their own, so that both may travel at once.
int replace(const char* name, const Sending& sending, const Arguments& it, MPI_Status* status) {
  if (it.count < 0) return fail(it.comm, MPI_ERR_COUNT);  // MPI_Pack_size calls it another error
  trace(sending);
  const Sending* const to_pack = &sending;
  MPI_Count bytes = 0;
  MPI_Count end = 0;
  std::unique_ptr<char[]> packed;
  const auto allocate = [&] {
    packed.reset(new (std::nothrow) char[static_cast<std::size_t>(bytes)]);
    return packed != nullptr;
  };
#if MPI_VERSION >= 4
  int code = PMPI_Pack_size_c(to_pack->count, to_pack->type, it.comm, &bytes);
  if (code != MPI_SUCCESS) return code;
  if (!allocate()) return fail(it.comm, MPI_ERR_NO_MEM);
  code = PMPI_Pack_c(to_pack->buffer, to_pack->count, to_pack->type, packed.get(), bytes, &end,
                     it.comm);
#else
  int size = 0;
  int code = PMPI_Pack_size(static_cast<int>(to_pack->count), to_pack->type, it.comm, &size);
  if (code != MPI_SUCCESS) return code;
  bytes = size;
  if (!allocate()) return fail(it.comm, MPI_ERR_NO_MEM);
  int position = 0;
  code = PMPI_Pack(to_pack->buffer, static_cast<int>(to_pack->count), to_pack->type, packed.get(),
                   size, &position, it.comm);
  end = position;
#endif
  if (code != MPI_SUCCESS) return code;
  return exchange(name,
                  {packed.get(), end, MPI_PACKED, sending.destination, sending.tag, sending.comm},
                  it, status);
}

}  // namespace
}  // namespace imbrex::mpi::receive

// ---- what programs call ----------------------------------------------------------------------

#define IMBREX_EXCHANGES(suffix, Count)                                                           \
  extern "C" [[gnu::visibility("default")]] int MPI_Sendrecv##suffix(                             \
      const void* send_buffer, Count send_count, MPI_Datatype send_type, int destination,         \
      int send_tag, void* buffer, Count count, MPI_Datatype type, int source, int tag,            \
      MPI_Comm comm, MPI_Status* status) {                                                        \
    using namespace imbrex::mpi::receive;                                                         \
    const Sending sending{send_buffer, send_count, send_type, destination, send_tag, comm};       \
    trace(sending);                                                                               \
    return exchange("MPI_Sendrecv" #suffix, sending,                                              \
                    {buffer, count, type, {source, tag}, comm}, status);                          \
  }                                                                                               \
  extern "C" [[gnu::visibility("default")]] int MPI_Sendrecv_replace##suffix(                     \
      void* buffer, Count count, MPI_Datatype type, int destination, int send_tag, int source,    \
      int tag, MPI_Comm comm, MPI_Status* status) {                                               \
    return imbrex::mpi::receive::replace("MPI_Sendrecv_replace" #suffix,                          \
                                         {buffer, count, type, destination, send_tag, comm},      \
                                         {buffer, count, type, {source, tag}, comm}, status);     \
  }

IMBREX_EXCHANGES(, int)
#if MPI_VERSION >= 4
IMBREX_EXCHANGES(_c, MPI_Count)
#endif
