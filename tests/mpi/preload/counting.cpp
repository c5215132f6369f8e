// SPDX-License-Identifier: BSD-3-Clause
// A profiling tool: counts calls, and says in MPI_Finalize how many there were. Built twice: once
// it goes on to PMPI_X, as most tools do, once (COUNTING_NEXT) to the next definition of MPI_X.
#include <dlfcn.h>
#include <mpi.h>

#include <atomic>
#include <cstdio>

#ifdef COUNTING_NEXT
#define GO_ON(name) reinterpret_cast<decltype(&PMPI_##name)>(dlsym(RTLD_NEXT, "MPI_" #name))
#else
#define GO_ON(name) PMPI_##name
#endif

#define COUNTED(name, parameters, arguments)                                       \
  static std::atomic<long> calls_of_##name{0};                                     \
  extern "C" [[gnu::visibility("default")]] int MPI_##name parameters {            \
    ++calls_of_##name;                                                             \
    return GO_ON(name) arguments;                                                  \
  }

COUNTED(Init, (int* argc, char*** argv), (argc, argv))
COUNTED(Init_thread, (int* argc, char*** argv, int required, int* provided),
        (argc, argv, required, provided))
COUNTED(Send, (const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm),
        (buffer, count, type, to, tag, comm))
COUNTED(Isend, (const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
                MPI_Request* request),
        (buffer, count, type, to, tag, comm, request))
COUNTED(Recv, (void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
               MPI_Status* status),
        (buffer, count, type, from, tag, comm, status))
COUNTED(Irecv, (void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                MPI_Request* request),
        (buffer, count, type, from, tag, comm, request))
COUNTED(Waitall, (int count, MPI_Request requests[], MPI_Status statuses[]),
        (count, requests, statuses))
COUNTED(Allreduce, (const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                    MPI_Comm comm),
        (from, to, count, type, op, comm))

COUNTED(Test, (MPI_Request* request, int* flag, MPI_Status* status), (request, flag, status))
COUNTED(Iprobe, (int from, int tag, MPI_Comm comm, int* flag, MPI_Status* status),
        (from, tag, comm, flag, status))

extern "C" [[gnu::visibility("default")]] int MPI_Finalize() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    std::fprintf(stderr,
                 "counting: inits %ld, Send %ld, Isend %ld, Recv %ld, Irecv %ld, Waitall %ld, "
                 "Allreduce %ld\n",
                 calls_of_Init + calls_of_Init_thread, calls_of_Send.load(), calls_of_Isend.load(),
                 calls_of_Recv.load(), calls_of_Irecv.load(), calls_of_Waitall.load(),
                 calls_of_Allreduce.load());
  }
  return GO_ON(Finalize)();
}
