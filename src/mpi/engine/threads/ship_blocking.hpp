// SPDX-License-Identifier: BSD-3-Clause
// Blocking calls where every call is shipped: the thread that makes them must never wait in MPI, so
// the non-blocking twin is shipped, and then tests until it is complete. For threads outside of
// tasks: in a task the caller has used the twin already.
#pragma once

#include <mpi.h>

#include "mpi/abi/switches.hpp"
#include "mpi/engine/threads/ship.hpp"

namespace imbrex::mpi::threads {

[[nodiscard]] inline bool must_ship() noexcept {
  return switches.ships_calls.load(std::memory_order_relaxed) && !on_mpi_thread();
}

// Called between two tests: yields the processor in early rounds, and sleeps for a moment in later
// ones.
void wait_between_questions(int round) noexcept;

// `ask(&done)` returns MPI's code.
template <class Ask>
int ask_until_done(Ask ask) {
  for (int round = 0;; ++round) {
    int done = 0;
    const int code = ask(&done);
    if (done != 0 || code != MPI_SUCCESS) return code;
    wait_between_questions(round);
  }
}

// PMPI_Wait for a request that was started with the result `code`.
inline int wait_for(int code, MPI_Request& request, MPI_Status* status) {
  if (code != MPI_SUCCESS) return code;
  return ask_until_done(
      [&](int* done) { return Shipped<PMPI_Test>::call(&request, done, status); });
}

template <auto Function>
struct Blocking;

template <auto Function, auto Start, class Count>
struct BlockingSend {
  static int call(const void* buffer, Count count, MPI_Datatype type, int destination, int tag,
                  MPI_Comm comm) {
    if (!must_ship()) return call_next<Function>(buffer, count, type, destination, tag, comm);
    MPI_Request request = MPI_REQUEST_NULL;
    const int code =
        Shipped<Start>::call(buffer, count, type, destination, tag, comm, &request);
    return wait_for(code, request, MPI_STATUS_IGNORE);
  }
};

template <auto Function, auto Start, class Count>
struct BlockingReceive {
  static int call(void* buffer, Count count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
                  MPI_Status* status) {
    if (!must_ship()) return call_next<Function>(buffer, count, type, source, tag, comm, status);
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = Shipped<Start>::call(buffer, count, type, source, tag, comm, &request);
    return wait_for(code, request, status);
  }
};

template <auto Function, auto Start, class Count>
struct BlockingMatchedReceive {
  static int call(void* buffer, Count count, MPI_Datatype type, MPI_Message* message,
                  MPI_Status* status) {
    if (!must_ship()) return call_next<Function>(buffer, count, type, message, status);
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = Shipped<Start>::call(buffer, count, type, message, &request);
    return wait_for(code, request, status);
  }
};

template <auto Function, auto StartReceive, auto StartSend, class Count>
struct BlockingExchange {
  static int call(const void* out, Count out_count, MPI_Datatype out_type, int destination,
                  int out_tag, void* in, Count in_count, MPI_Datatype in_type, int source,
                  int in_tag, MPI_Comm comm, MPI_Status* status) {
    if (!must_ship()) {
      return call_next<Function>(out, out_count, out_type, destination, out_tag, in, in_count,
                                 in_type, source, in_tag, comm, status);
    }
    MPI_Request receive = MPI_REQUEST_NULL;
    MPI_Request send = MPI_REQUEST_NULL;
    int code = Shipped<StartReceive>::call(in, in_count, in_type, source, in_tag, comm, &receive);
    if (code != MPI_SUCCESS) return code;
    code = Shipped<StartSend>::call(out, out_count, out_type, destination, out_tag, comm, &send);
    if (code != MPI_SUCCESS) Shipped<PMPI_Cancel>::call(&receive);
    const int sent = wait_for(code, send, MPI_STATUS_IGNORE);
    const int received = wait_for(MPI_SUCCESS, receive, status);
    return sent != MPI_SUCCESS ? sent : received;
  }
};

#define IMBREX_BLOCKING(name, twin, kind, Count) \
  template <>                                    \
  struct Blocking<PMPI_##name> : kind<PMPI_##name, PMPI_##twin, Count> {};
#define IMBREX_ALL_BLOCKING(suffix, Count)                                                   \
  IMBREX_BLOCKING(Send##suffix, Isend##suffix, BlockingSend, Count)                          \
  IMBREX_BLOCKING(Ssend##suffix, Issend##suffix, BlockingSend, Count)                        \
  IMBREX_BLOCKING(Rsend##suffix, Irsend##suffix, BlockingSend, Count)                        \
  IMBREX_BLOCKING(Bsend##suffix, Ibsend##suffix, BlockingSend, Count)                        \
  IMBREX_BLOCKING(Recv##suffix, Irecv##suffix, BlockingReceive, Count)                       \
  IMBREX_BLOCKING(Mrecv##suffix, Imrecv##suffix, BlockingMatchedReceive, Count)              \
  template <>                                                                                \
  struct Blocking<PMPI_Sendrecv##suffix>                                                     \
      : BlockingExchange<PMPI_Sendrecv##suffix, PMPI_Irecv##suffix, PMPI_Isend##suffix, Count> {};
IMBREX_ALL_BLOCKING(, int)
#if MPI_VERSION >= 4
IMBREX_ALL_BLOCKING(_c, MPI_Count)
#endif
#undef IMBREX_ALL_BLOCKING
#undef IMBREX_BLOCKING

template <>
struct Blocking<PMPI_Probe> {
  static int call(int source, int tag, MPI_Comm comm, MPI_Status* status) {
    if (!must_ship()) return call_next<PMPI_Probe>(source, tag, comm, status);
    return ask_until_done([&](int* done) {
      return Shipped<PMPI_Iprobe>::call(source, tag, comm, done, status);
    });
  }
};

template <>
struct Blocking<PMPI_Mprobe> {
  static int call(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
    if (!must_ship()) return call_next<PMPI_Mprobe>(source, tag, comm, message, status);
    return ask_until_done([&](int* done) {
      return Shipped<PMPI_Improbe>::call(source, tag, comm, done, message, status);
    });
  }
};

template <>
struct Blocking<PMPI_Wait> {
  static int call(MPI_Request* request, MPI_Status* status) {
    if (!must_ship()) return call_next<PMPI_Wait>(request, status);
    return wait_for(MPI_SUCCESS, *request, status);
  }
};

template <>
struct Blocking<PMPI_Waitall> {
  static int call(int count, MPI_Request requests[], MPI_Status statuses[]) {
    if (!must_ship()) return call_next<PMPI_Waitall>(count, requests, statuses);
    return ask_until_done([&](int* done) {
      return Shipped<PMPI_Testall>::call(count, requests, done, statuses);
    });
  }
};

template <>
struct Blocking<PMPI_Waitany> {
  static int call(int count, MPI_Request requests[], int* index, MPI_Status* status) {
    if (!must_ship()) return call_next<PMPI_Waitany>(count, requests, index, status);
    return ask_until_done([&](int* done) {
      return Shipped<PMPI_Testany>::call(count, requests, index, done, status);
    });
  }
};

template <>
struct Blocking<PMPI_Waitsome> {
  static int call(int count, MPI_Request requests[], int* found, int indices[],
                  MPI_Status statuses[]) {
    if (!must_ship()) return call_next<PMPI_Waitsome>(count, requests, found, indices, statuses);
    return ask_until_done([&](int* done) {
      const int code = Shipped<PMPI_Testsome>::call(count, requests, found, indices, statuses);
      *done = *found != 0 ? 1 : 0;  // MPI_UNDEFINED: there is nothing to wait for
      return code;
    });
  }
};

}  // namespace imbrex::mpi::threads
