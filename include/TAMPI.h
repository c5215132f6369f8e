/* SPDX-License-Identifier: BSD-3-Clause */
/* The interface of Task-Aware MPI (TAMPI), carried out by imbrex: a program that was written for
   TAMPI includes this header instead, links imbrex::mpi instead of libtampi, and makes its calls
   from imbrex tasks. docs/user/coming-from-tampi.md says what each means here.

   All functions return MPI's codes and may be called by any thread, between MPI_Init and
   MPI_Finalize unless they say otherwise. None suspends but TAMPI_Wait and TAMPI_Waitall. */
#ifndef TAMPI_H
#define TAMPI_H

#include <mpi.h>

/* Of TAMPI's interface. A program that was written for TAMPI 1 to 3, whose TAMPI_Isend and so on
   return a request, defines IMBREX_TAMPI_3 before it includes this header. */
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

/* For MPI_Init_thread, which gives it if it is asked for. */
#define MPI_TASK_MULTIPLE (MPI_THREAD_MULTIPLE + 1)

#define TAMPI_PROPERTY_BLOCKING_MODE 0x1     /* read only: MPI_TASK_MULTIPLE was given */
#define TAMPI_PROPERTY_NONBLOCKING_MODE 0x2  /* read only: TAMPI_Iwait binds requests */
#define TAMPI_PROPERTY_AUTO_INIT 0x3         /* MPI_Init does TAMPI_Init's work; set before it */
#define TAMPI_PROPERTY_THREAD_TASKAWARE 0x4  /* of the task: 0, its blocking calls block */

#ifdef __cplusplus
extern "C" {
#endif

/* For programs that have set TAMPI_PROPERTY_AUTO_INIT to 0. `required` and `provided` as those of
   MPI_Init_thread. MPI_ERR_OTHER outside of MPI_Init and MPI_Finalize. */
int TAMPI_Init(int required, int* provided);
int TAMPI_Finalize(void);

/* Any time. MPI_ERR_ARG for an unknown property, and for one that cannot be set, or not now. */
int TAMPI_Property_get(int property, int* value);
int TAMPI_Property_set(int property, int value);
int TAMPI_Blocking_enabled(int* flag);
int TAMPI_Nonblocking_enabled(int* flag);

/* Takes the requests over, which become MPI_REQUEST_NULL, and returns at once: the running task,
   once its body has ended, keeps its dependents waiting for them too. Null requests are left out.
   The statuses are written as the requests complete, before a dependent runs, so they must outlive
   the body; MPI_STATUS(ES)_IGNORE is allowed. Not for persistent requests: MPI_ERR_REQUEST. If a
   request fails, so does the task, and the finish around it says so; TAMPI_Iwait returns the code
   too if that is known at once. In main and in threads of the program's own, TAMPI_Wait waits. */
int TAMPI_Iwait(MPI_Request* request, MPI_Status* status);
int TAMPI_Iwaitall(int count, MPI_Request requests[], MPI_Status* statuses);

/* Of TAMPI 1 to 3. In tasks: nothing. In main and in threads of the program's own: waits for all
   that this thread has given to TAMPI_Iwait and the calls below. Suspends main. With the
   non-blocking mode disabled: MPI_Wait and MPI_Waitall. */
int TAMPI_Wait(MPI_Request* request, MPI_Status* status);
int TAMPI_Waitall(int count, MPI_Request requests[], MPI_Status* statuses);

/* MPI_I..., then TAMPI_Iwait of its request. With IMBREX_TAMPI_3 defined they have an argument for
   that request, as in TAMPI 1 to 3: it is null when they return. */
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
