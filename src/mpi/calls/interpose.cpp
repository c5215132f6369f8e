// SPDX-License-Identifier: BSD-3-Clause
// The MPI functions of calls.def, as programs call them. In a task they suspend it; elsewhere they
// are MPI's own, except collectives: a blocking and a non-blocking one do not match each other (MPI
// 3.1, section 5.12), so all ranks use the non-blocking ones, on every thread.
#include <memory>
#include <new>

#include "messages.hpp"
#include "calls/spare.hpp"
#include "calls/standard.hpp"
#include "wait.hpp"

namespace imbrex::mpi {

namespace {

template <class Count>
struct Sending {
  int (*start)(const void*, Count, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  const void* buffer;
  Count count;
  MPI_Datatype type;
  int destination;
  int tag;
  MPI_Comm comm;
};

template <class Count>
int send(const char* name, const Sending<Count>& it) {
  if (detail::tracing()) trace_sent({it.comm, it.destination, it.tag, it.count, it.type});
  const Call call{name, it.comm, it.destination, it.tag, it.count, it.type};
  return carry_out(call, MPI_STATUS_IGNORE, [&](MPI_Request* request) {
    return it.start(it.buffer, it.count, it.type, it.destination, it.tag, it.comm, request);
  });
}

// `blocking()` is MPI's own function, `start(&request)` its non-blocking twin.
template <class Blocking, class Start>
int by_twin_in_tasks(const Call& call, MPI_Status* status, Blocking blocking, Start start) {
  return suspends() ? carry_out(call, status, start) : blocking();
}

template <class Blocking, class Start>
int by_twin_everywhere(const Call& call, MPI_Status* status, Blocking blocking, Start start) {
  if (!active()) return blocking();
  if (detail::in_task()) return carry_out(call, status, start);
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = start(&request);
  return code == MPI_SUCCESS ? PMPI_Wait(&request, status) : code;
}

// `ask(&flag)` is the question that does not block.
template <class Blocking, class Ask>
int by_asking(const char* name, Blocking blocking, Ask ask) {
  return suspends() ? wait_until({name}, question(ask)) : blocking();
}

// Files have twins, but an operation that fails is in good hands only with the blocking call: on
// Open MPI 4.1 and 5 MPI_Test crashes, on MPICH 4 and 5 a full disk never completes. And a twin may
// read or write before it returns, which would keep the worker.
template <class Blocking, class Start>
int read_or_write(const Call& call, MPI_Status* status, Blocking blocking, Start start) {
  if (spare_threads_allowed()) return by_spare_thread(call.name, blocking);
  return by_twin_in_tasks(call, status, blocking, start);
}
template <class Blocking, class Start>
int read_or_write_all(const Call& call, MPI_Status* status, Blocking blocking, Start start) {
  if (spare_threads_allowed()) return by_spare_thread(call.name, blocking);
  return by_twin_everywhere(call, status, blocking, start);
}

// The calls that the functions below need with either type of count.
int start_receive(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                  MPI_Request* request) {
  return PMPI_Irecv(buffer, count, type, source, tag, comm, request);
}
int start_send(const void* buffer, int count, MPI_Datatype type, int destination, int tag,
               MPI_Comm comm, MPI_Request* request) {
  return PMPI_Isend(buffer, count, type, destination, tag, comm, request);
}
int start_matched(void* buffer, int count, MPI_Datatype type, MPI_Message* message,
                  MPI_Request* request) {
  return PMPI_Imrecv(buffer, count, type, message, request);
}
int pack_size(int count, MPI_Datatype type, MPI_Comm comm, int* bytes) {
  return PMPI_Pack_size(count, type, comm, bytes);
}
int pack(const void* buffer, int count, MPI_Datatype type, void* packed, int bytes, int* end,
         MPI_Comm comm) {
  return PMPI_Pack(buffer, count, type, packed, bytes, end, comm);
}
#if MPI_VERSION >= 4
int start_receive(void* buffer, MPI_Count count, MPI_Datatype type, int source, int tag,
                  MPI_Comm comm, MPI_Request* request) {
  return PMPI_Irecv_c(buffer, count, type, source, tag, comm, request);
}
int start_send(const void* buffer, MPI_Count count, MPI_Datatype type, int destination, int tag,
               MPI_Comm comm, MPI_Request* request) {
  return PMPI_Isend_c(buffer, count, type, destination, tag, comm, request);
}
int start_matched(void* buffer, MPI_Count count, MPI_Datatype type, MPI_Message* message,
                  MPI_Request* request) {
  return PMPI_Imrecv_c(buffer, count, type, message, request);
}
int pack_size(MPI_Count count, MPI_Datatype type, MPI_Comm comm, MPI_Count* bytes) {
  return PMPI_Pack_size_c(count, type, comm, bytes);
}
int pack(const void* buffer, MPI_Count count, MPI_Datatype type, void* packed, MPI_Count bytes,
         MPI_Count* end, MPI_Comm comm) {
  return PMPI_Pack_c(buffer, count, type, packed, bytes, end, comm);
}
#endif

// The functions that IMBREX_CALL names, for a caller that is in a task.
namespace in_task {

template <class Count>
int Recv(void* buffer, Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
         MPI_Status* status) {
  MPI_Status own;
  const bool traced = detail::tracing();
  if (traced && status == MPI_STATUS_IGNORE) status = &own;
  const Call call{"MPI_Recv", comm, source, tag, count, type};
  const int code = carry_out(call, status, [&](MPI_Request* request) {
    return start_receive(buffer, count, type, source, tag, comm, request);
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
  auto both = [&](int* done) { return PMPI_Testall(2, requests, done, statuses); };
  code = wait_until(call, question(both));
  if (code == MPI_ERR_IN_STATUS) {
    code = statuses[0].MPI_ERROR != MPI_SUCCESS ? statuses[0].MPI_ERROR : statuses[1].MPI_ERROR;
  }
  if (status != MPI_STATUS_IGNORE) {
    const int error = status->MPI_ERROR;  // calls with one status leave this field
    *status = statuses[0];
    status->MPI_ERROR = error;
  }
  if (detail::tracing() && code == MPI_SUCCESS) trace_received(call.comm, statuses[0]);
  return code;
}

template <class Count>
int Sendrecv(const void* send_buffer, Count send_count, MPI_Datatype send_type, int destination,
             int send_tag, void* buffer, Count count, MPI_Datatype type, int source, int tag,
             MPI_Comm comm, MPI_Status* status) {
  if (detail::tracing()) trace_sent({comm, destination, send_tag, send_count, send_type});
  const Call call{"MPI_Sendrecv", comm, source, tag, count, type};
  return exchange(
      call,
      [&](MPI_Request* request) {
        return start_receive(buffer, count, type, source, tag, comm, request);
      },
      [&](MPI_Request* request) {
        return start_send(send_buffer, send_count, send_type, destination, send_tag, comm, request);
      },
      status);
}

// The outgoing data are packed into memory of their own, so that both may travel at once.
template <class Count>
int Sendrecv_replace(void* buffer, Count count, MPI_Datatype type, int destination, int send_tag,
                     int source, int tag, MPI_Comm comm, MPI_Status* status) {
  if (count < 0) {  // MPI_Pack_size would call it another error
    PMPI_Comm_call_errhandler(comm, MPI_ERR_COUNT);
    return MPI_ERR_COUNT;
  }
  Count bytes = 0;
  int code = pack_size(count, type, comm, &bytes);
  if (code != MPI_SUCCESS) return code;
  const std::unique_ptr<char[]> packed(new (std::nothrow) char[static_cast<std::size_t>(bytes)]);
  if (packed == nullptr) {
    PMPI_Comm_call_errhandler(comm, MPI_ERR_NO_MEM);
    return MPI_ERR_NO_MEM;
  }
  Count end = 0;
  code = pack(buffer, count, type, packed.get(), bytes, &end, comm);
  if (code != MPI_SUCCESS) return code;

  if (detail::tracing()) trace_sent({comm, destination, send_tag, count, type});
  const Call call{"MPI_Sendrecv_replace", comm, source, tag, count, type};
  return exchange(
      call,
      [&](MPI_Request* request) {
        return start_receive(buffer, count, type, source, tag, comm, request);
      },
      [&](MPI_Request* request) {
        return start_send(packed.get(), end, MPI_PACKED, destination, send_tag, comm, request);
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
template <class Count>
int Mrecv(void* buffer, Count count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) {
  const Call call{.name = "MPI_Mrecv", .count = count, .type = type};
  return carry_out(call, status, [&](MPI_Request* request) {
    return start_matched(buffer, count, type, message, request);
  });
}

int Wait(MPI_Request* request, MPI_Status* status) {
  int done = 0;
  int code;
  {
    const Callback callback;
    code = PMPI_Test(request, &done, status);
  }
  if (done != 0 || code != MPI_SUCCESS) return code;
  return wait_pending({"MPI_Wait"}, *request, status);
}

int Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  auto all = [&](int* done) { return PMPI_Testall(count, requests, done, statuses); };
  return wait_until({"MPI_Waitall"}, question(all));
}

int Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  auto any = [&](int* done) { return PMPI_Testany(count, requests, index, done, status); };
  return wait_until({"MPI_Waitany"}, question(any));
}

int Waitsome(int count, MPI_Request requests[], int* found, int indices[], MPI_Status statuses[]) {
  auto some = [&](int* done) {
    const int code = PMPI_Testsome(count, requests, found, indices, statuses);
    *done = code != MPI_SUCCESS || *found != 0;  // MPI_UNDEFINED: there is nothing to wait for
    return code;
  };
  return wait_until({"MPI_Waitsome"}, question(some));
}

}  // namespace in_task
}  // namespace

// ---- what programs call ----------------------------------------------------------------------

#define IMBREX_AND_REQUEST(...) (__VA_ARGS__ __VA_OPT__(, ) request)
#define IMBREX_AND_FLAG(...) (__VA_ARGS__, flag)
#define IMBREX_AND_STATUS(...) (__VA_ARGS__, status)
#define IMBREX_AND_STATUS_PARAMETER(...) (__VA_ARGS__, MPI_Status* status)
#define IMBREX_AND_INIT(...) (__VA_ARGS__, info, request)
#define IMBREX_AND_INIT_PARAMETERS(...) (__VA_ARGS__, MPI_Info info, MPI_Request* request)

#define IMBREX_FUNCTION(name) extern "C" [[gnu::visibility("default")]] int MPI_##name

#define IMBREX_MAKE_SEND(name, twin)                                                       \
  IMBREX_FUNCTION(name)(const void* buffer, Count count, MPI_Datatype type,                \
                        int destination, int tag, MPI_Comm comm) {                         \
    if (!suspends()) return PMPI_##name(buffer, count, type, destination, tag, comm);      \
    return send<Count>("MPI_" #name,                                                       \
                       {&PMPI_##twin, buffer, count, type, destination, tag, comm});       \
  }

#define IMBREX_MAKE_CALL(name, function, parameters, arguments)                            \
  IMBREX_FUNCTION(name) parameters {                                                       \
    return suspends() ? in_task::function arguments : PMPI_##name arguments;               \
  }

#define IMBREX_MAKE_LOCAL(name, twin, parameters, arguments)                               \
  IMBREX_FUNCTION(name) parameters {                                                       \
    return by_twin_in_tasks(                                                               \
        {"MPI_" #name}, MPI_STATUS_IGNORE, [&] { return PMPI_##name arguments; },          \
        [&](MPI_Request* request) { return PMPI_##twin IMBREX_AND_REQUEST arguments; });   \
  }

// `how`: read_or_write or read_or_write_all.
#define IMBREX_MAKE_FILE(how, name, twin, parameters, arguments)                           \
  IMBREX_FUNCTION(name) IMBREX_AND_STATUS_PARAMETER parameters {                           \
    return how(                                                                            \
        {"MPI_" #name, MPI_COMM_NULL, -1, -1, count, type}, status,                        \
        [&] { return PMPI_##name IMBREX_AND_STATUS arguments; },                           \
        [&](MPI_Request* request) { return PMPI_##twin IMBREX_AND_REQUEST arguments; });   \
  }

#define IMBREX_MAKE_COLLECTIVE(name, twin, parameters, arguments)                          \
  IMBREX_FUNCTION(name) parameters {                                                       \
    return by_twin_everywhere(                                                             \
        {"MPI_" #name, comm}, MPI_STATUS_IGNORE, [&] { return PMPI_##name arguments; },    \
        [&](MPI_Request* request) { return PMPI_##twin IMBREX_AND_REQUEST arguments; });   \
  }

#define IMBREX_MAKE_SPARE(name, parameters, arguments)                                     \
  IMBREX_FUNCTION(name) parameters {                                                       \
    return by_spare_thread("MPI_" #name, [&] { return PMPI_##name arguments; });           \
  }

#define IMBREX_MAKE_ASK(name, question, parameters, arguments)                             \
  IMBREX_FUNCTION(name) parameters {                                                       \
    return by_asking(                                                                      \
        "MPI_" #name, [&] { return PMPI_##name arguments; },                               \
        [&](int* flag) { return PMPI_##question IMBREX_AND_FLAG arguments; });             \
  }

#if IMBREX_MPI_4
#define IMBREX_MAKE_INIT(name, parameters, arguments)                                      \
  IMBREX_MAKE_SPARE(name, IMBREX_AND_INIT_PARAMETERS parameters, IMBREX_AND_INIT arguments)
#else
#define IMBREX_MAKE_INIT(name, parameters, arguments)
#endif

// The table is read once for the functions that count with int, with those that count nothing...
namespace of_int {
using Count = int;
using Place = int;
#define IMBREX_SEND_C IMBREX_MAKE_SEND
#define IMBREX_CALL(name, twin, parameters, arguments)                                     \
  IMBREX_MAKE_CALL(name, name, parameters, arguments)
#define IMBREX_CALL_C IMBREX_CALL
#define IMBREX_LOCAL IMBREX_MAKE_LOCAL
#define IMBREX_FILE_C(...) IMBREX_MAKE_FILE(read_or_write, __VA_ARGS__)
#define IMBREX_FILE_ALL_C(...) IMBREX_MAKE_FILE(read_or_write_all, __VA_ARGS__)
#define IMBREX_COLLECTIVE IMBREX_MAKE_COLLECTIVE
#define IMBREX_COLLECTIVE_C(name, twin, parameters, arguments)                             \
  IMBREX_MAKE_COLLECTIVE(name, twin, parameters, arguments)                                \
  IMBREX_MAKE_INIT(name##_init, parameters, arguments)
#define IMBREX_SPARE IMBREX_MAKE_SPARE
#define IMBREX_ASK IMBREX_MAKE_ASK
#define IMBREX_SPARE_C IMBREX_MAKE_SPARE
#include "calls/calls.def"
}  // namespace of_int

// ... and once for those of large counts.
#if MPI_VERSION >= 4
namespace of_count {
using Count = MPI_Count;
using Place = MPI_Aint;
#define IMBREX_SEND_C(name, twin) IMBREX_MAKE_SEND(name##_c, twin##_c)
#define IMBREX_CALL_C(name, twin, parameters, arguments)                                   \
  IMBREX_MAKE_CALL(name##_c, name, parameters, arguments)
#define IMBREX_FILE_C(name, twin, parameters, arguments)                                   \
  IMBREX_MAKE_FILE(read_or_write, name##_c, twin##_c, parameters, arguments)
#define IMBREX_FILE_ALL_C(name, twin, parameters, arguments)                               \
  IMBREX_MAKE_FILE(read_or_write_all, name##_c, twin##_c, parameters, arguments)
#define IMBREX_COLLECTIVE_C(name, twin, parameters, arguments)                             \
  IMBREX_MAKE_COLLECTIVE(name##_c, twin##_c, parameters, arguments)                        \
  IMBREX_MAKE_INIT(name##_init_c, parameters, arguments)
#define IMBREX_SPARE_C(name, parameters, arguments)                                        \
  IMBREX_MAKE_SPARE(name##_c, parameters, arguments)
#include "calls/calls.def"
}  // namespace of_count
#endif

}  // namespace imbrex::mpi
