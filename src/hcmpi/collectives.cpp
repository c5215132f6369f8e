// SPDX-License-Identifier: BSD-3-Clause
// hcmpi.h: start and end, and the collectives of MPI: in a task imbrex::mpi suspends it.
#include <cstdlib>
#include <cstring>
#include <string>

#include "imbrex/compat/hcmpi.h"
#include "hcmpi/distributed.hpp"
#include "hcmpi/report.hpp"
#include "imbrex/mpi.hpp"

namespace imbrex::hcmpi {

namespace {

// Habanero-C's option for the number of workers; removed from the arguments.
void take_workers(int* const argc, char** const argv) {
  for (int i = 1; i < *argc; ++i) {
    if (std::strcmp(argv[i], "-nproc") != 0) continue;
    if (i + 1 == *argc) refuse("HCMPI_Init", MPI_ERR_ARG, "-nproc needs a number after it");
    // The option refuses a text that is no number, with the valid values.
    setenv("IMBREX_WORKERS", argv[i + 1], 1);
    for (int j = i + 2; j <= *argc; ++j) argv[j - 2] = argv[j];  // the null behind them too
    *argc -= 2;
    return;
  }
}

// call() is a call of MPI, and returns a code.
template <class Call>
int forward(const char* const name, Call&& call) {
  return guard(name, [&] {
    require_mpi(name);
    return call();
  });
}

}  // namespace

}  // namespace imbrex::hcmpi

using imbrex::hcmpi::forward;
using imbrex::hcmpi::guard;

#pragma GCC visibility push(default)
extern "C" {

int HCMPI_Init(int* const argc, char*** const argv) {
  return guard("HCMPI_Init", [&] {
    int begun = 0;
    MPI_Initialized(&begun);
    if (begun != 0) {
      imbrex::hcmpi::refuse("HCMPI_Init", MPI_ERR_OTHER, "MPI has been initialised before");
    }
    if (argc != nullptr && argv != nullptr) imbrex::hcmpi::take_workers(argc, *argv);
    const int code = MPI_Init(argc, argv);
    if (code == MPI_SUCCESS) imbrex::hcmpi::open_distributed();
    return code;
  });
}
int HCMPI_Finalize(void) {
  return forward("HCMPI_Finalize", [] { return MPI_Finalize(); });
}
int HCMPI_Comm_rank(const HCMPI_Comm comm, int* const rank) {
  return forward("HCMPI_Comm_rank", [&] { return MPI_Comm_rank(comm, rank); });
}
int HCMPI_Comm_size(const HCMPI_Comm comm, int* const size) {
  return forward("HCMPI_Comm_size", [&] { return MPI_Comm_size(comm, size); });
}

int HCMPI_Barrier(const HCMPI_Comm comm) {
  return forward("HCMPI_Barrier", [&] { return MPI_Barrier(comm); });
}
int HCMPI_Bcast(void* const buffer, const int count, const HCMPI_Datatype type, const int root,
                const HCMPI_Comm comm) {
  return forward("HCMPI_Bcast", [&] { return MPI_Bcast(buffer, count, type, root, comm); });
}
int HCMPI_Reduce(const void* const send, void* const receive, const int count,
                 const HCMPI_Datatype type, const HCMPI_Op op, const int root,
                 const HCMPI_Comm comm) {
  return forward("HCMPI_Reduce",
                 [&] { return MPI_Reduce(send, receive, count, type, op, root, comm); });
}
int HCMPI_Allreduce(const void* const send, void* const receive, const int count,
                    const HCMPI_Datatype type, const HCMPI_Op op, const HCMPI_Comm comm) {
  return forward("HCMPI_Allreduce",
                 [&] { return MPI_Allreduce(send, receive, count, type, op, comm); });
}
int HCMPI_Scan(const void* const send, void* const receive, const int count,
               const HCMPI_Datatype type, const HCMPI_Op op, const HCMPI_Comm comm) {
  return forward("HCMPI_Scan", [&] { return MPI_Scan(send, receive, count, type, op, comm); });
}
int HCMPI_Scatter(const void* const send, const int send_count, const HCMPI_Datatype send_type,
                  void* const receive, const int receive_count, const HCMPI_Datatype receive_type,
                  const int root, const HCMPI_Comm comm) {
  return forward("HCMPI_Scatter", [&] {
    return MPI_Scatter(send, send_count, send_type, receive, receive_count, receive_type, root,
                       comm);
  });
}
int HCMPI_Gather(const void* const send, const int send_count, const HCMPI_Datatype send_type,
                 void* const receive, const int receive_count, const HCMPI_Datatype receive_type,
                 const int root, const HCMPI_Comm comm) {
  return forward("HCMPI_Gather", [&] {
    return MPI_Gather(send, send_count, send_type, receive, receive_count, receive_type, root,
                      comm);
  });
}
int HCMPI_Allgather(const void* const send, const int send_count, const HCMPI_Datatype send_type,
                    void* const receive, const int receive_count,
                    const HCMPI_Datatype receive_type, const HCMPI_Comm comm) {
  return forward("HCMPI_Allgather", [&] {
    return MPI_Allgather(send, send_count, send_type, receive, receive_count, receive_type, comm);
  });
}
int HCMPI_Alltoall(const void* const send, const int send_count, const HCMPI_Datatype send_type,
                   void* const receive, const int receive_count,
                   const HCMPI_Datatype receive_type, const HCMPI_Comm comm) {
  return forward("HCMPI_Alltoall", [&] {
    return MPI_Alltoall(send, send_count, send_type, receive, receive_count, receive_type, comm);
  });
}

}  // extern "C"
#pragma GCC visibility pop
