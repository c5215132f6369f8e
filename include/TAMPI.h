/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface of Task-Aware MPI (TAMPI) over imbrex. A program written for TAMPI includes this
   header in place of TAMPI's own, links imbrex::mpi in place of libtampi, and makes its calls from
   imbrex tasks. docs/user/coming-from-tampi.md explains each call.

   All functions return MPI's codes. Any thread may call them between MPI_Init and MPI_Finalize,
   unless the comment says otherwise. Only TAMPI_Wait and TAMPI_Waitall suspend. */
#ifndef TAMPI_H
#define TAMPI_H

#include <mpi.h>

/* The version of TAMPI's interface. A program written for TAMPI 1 to 3, where TAMPI_Isend and
   similar calls return a request, defines IMBREX_TAMPI_3 before it includes this header. */
#ifdef IMBREX_TAMPI_3
#define TAMPI_VERSION_MAJOR 3
#define IMBREX_TAMPI_REQUEST , MPI_Request* request
#define IMBREX_TAMPI_SYMBOL(name) __asm__("imbrex_tampi_3_" name)
#else
#define TAMPI_VERSION_MAJOR 4
#define IMBREX_TAMPI_REQUEST
#define IMBREX_TAMPI_SYMBOL(name)
#endif
#define TAMPI_VERSION_MINOR 0

/* A level for MPI_Init_thread, which provides it on request. */
#define MPI_TASK_MULTIPLE (MPI_THREAD_MULTIPLE + 1)

#define TAMPI_PROPERTY_BLOCKING_MODE 0x1     /* read only: 1 if MPI_TASK_MULTIPLE was provided */
#define TAMPI_PROPERTY_NONBLOCKING_MODE 0x2  /* read only: 1 if TAMPI_Iwait binds requests */
/* 1: MPI_Init also does TAMPI_Init's work; set it before */
#define TAMPI_PROPERTY_AUTO_INIT 0x3
#define TAMPI_PROPERTY_THREAD_TASKAWARE 0x4  /* of the running task; 0: its blocking calls block */

#ifdef __cplusplus
extern "C" {
#endif

/* For programs that have set TAMPI_PROPERTY_AUTO_INIT to 0. `required` and `provided` as for
   MPI_Init_thread. MPI_ERR_OTHER outside of MPI_Init and MPI_Finalize. */
int TAMPI_Init(int required, int* provided);
int TAMPI_Finalize(void);

/* At any time. MPI_ERR_ARG for an unknown property, and for a property that cannot be set now. */
int TAMPI_Property_get(int property, int* value);
int TAMPI_Property_set(int property, int value);
int TAMPI_Blocking_enabled(int* flag);
int TAMPI_Nonblocking_enabled(int* flag);

/* Takes the requests over, which become MPI_REQUEST_NULL, and returns at once: the running task,
   once its body has ended, keeps its dependents waiting for the requests, too. Null requests are
   ignored. The statuses are written as the requests complete, before a dependent runs, so they must
   outlive the body; MPI_STATUS(ES)_IGNORE is allowed.

   If a request fails, the task fails, and the finish around it reports that; TAMPI_Iwait also
   returns the code if it is known at once. Persistent requests: MPI_ERR_REQUEST. In main and in
   other threads of the program, TAMPI_Wait waits for the requests. */
int TAMPI_Iwait(MPI_Request* request, MPI_Status* status);
int TAMPI_Iwaitall(int count, MPI_Request requests[], MPI_Status* statuses);

/* Calls of TAMPI 1 to 3. In tasks they do nothing. In main and in other threads of the program
   they wait for all requests that the thread has given to TAMPI_Iwait and the calls below.
   Suspend main. With the non-blocking mode disabled: MPI_Wait and MPI_Waitall. */
int TAMPI_Wait(MPI_Request* request, MPI_Status* status);
int TAMPI_Waitall(int count, MPI_Request requests[], MPI_Status* statuses);

/* MPI_I..., then TAMPI_Iwait of its request. With IMBREX_TAMPI_3 defined the calls have an
   argument for that request, as in TAMPI 1 to 3: it is null when they return. */
int TAMPI_Isend(const void* buffer, int count, MPI_Datatype type, int destination, int tag,
                MPI_Comm comm IMBREX_TAMPI_REQUEST) IMBREX_TAMPI_SYMBOL("Isend");
int TAMPI_Issend(const void* buffer, int count, MPI_Datatype type, int destination, int tag,
                 MPI_Comm comm IMBREX_TAMPI_REQUEST) IMBREX_TAMPI_SYMBOL("Issend");
int TAMPI_Irsend(const void* buffer, int count, MPI_Datatype type, int destination, int tag,
                 MPI_Comm comm IMBREX_TAMPI_REQUEST) IMBREX_TAMPI_SYMBOL("Irsend");
int TAMPI_Ibsend(const void* buffer, int count, MPI_Datatype type, int destination, int tag,
                 MPI_Comm comm IMBREX_TAMPI_REQUEST) IMBREX_TAMPI_SYMBOL("Ibsend");
int TAMPI_Irecv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm
                IMBREX_TAMPI_REQUEST, MPI_Status* status) IMBREX_TAMPI_SYMBOL("Irecv");
int TAMPI_Ibarrier(MPI_Comm comm IMBREX_TAMPI_REQUEST) IMBREX_TAMPI_SYMBOL("Ibarrier");
int TAMPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm
                 IMBREX_TAMPI_REQUEST) IMBREX_TAMPI_SYMBOL("Ibcast");
int TAMPI_Igather(const void* from, int from_count, MPI_Datatype from_type, void* to,
                  int to_count, MPI_Datatype to_type, int root, MPI_Comm comm
                  IMBREX_TAMPI_REQUEST) IMBREX_TAMPI_SYMBOL("Igather");
int TAMPI_Igatherv(const void* from, int from_count, MPI_Datatype from_type, void* to,
                   const int to_counts[], const int places[], MPI_Datatype to_type, int root,
                   MPI_Comm comm IMBREX_TAMPI_REQUEST) IMBREX_TAMPI_SYMBOL("Igatherv");
int TAMPI_Iscatter(const void* from, int from_count, MPI_Datatype from_type, void* to,
                   int to_count, MPI_Datatype to_type, int root, MPI_Comm comm
                   IMBREX_TAMPI_REQUEST) IMBREX_TAMPI_SYMBOL("Iscatter");
int TAMPI_Iscatterv(const void* from, const int from_counts[], const int places[],
                    MPI_Datatype from_type, void* to, int to_count, MPI_Datatype to_type,
                    int root, MPI_Comm comm IMBREX_TAMPI_REQUEST)
                    IMBREX_TAMPI_SYMBOL("Iscatterv");
int TAMPI_Iallgather(const void* from, int from_count, MPI_Datatype from_type, void* to,
                     int to_count, MPI_Datatype to_type, MPI_Comm comm IMBREX_TAMPI_REQUEST)
                     IMBREX_TAMPI_SYMBOL("Iallgather");
int TAMPI_Iallgatherv(const void* from, int from_count, MPI_Datatype from_type, void* to,
                      const int to_counts[], const int places[], MPI_Datatype to_type,
                      MPI_Comm comm IMBREX_TAMPI_REQUEST) IMBREX_TAMPI_SYMBOL("Iallgatherv");
int TAMPI_Ialltoall(const void* from, int from_count, MPI_Datatype from_type, void* to,
                    int to_count, MPI_Datatype to_type, MPI_Comm comm IMBREX_TAMPI_REQUEST)
                    IMBREX_TAMPI_SYMBOL("Ialltoall");
int TAMPI_Ialltoallv(const void* from, const int from_counts[], const int from_places[],
                     MPI_Datatype from_type, void* to, const int to_counts[],
                     const int to_places[], MPI_Datatype to_type, MPI_Comm comm
                     IMBREX_TAMPI_REQUEST) IMBREX_TAMPI_SYMBOL("Ialltoallv");
int TAMPI_Ialltoallw(const void* from, const int from_counts[], const int from_places[],
                     const MPI_Datatype from_types[], void* to, const int to_counts[],
                     const int to_places[], const MPI_Datatype to_types[], MPI_Comm comm
                     IMBREX_TAMPI_REQUEST) IMBREX_TAMPI_SYMBOL("Ialltoallw");
int TAMPI_Ireduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, int root,
                  MPI_Comm comm IMBREX_TAMPI_REQUEST) IMBREX_TAMPI_SYMBOL("Ireduce");
int TAMPI_Iallreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                     MPI_Comm comm IMBREX_TAMPI_REQUEST) IMBREX_TAMPI_SYMBOL("Iallreduce");
int TAMPI_Ireduce_scatter_block(const void* from, void* to, int count, MPI_Datatype type,
                                MPI_Op op, MPI_Comm comm IMBREX_TAMPI_REQUEST)
                                IMBREX_TAMPI_SYMBOL("Ireduce_scatter_block");
int TAMPI_Ireduce_scatter(const void* from, void* to, const int counts[], MPI_Datatype type,
                          MPI_Op op, MPI_Comm comm IMBREX_TAMPI_REQUEST)
                          IMBREX_TAMPI_SYMBOL("Ireduce_scatter");
int TAMPI_Iscan(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm
                IMBREX_TAMPI_REQUEST) IMBREX_TAMPI_SYMBOL("Iscan");
int TAMPI_Iexscan(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm IMBREX_TAMPI_REQUEST) IMBREX_TAMPI_SYMBOL("Iexscan");

#ifdef __cplusplus
}
#endif

#undef IMBREX_TAMPI_REQUEST
#undef IMBREX_TAMPI_SYMBOL
#endif
