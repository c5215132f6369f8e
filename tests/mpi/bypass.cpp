// SPDX-License-Identifier: BSD-3-Clause
// A program that may not start: it is linked such that imbrex::mpi is not reached, or its MPI gives
// too little. Built once for each way, with one macro defined.
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>

#ifdef BYPASS_RECV
// As a profiling tool does that is linked into the program: imbrex never sees the call.
extern "C" [[gnu::visibility("default")]] int MPI_Recv(void* buffer, int count,
                                                       MPI_Datatype type, int source, int tag,
                                                       MPI_Comm comm, MPI_Status* status) {
  return PMPI_Recv(buffer, count, type, source, tag, comm, status);
}
#endif

#ifdef BYPASS_LEVEL
// As an MPI without thread support.
extern "C" [[gnu::visibility("default")]] int PMPI_Init_thread(int* argc, char*** argv,
                                                               int required, int* provided) {
  using Init = int(int*, char***, int, int*);
  auto* const real = reinterpret_cast<Init*>(dlsym(RTLD_NEXT, "PMPI_Init_thread"));
  const int code = real(argc, argv, required, provided);
  *provided = MPI_THREAD_SERIALIZED;
  return code;
}
#endif

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int value = 0;
  MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  std::puts("ran to its end");
}
