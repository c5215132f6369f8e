// SPDX-License-Identifier: BSD-3-Clause
// A tool below imbrex, linked behind it: collectives that do not block, and the messages that stand
// for some, fail when they are told to.
#include <dlfcn.h>
#include <mpi.h>

#include <atomic>

#define FAILING_EXPORT extern "C" [[gnu::visibility("default")]]

namespace {

std::atomic<int> left{-1};  // calls that succeed; below 0: all do

template <class Function>
Function* next(const char* name, Function*) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
bool fails() { return left.load() >= 0 && left.fetch_sub(1) == 0; }

}  // namespace

// The call after the next `calls` ones fails.
FAILING_EXPORT void failing_after(int calls) { left.store(calls); }

FAILING_EXPORT int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  if (fails()) return MPI_ERR_OTHER;
  return next("MPI_Ibarrier", &MPI_Ibarrier)(comm, request);
}
FAILING_EXPORT int MPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type,
                                  MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  if (fails()) return MPI_ERR_OTHER;
  return next("MPI_Iallreduce", &MPI_Iallreduce)(from, to, count, type, op, comm, request);
}
FAILING_EXPORT int MPI_Irecv(void* to, int count, MPI_Datatype type, int from, int tag,
                             MPI_Comm comm, MPI_Request* request) {
  if (fails()) return MPI_ERR_OTHER;
  return next("MPI_Irecv", &MPI_Irecv)(to, count, type, from, tag, comm, request);
}
FAILING_EXPORT int MPI_Isend(const void* from, int count, MPI_Datatype type, int to, int tag,
                             MPI_Comm comm, MPI_Request* request) {
  if (fails()) return MPI_ERR_OTHER;
  return next("MPI_Isend", &MPI_Isend)(from, count, type, to, tag, comm, request);
}
