// SPDX-License-Identifier: BSD-3-Clause
// The MPI functions of calls.def, as programs call them. In a task they suspend it; elsewhere they
// are MPI's own, except collectives: a blocking and a non-blocking one do not match each other (MPI
// 3.1, section 5.12), so all ranks use the non-blocking ones, on every thread.
#include <memory>
#include <new>

#include "messages.hpp"
#include "wait.hpp"

namespace imbrex::mpi {

namespace {

using SendStart = int(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);

struct Sending {
  const void* buffer;
  int count;
  MPI_Datatype type;
  int destination;
  int tag;
  MPI_Comm comm;
};

int send(const char* name, SendStart* start, const Sending& it) {
  if (detail::tracing()) trace_sent({it.comm, it.destination, it.tag, it.count, it.type});
  const Call call{name, it.comm, it.destination, it.tag, it.count, it.type};
  return carry_out(call, MPI_STATUS_IGNORE, [&](MPI_Request* request) {
    return start(it.buffer, it.count, it.type, it.destination, it.tag, it.comm, request);
  });
}

template <class Blocking, class Start>
int collective(const Call& call, Blocking blocking, Start start) {
  if (!active()) return blocking();
  if (detail::in_task()) return carry_out(call, MPI_STATUS_IGNORE, start);
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = start(&request);
  if (code != MPI_SUCCESS) return code;
  return settle(call, asked::Wait(&request, MPI_STATUS_IGNORE));
}

// The functions that IMBREX_CALL names, for a caller that is in a task.
namespace in_task {

int Recv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
         MPI_Status* status) {
  // Does not block; MPICH 4 gives the non-blocking one a status of zeros.
  if (source == MPI_PROC_NULL) return PMPI_Recv(buffer, count, type, source, tag, comm, status);
  MPI_Status own;
  const bool traced = detail::tracing();
  if (traced && status == MPI_STATUS_IGNORE) status = &own;
  const Call call{"MPI_Recv", comm, source, tag, count, type};
  const int code = carry_out(call, status, [&](MPI_Request* request) {
    return PMPI_Irecv(buffer, count, type, source, tag, comm, request);
  });
  if (traced && code == MPI_SUCCESS) trace_received(comm, *status);
  return code;
}

// Receives and sends at once; the second question is for both.
template <class StartReceive, class StartSend>
int exchange(const Call& call, StartReceive start_receive, StartSend start_send,
             MPI_Status* status) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int code;
  {
    const Callback callback;
    code = start_receive(&requests[0]);
    if (code != MPI_SUCCESS) return code;
    code = start_send(&requests[1]);
    if (code != MPI_SUCCESS) PMPI_Cancel(&requests[0]);
  }
  if (code != MPI_SUCCESS) {
    // The buffer is the caller's again only when MPI has let go of it.
    (void)wait_pending(call, requests[0], MPI_STATUS_IGNORE);
    return code;
  }
  MPI_Status statuses[2] = {};
  asked::Testall test;
  auto both = [&](int* done) { return test(2, requests, done, statuses); };
  code = wait_until(call, question(both));
  if (code == MPI_ERR_IN_STATUS) {
    code = statuses[0].MPI_ERROR != MPI_SUCCESS ? statuses[0].MPI_ERROR : statuses[1].MPI_ERROR;
  }
  if (call.peer == MPI_PROC_NULL) {  // see Recv
    (void)PMPI_Recv(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, call.comm, &statuses[0]);
  }
  if (status != MPI_STATUS_IGNORE) {
    const int error = status->MPI_ERROR;  // calls with one status leave this field
    *status = statuses[0];
    status->MPI_ERROR = error;
  }
  if (detail::tracing() && code == MPI_SUCCESS) trace_received(call.comm, statuses[0]);
  return code;
}

int Sendrecv(const void* send_buffer, int send_count, MPI_Datatype send_type, int destination,
             int send_tag, void* buffer, int count, MPI_Datatype type, int source, int tag,
             MPI_Comm comm, MPI_Status* status) {
  if (detail::tracing()) trace_sent({comm, destination, send_tag, send_count, send_type});
  const Call call{"MPI_Sendrecv", comm, source, tag, count, type};
  return exchange(
      call,
      [&](MPI_Request* request) {
        return PMPI_Irecv(buffer, count, type, source, tag, comm, request);
      },
      [&](MPI_Request* request) {
        return PMPI_Isend(send_buffer, send_count, send_type, destination, send_tag, comm, request);
      },
      status);
}

// The outgoing data are packed into memory of their own, so that both may travel at once.
int Sendrecv_replace(void* buffer, int count, MPI_Datatype type, int destination, int send_tag,
                     int source, int tag, MPI_Comm comm, MPI_Status* status) {
  if (count < 0) {  // MPI_Pack_size would call it another error
    PMPI_Comm_call_errhandler(comm, MPI_ERR_COUNT);
    return MPI_ERR_COUNT;
  }
  int bytes = 0;
  int code = PMPI_Pack_size(count, type, comm, &bytes);
  if (code != MPI_SUCCESS) return code;
  const std::unique_ptr<char[]> packed(new (std::nothrow) char[static_cast<std::size_t>(bytes)]);
  if (packed == nullptr) {
    PMPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
  }
  int end = 0;
  code = PMPI_Pack(buffer, count, type, packed.get(), bytes, &end, comm);
  if (code != MPI_SUCCESS) return code;

  if (detail::tracing()) trace_sent({comm, destination, send_tag, count, type});
  const Call call{"MPI_Sendrecv_replace", comm, source, tag, count, type};
  return exchange(
      call,
      [&](MPI_Request* request) {
        return PMPI_Irecv(buffer, count, type, source, tag, comm, request);
      },
      [&](MPI_Request* request) {
        return PMPI_Isend(packed.get(), end, MPI_PACKED, destination, send_tag, comm, request);
      },
      status);
}

int Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  auto arrived = [&](int* done) { return PMPI_Iprobe(source, tag, comm, done, status); };
  return wait_until({"MPI_Probe", comm, source, tag}, question(arrived));
}

int Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  auto arrived = [&](int* done) { return PMPI_Improbe(source, tag, comm, done, message, status); };
  return wait_until({"MPI_Mprobe", comm, source, tag}, question(arrived));
}

// Not traced: a matched message does not say its communicator.
int Mrecv(void* buffer, int count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) {
  const Call call{.name = "MPI_Mrecv", .count = count, .type = type};
  return carry_out(call, status, [&](MPI_Request* request) {
    return PMPI_Imrecv(buffer, count, type, message, request);
  });
}

int Wait(MPI_Request* request, MPI_Status* status) {
  return wait_for({"MPI_Wait"}, *request, status);
}

int Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  asked::Testall test;
  auto all = [&](int* done) { return test(count, requests, done, statuses); };
  return wait_until({"MPI_Waitall"}, question(all));
}

int Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  auto any = [&](int* done) { return asked::Testany(count, requests, index, done, status); };
  return wait_until({"MPI_Waitany"}, question(any));
}

int Waitsome(int count, MPI_Request requests[], int* found, int indices[], MPI_Status statuses[]) {
  auto some = [&](int* done) {
    const Said said = asked::Testsome(count, requests, found, indices, statuses);
    *done = said.code != MPI_SUCCESS || *found != 0;  // MPI_UNDEFINED: there is nothing to wait for
    return said;
  };
  return wait_until({"MPI_Waitsome"}, question(some));
}

}  // namespace in_task
}  // namespace
}  // namespace imbrex::mpi

// ---- what programs call ----------------------------------------------------------------------

#define IMBREX_LIST(...) __VA_ARGS__

#define IMBREX_SEND(name, twin)                                                                 \
  extern "C" [[gnu::visibility("default")]] int MPI_##name(                                     \
      const void* buffer, int count, MPI_Datatype type, int destination, int tag,               \
      MPI_Comm comm) {                                                                          \
    if (!imbrex::mpi::suspends()) return PMPI_##name(buffer, count, type, destination, tag, comm); \
    return imbrex::mpi::send("MPI_" #name, &PMPI_##twin,                                        \
                             {buffer, count, type, destination, tag, comm});                    \
  }

#define IMBREX_CALL(name, twin, parameters, arguments)                    \
  extern "C" [[gnu::visibility("default")]] int MPI_##name parameters {   \
    if (!imbrex::mpi::suspends()) return PMPI_##name arguments;           \
    return imbrex::mpi::in_task::name arguments;                          \
  }

#define IMBREX_COLLECTIVE(name, twin, parameters, arguments)                                  \
  extern "C" [[gnu::visibility("default")]] int MPI_##name parameters {                       \
    return imbrex::mpi::collective(                                                           \
        {"MPI_" #name, comm}, [&] { return PMPI_##name arguments; },                          \
        [&](MPI_Request* request) { return PMPI_##twin(IMBREX_LIST arguments, request); });   \
  }

#include "calls.def"
