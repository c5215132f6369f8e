// SPDX-License-Identifier: BSD-3-Clause
// A tool below imbrex, linked behind it: an MPI that gives less than MPI_THREAD_MULTIPLE. The macro
// CAPPED_LEVEL is the level that it gives. At MPI_THREAD_FUNNELED it ends the program if a thread
// calls MPI that has not initialised it.
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

namespace {

pthread_t only;
bool initialised = false;

template <class Function>
Function* next(const char* name, Function*) {
  if (CAPPED_LEVEL == MPI_THREAD_FUNNELED && initialised &&
      pthread_equal(only, pthread_self()) == 0) {
    std::fprintf(stderr, "capped: %s called by another thread than MPI_Init_thread\n", name);
    std::_Exit(1);
  }
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define CAPPED_EXPORT extern "C" [[gnu::visibility("default")]] int

CAPPED_EXPORT MPI_Init_thread(int* argc, char*** argv, int, int* provided) {
  const int code =
      next("MPI_Init_thread", &MPI_Init_thread)(argc, argv, CAPPED_LEVEL, provided);
  *provided = CAPPED_LEVEL;
  only = pthread_self();
  initialised = true;
  return code;
}

#define CAPPED(name, parameters, arguments)                   \
  CAPPED_EXPORT MPI_##name parameters {                       \
    return next("MPI_" #name, &MPI_##name) arguments;         \
  }
CAPPED(Isend,
       (const void* buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
        MPI_Request* request),
       (buffer, count, type, to, tag, comm, request))
CAPPED(Irecv,
       (void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
        MPI_Request* request),
       (buffer, count, type, from, tag, comm, request))
CAPPED(Test, (MPI_Request * request, int* done, MPI_Status* status), (request, done, status))
CAPPED(Testsome,
       (int count, MPI_Request requests[], int* found, int indices[], MPI_Status statuses[]),
       (count, requests, found, indices, statuses))
CAPPED(Iprobe, (int from, int tag, MPI_Comm comm, int* found, MPI_Status* status),
       (from, tag, comm, found, status))
CAPPED(Iallreduce,
       (const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
        MPI_Request* request),
       (from, to, count, type, op, comm, request))
CAPPED(Wait, (MPI_Request * request, MPI_Status* status), (request, status))
CAPPED(Recv,
       (void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
        MPI_Status* status),
       (buffer, count, type, from, tag, comm, status))
CAPPED(Comm_rank, (MPI_Comm comm, int* rank), (comm, rank))
CAPPED(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm* made), (comm, color, key, made))
CAPPED(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm* made),
       (comm, group, tag, made))
CAPPED(Comm_disconnect, (MPI_Comm * comm), (comm))
CAPPED(Comm_free, (MPI_Comm * comm), (comm))
CAPPED(Win_fence, (int assertion, MPI_Win window), (assertion, window))
CAPPED(Type_size, (MPI_Datatype type, int* bytes), (type, bytes))
CAPPED(Finalize, (), ())
