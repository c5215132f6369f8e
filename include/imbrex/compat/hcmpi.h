/* SPDX-License-Identifier: BSD-3-Clause */
/* HCMPI for C: the calls of Habanero-C MPI (Chatterjee et al., IPDPS 2013, Table I) over imbrex.

   Tasks (hc_async) and scopes that wait for them (hc_finish), data-driven futures (DDF_*), and MPI,
   where a request is a data-driven future: tasks may await it. docs/user/hcmpi.md has the whole.

   Errors. Every function that returns int returns HCMPI_SUCCESS or a code of MPI's:
   - an operation of MPI fails: its code, after the communicator's error handler, as MPI does;
   - misuse (MPI_ERR_ARG, MPI_ERR_REQUEST, MPI_ERR_OTHER, as said below): hc_set_errors() decides.
     By default the program ends, by MPI_Abort, with a line that names the call, the task, and what
     to do. With HC_ERRORS_RETURN the code is returned (of a function that returns a pointer: NULL),
     nothing else has happened, and hc_message() has the line.
   A pointer that is no handle of the kind that is asked for (null, freed, never made) is misuse.

   Handles belong to the program, which frees them by the function named *_FREE, once. What awaits
   one, and an operation under way, keeps what it needs: the handle may be freed meanwhile, unless a
   task's body uses it. What is never freed lives until the end of the program.

   Thread safety: every function, any task, and any thread of the program's own. "Suspends" says
   that the task may go on in another thread; outside of tasks the thread is blocked. */
#ifndef IMBREX_HCMPI_H
#define IMBREX_HCMPI_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types and constants: MPI's ---- */

typedef MPI_Comm HCMPI_Comm;
typedef MPI_Datatype HCMPI_Datatype;
typedef MPI_Op HCMPI_Op;
typedef MPI_Status HCMPI_Status;

#define HCMPI_SUCCESS MPI_SUCCESS
#define HCMPI_COMM_WORLD MPI_COMM_WORLD
#define HCMPI_COMM_SELF MPI_COMM_SELF
#define HCMPI_ANY_SOURCE MPI_ANY_SOURCE
#define HCMPI_ANY_TAG MPI_ANY_TAG
#define HCMPI_PROC_NULL MPI_PROC_NULL
#define HCMPI_IN_PLACE MPI_IN_PLACE
#define HCMPI_UNDEFINED MPI_UNDEFINED
#define HCMPI_STATUS_IGNORE ((HCMPI_Status**)0)
#define HCMPI_STATUSES_IGNORE ((HCMPI_Status**)0)

#define HCMPI_BYTE MPI_BYTE
#define HCMPI_CHAR MPI_CHAR
#define HCMPI_SHORT MPI_SHORT
#define HCMPI_INT MPI_INT
#define HCMPI_UNSIGNED MPI_UNSIGNED
#define HCMPI_LONG MPI_LONG
#define HCMPI_UNSIGNED_LONG MPI_UNSIGNED_LONG
#define HCMPI_LONG_LONG MPI_LONG_LONG
#define HCMPI_FLOAT MPI_FLOAT
#define HCMPI_DOUBLE MPI_DOUBLE

#define HCMPI_SUM MPI_SUM
#define HCMPI_PROD MPI_PROD
#define HCMPI_MIN MPI_MIN
#define HCMPI_MAX MPI_MAX
#define HCMPI_LAND MPI_LAND
#define HCMPI_LOR MPI_LOR
#define HCMPI_BAND MPI_BAND
#define HCMPI_BOR MPI_BOR
#define HCMPI_MINLOC MPI_MINLOC
#define HCMPI_MAXLOC MPI_MAXLOC

/* ---- start, end, errors ---- */

/* As MPI_Init; with `-nproc N` among the arguments, which it takes out, the runtime has N workers
   (IMBREX_WORKERS), unless a task has started it before. MPI_Init does as well. */
int HCMPI_Init(int* argc, char*** argv);
/* Waits for every task, then MPI_Finalize. Suspends. Tasks and data-driven futures work before
   HCMPI_Init and after this; of what is named HCMPI_* only what creates and frees. */
int HCMPI_Finalize(void);
int HCMPI_Comm_rank(HCMPI_Comm comm, int* rank);
int HCMPI_Comm_size(HCMPI_Comm comm, int* size);
#define HCMPI_COMM_RANK(comm, rank) HCMPI_Comm_rank(comm, rank)
#define HCMPI_COMM_SIZE(comm, size) HCMPI_Comm_size(comm, size)

enum { HC_ERRORS_ARE_FATAL = 0, HC_ERRORS_RETURN = 1 };
/* For the whole process, from now on. MPI_ERR_ARG: neither of the two. */
int hc_set_errors(int how);
/* Why the last call of this thread that failed did: to be read right after it. */
const char* hc_message(void);

/* ---- data-driven futures ---- */

/* A place for one pointer, that is put once. */
typedef struct hc_ddf DDF_t;

/* Null for want of memory. The program frees it. */
#define DDF_CREATE() hc_ddf_create(__FILE__, __LINE__)
/* Tasks that await it become ready. The pointer is kept, and not what it points to. MPI_ERR_OTHER:
   a second put, which names both places. MPI_ERR_REQUEST: of a request that is MPI's. */
#define DDF_PUT(ddf, pointer) hc_ddf_put(ddf, pointer, __FILE__, __LINE__)
/* What was put; of a request, its HCMPI_Status, which lives as long as the request. Never suspends:
   before the put it is misuse (MPI_ERR_OTHER), which names both places. */
#define DDF_GET(ddf) hc_ddf_get(ddf, __FILE__, __LINE__)
/* Frees *ddf, and sets it to null. Whoever awaits one that nobody can put any more fails. */
#define DDF_FREE(ddf) hc_ddf_free(ddf)

/* What these macros call. */
DDF_t* hc_ddf_create(const char* file, int line);
int hc_ddf_put(DDF_t* ddf, void* pointer, const char* file, int line);
void* hc_ddf_get(DDF_t* ddf, const char* file, int line);
int hc_ddf_free(DDF_t** ddf);

/* The future that has this number on all ranks: distributed, put once by any of them, and read and
   awaited on all, as those of DDF_CREATE. The program defines DDF_HOME(guid), the rank of
   MPI_COMM_WORLD on which the value stays, and DDF_SIZE(guid), its bytes; both are the same on all
   ranks, and `guid` is evaluated three times. The same handle for the same number, until that is
   freed. No message is sent for it, and none to ranks that do not await it.
   - DDF_PUT copies DDF_SIZE bytes from `pointer` on, and returns at once. Elsewhere than at home a
     finish around it waits until the home has them, and fails if they were put before.
   - DDF_GET points to the bytes that are here, which live as long as the handle, or null if there
     are 0; nobody may write to them. Whoever has not awaited the future may find nothing yet.
   - Awaiting it fetches the value, once for each rank.
   Misuse, and null: MPI_ERR_ARG, a home that is no rank; a home or size that is not what it was
   before, or to another rank, which names both. MPI_ERR_OTHER: outside of HCMPI_Init and
   HCMPI_Finalize. A value whose size differs at home fails those who await it. */
#define DDF_HANDLE(guid) hc_ddf_handle((guid), DDF_HOME(guid), DDF_SIZE(guid))
DDF_t* hc_ddf_handle(uint64_t guid, int home, size_t bytes);

/* Futures that one task awaits. Only one task or thread at a time may use a list. */
typedef struct hc_ddf_list DDF_list_t;
DDF_list_t* DDF_LIST_CREATE(void); /* null for want of memory */
int DDF_LIST_ADD(DDF_t* ddf, DDF_list_t* list); /* the list keeps it: it may be freed */
int DDF_LIST_FREE(DDF_list_t** list);

/* malloc() and free(), by the names of Habanero-C. */
void* hc_malloc(size_t bytes);
void hc_free(void* memory);

/* ---- places ---- */

/* A part of the workers (docs/user/places.md); never freed. Null in hc_clauses: that of the running
   task. */
typedef struct hc_place place_t;
/* The one that the running task was given; if none, one that stands for all workers. */
place_t* hc_get_current_place(void);
/* The one around a place, and around that of the running task; of all workers, itself. Null, and
   misuse: `place` is none (MPI_ERR_ARG), or of a runtime that has ended. */
place_t* hc_get_place_parent(const place_t* place);
place_t* hc_get_parent_place(void);
int hc_num_places(void);
/* From 0 on. Null, and MPI_ERR_ARG as misuse, if there is none of that number. */
place_t* hc_get_place(int number);
/* Its number; -1 of all workers. */
int hc_get_place_number(const place_t* place);

/* ---- phasers and accumulators ---- */

/* Barriers and signals between tasks that come and go (docs/user/phasers.md), and reductions over
   them; of one process, or over the ranks of a communicator, whose collective ends each phase.
   A phaser belongs to the finish in which it is made: at the end of that the task which made it
   drops it, before it waits. The handle is freed by PHASER_FREE when no task uses it any more;
   what accum_get() has returned is gone then. */
struct hc_phaser;
#ifndef __cplusplus /* a name that C++ programs have other uses for */
typedef struct hc_phaser phaser;
#endif

/* A task hands on its own mode or a weaker one: SINGLE_MODE may hand on all, SIGNAL_WAIT_MODE the
   last three, the last two only themselves. */
enum {
  HC_SAME_MODE = 0, /* in a clause: that of the running task */
  SINGLE_MODE,      /* as the next, and for hc_next_single() */
  SIGNAL_WAIT_MODE, /* the others wait for its signal, and it waits for theirs */
  SIGNAL_ONLY_MODE, /* it never waits */
  WAIT_ONLY_MODE    /* nobody waits for it */
};

typedef struct {
  const HCMPI_Comm* comm; /* null: HCMPI_COMM_WORLD. May be freed before the phaser ends */
  const char* name;       /* the same on all ranks; in reports; copied */
  int fuzzy;              /* 1: ranks begin to meet when the first task has signalled. Weaker than a
                             barrier (imbrex/mpi_phaser.hpp); not for accumulators */
  unsigned ahead;         /* phases that a signaller may be ahead of who waits; 0: any number */
  const int* key;         /* ranks find each other by this number, 0 to 2^29 - 1, whatever else they
                             make meanwhile: tasks may make several, in any order. Null: none */
  int ranks_may_leave;    /* 1: phases go on without ranks all of whose signallers have left */
} hc_phaser_options;

/* These register the running task; `options` may be null. Those of HCMPI are collective over the
   ranks, in the order of the communicator's other collectives unless there is a key, and suspend.
   Null, as misuse: a mode that is none, or cannot be (WAIT_ONLY_MODE over ranks); the ranks' names
   or options differ, which is said on all of them. */
#define PHASER_CREATE(mode) hc_phaser_create(mode, __FILE__, __LINE__)
#define HCMPI_PHASER_CREATE(mode) HCMPI_PHASER_CREATE_WITH(mode, NULL)
#define HCMPI_PHASER_CREATE_WITH(mode, options) \
  hcmpi_phaser_create(mode, options, __FILE__, __LINE__)
struct hc_phaser* hc_phaser_create(int mode, const char* file, int line);
struct hc_phaser* hcmpi_phaser_create(int mode, const hc_phaser_options* options,
                                      const char* file, int line);
/* Accumulators: phasers of SIGNAL_WAIT_MODE whose tasks put a value in each phase. `type` has at
   most 64 bytes, and `op` is any operation for it, which must not wait; the program frees neither
   before the phaser has ended. Misuse, MPI_ERR_TYPE: a larger type, or one with a lower bound. */
#define HCMPI_ACCUM_CREATE(op, type) HCMPI_ACCUM_CREATE_WITH(op, type, NULL)
#define HCMPI_ACCUM_CREATE_WITH(op, type, options) \
  hcmpi_accum_create(op, type, options, __FILE__, __LINE__)
struct hc_phaser* hcmpi_accum_create(HCMPI_Op op, HCMPI_Datatype type,
                                     const hc_phaser_options* options, const char* file,
                                     int line);
int PHASER_FREE(struct hc_phaser** handle);

/* On all phasers of the running task: signals, then waits until each of them has ended its phase.
   Suspends. Returns the code of MPI's collective, if that has failed. MPI_ERR_OTHER: misuse, as
   that the task is registered on none. */
int hc_next(void);
/* The same for a task that is registered on one phaser, in SINGLE_MODE as all there: one of them
   calls f(argument), when all have signalled and before any goes on. */
int hc_next_single(void (*f)(void* argument), void* argument);
/* The halves of hc_next(), and the end of the registration; on one phaser, or on all of the task's
   if it is null. Only hc_wait() suspends, and hc_signal() with hc_phaser_options::ahead.
   MPI_ERR_OTHER: misuse, as a wait without a signal before it. */
int hc_signal(struct hc_phaser* handle);
int hc_wait(struct hc_phaser* handle);
int hc_drop(struct hc_phaser* handle);

/* Puts the value at `value` into each accumulator that the running task is registered on, then
   hc_next(). MPI_ERR_OTHER: misuse, as that there is none. */
int accum_next(const void* value);
/* The value of all tasks, and ranks, in the phase before the one that the task is in; bytes of 0 if
   there was none. For a task that is not registered (after the finish, say) the last one; then it
   suspends until the ranks have met. The value stays until the caller's next hc_next(). Null, and
   as misuse MPI_ERR_ARG: no accumulator; MPI_ERR_OTHER: in a mode that does not know which phase is
   over. */
void* accum_get(struct hc_phaser* accumulator);

/* ---- tasks ---- */

/* The running task must be registered on the phaser, in a mode that allows this one, and spawn the
   task in the phaser's own finish; else misuse (MPI_ERR_OTHER). */
typedef struct {
  struct hc_phaser* on;
  int mode;
} hc_phased;

/* Clauses of one task: all that is left out, or 0, asks for nothing. Read by hc_async() only. */
typedef struct {
  const char* name;             /* in reports; copied, each text once for the whole program */
  DDF_t* const* await;          /* `await_count` of them: it begins when all have been put */
  int await_count;
  DDF_t* const* await_any;      /* ... when the first has been put */
  int await_any_count;
  const DDF_list_t* await_list; /* all of these, too */
  const hc_phased* phased;      /* `phased_count` phasers that the task is registered on */
  int phased_count;
  int phased_all;               /* 1: on all those that the running task is registered on */
  const place_t* at;            /* where it runs, and its children unless they are given another */
} hc_clauses;

/* Spawns a task that calls body(argument): with `bytes`, of a copy of so many bytes from `in` on,
   which the task owns (the IN of Habanero-C); with 0, of `in` itself. `clauses` may be null.
   Returns at once; suspends if the caller is IMBREX_WINDOW tasks ahead. A task that awaits what
   has failed does not run, and the finish around it returns that failure. MPI_ERR_ARG: no body, or
   a null pointer with a size. MPI_ERR_OTHER: after the end of the runtime.
   A body that returns with a finish open is misuse (MPI_ERR_OTHER): that is closed, the task fails.
   */
#define hc_async(...) hc_async_from(__FILE__, __LINE__, __VA_ARGS__)
int hc_async_from(const char* file, int line, void (*body)(void* argument), const void* in,
                  size_t bytes, const hc_clauses* clauses);

/* Between the two: tasks that are spawned here, however deep, and communication that was begun here
   without a request, end in hc_finish_end(). Suspends. In one task they nest like brackets. It
   returns the code of an operation of MPI that has failed, or MPI_ERR_OTHER if a task has: the
   first one, whose text is in hc_message(); that is no misuse. MPI_ERR_OTHER, misuse: the running
   task has none open, or one of C++ inside of it. */
#define hc_finish_begin() hc_finish_begin_from(__FILE__, __LINE__)
int hc_finish_begin_from(const char* file, int line);
int hc_finish_end(void);
/* Both, around body(argument). */
#define hc_finish(...) hc_finish_from(__FILE__, __LINE__, __VA_ARGS__)
int hc_finish_from(const char* file, int line, void (*body)(void* argument), void* argument);

/* ---- requests ---- */

/* An operation of MPI, which is put, with its status, when it is complete. Accepted wherever a
   DDF_t is. Buffers must stay until then. */
typedef DDF_t HCMPI_Request;

/* A request that the program completes itself, by DDF_PUT(request, status), where `status` may be
   null and must live as long as the request. Those of MPI are made by the calls below. */
#define HCMPI_REQUEST_CREATE() hc_request_create(__FILE__, __LINE__)
HCMPI_Request* hc_request_create(const char* file, int line);
/* Frees *request, as DDF_FREE; what is under way goes on. */
int HCMPI_REQUEST_FREE(HCMPI_Request** request);
/* The status of a request that is complete. MPI_ERR_OTHER: it is not. The code of the operation, if
   it has failed. Here as everywhere a status is a copy of its own, which HCMPI_STATUS_FREE frees.
   */
int HCMPI_GET_STATUS(HCMPI_Request* request, HCMPI_Status** status);
int HCMPI_STATUS_FREE(HCMPI_Status** status);
int HCMPI_Get_count(const HCMPI_Status* status, HCMPI_Datatype type, int* count);
int HCMPI_Test_cancelled(const HCMPI_Status* status, int* flag);

/* Begin an operation and return at once. `request` is written, not read, and may be null: then the
   innermost finish around the call owns the operation, and waits for it (the paper's Figure 3);
   MPI_ERR_OTHER if there is none. */
int HCMPI_Isend(const void* buffer, int count, HCMPI_Datatype type, int to, int tag,
                HCMPI_Comm comm, HCMPI_Request** request);
int HCMPI_Irecv(void* buffer, int count, HCMPI_Datatype type, int from, int tag, HCMPI_Comm comm,
                HCMPI_Request** request);
/* Suspend until the buffer is the caller's again. */
int HCMPI_Send(const void* buffer, int count, HCMPI_Datatype type, int to, int tag,
               HCMPI_Comm comm);
int HCMPI_Recv(void* buffer, int count, HCMPI_Datatype type, int from, int tag, HCMPI_Comm comm,
               HCMPI_Status** status);

/* Suspend until the request is complete. It stays the program's, who frees it: it may be waited for
   again, by others too, and gives the same status. Return the code of the operation. */
int HCMPI_Wait(HCMPI_Request* request, HCMPI_Status** status);
/* All. `statuses` is an array of `count` pointers, or HCMPI_STATUSES_IGNORE. If any has failed,
   MPI_ERR_IN_STATUS, and MPI_ERROR of each status has its code, that of a failed one nothing else.
   */
int HCMPI_Waitall(int count, HCMPI_Request* const requests[], HCMPI_Status* statuses[]);
/* The first that is complete. One that fails later than the call counts only if all do. Without
   requests *index is HCMPI_UNDEFINED. */
int HCMPI_Waitany(int count, HCMPI_Request* const requests[], int* index, HCMPI_Status** status);
/* *flag: whether it is complete; then, and only then, as the waits above. If not they let other
   tasks run first, and ask MPI. Suspend. */
int HCMPI_Test(HCMPI_Request* request, int* flag, HCMPI_Status** status);
int HCMPI_Testall(int count, HCMPI_Request* const requests[], int* flag, HCMPI_Status* statuses[]);
int HCMPI_Testany(int count, HCMPI_Request* const requests[], int* index, int* flag,
                  HCMPI_Status** status);
/* Asks MPI to cancel it; it is complete some time later, cancelled or not, which the status tells
   (HCMPI_Test_cancelled). Too late is no error. MPI_ERR_REQUEST: it is no operation of MPI. */
int HCMPI_Cancel(HCMPI_Request* request);

/* ---- collectives: as MPI's. Suspend; in one task after the other on one communicator ---- */

/* Each as the call of MPI after which it is named, and with its arguments. */
int HCMPI_Barrier(HCMPI_Comm comm);
int HCMPI_Bcast(void* buffer, int count, HCMPI_Datatype type, int root, HCMPI_Comm comm);
int HCMPI_Reduce(const void* send, void* receive, int count, HCMPI_Datatype type, HCMPI_Op op,
                 int root, HCMPI_Comm comm);
int HCMPI_Allreduce(const void* send, void* receive, int count, HCMPI_Datatype type, HCMPI_Op op,
                    HCMPI_Comm comm);
int HCMPI_Scan(const void* send, void* receive, int count, HCMPI_Datatype type, HCMPI_Op op,
               HCMPI_Comm comm);
int HCMPI_Scatter(const void* send, int send_count, HCMPI_Datatype send_type, void* receive,
                  int receive_count, HCMPI_Datatype receive_type, int root, HCMPI_Comm comm);
int HCMPI_Gather(const void* send, int send_count, HCMPI_Datatype send_type, void* receive,
                 int receive_count, HCMPI_Datatype receive_type, int root, HCMPI_Comm comm);
int HCMPI_Allgather(const void* send, int send_count, HCMPI_Datatype send_type, void* receive,
                    int receive_count, HCMPI_Datatype receive_type, HCMPI_Comm comm);
int HCMPI_Alltoall(const void* send, int send_count, HCMPI_Datatype send_type, void* receive,
                   int receive_count, HCMPI_Datatype receive_type, HCMPI_Comm comm);

/* ---- blocks: with clang's -fblocks ---- */

#ifdef __BLOCKS__
#include <Block.h>
/* Calls the block that `argument` points to, once, and gives it back. */
static inline void hc_run_block(void* argument) {
  void (^block)(void) = *(void (^*)(void))argument;
  block();
  Block_release(block);
}
/* As hc_async() for a block, which is copied. One that never runs, since what it awaits has failed,
   is not released. */
static inline int hc_async_block(const hc_clauses* clauses, void (^block)(void)) {
  void (^copy)(void) = Block_copy(block);
  const int code = hc_async(hc_run_block, (const void*)&copy, sizeof copy, clauses);
  if (code != HCMPI_SUCCESS) Block_release(copy);
  return code;
}
#endif

#ifdef HCMPI_SHORT_NAMES
#define next hc_next()
/* finish { ... }: not to be left by return, break, continue or goto; it returns no code. */
#define finish                                                                            \
  for (int hc_once_ = (hc_finish_begin(), 1); hc_once_ != 0; hc_finish_end(), hc_once_ = 0)
#endif

#ifdef __cplusplus
}
#endif
#endif
