/* SPDX-License-Identifier: BSD-3-Clause */
/* HCMPI for C: the calls of Habanero-C MPI (Chatterjee et al., IPDPS 2013, Table I) over imbrex.

   Tasks (hc_async) and scopes that wait for them (hc_finish), data-driven futures (DDF_*), and MPI,
   where a request is a data-driven future that tasks may await. docs/user/hcmpi.md has the rest.

   Errors. Every function that returns int returns HCMPI_SUCCESS or an error code of MPI:
   - an operation of MPI fails: its code, after the communicator's error handler, as in MPI;
   - misuse (MPI_ERR_ARG, MPI_ERR_REQUEST, MPI_ERR_OTHER, as the comments below say):
     hc_set_errors() decides. By default the program prints a line that names the call, the task
     and the remedy, and ends by MPI_Abort. With HC_ERRORS_RETURN the function returns the code (or
     NULL), has no other effect, and hc_message() returns the line.
   A pointer that is no handle of the expected kind (null, freed, never made) is misuse.

   Handles belong to the program, which frees each of them once by the function named *_FREE. A task
   that awaits a handle, and an operation in flight, keep its data: the handle may be freed
   meanwhile, unless the body of a task uses it. A handle that is never freed lives until the end of
   the program.

   Thread safety: any task or thread may call every function. "Suspends" says that the task may
   resume in another thread; outside of tasks the thread blocks. */
#ifndef IMBREX_HCMPI_H
#define IMBREX_HCMPI_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types and constants of MPI ---- */

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

/* MPI_Init, which also reads `-nproc N` from the arguments and removes it: the runtime then has
   N workers (IMBREX_WORKERS), unless a task has started it before. MPI_Init does this as well. */
int HCMPI_Init(int* argc, char*** argv);
/* Waits for every task, then calls MPI_Finalize. Suspends. Tasks and data-driven futures work
   before HCMPI_Init and after this call; of the functions named HCMPI_* only those that create
   and free. */
int HCMPI_Finalize(void);
int HCMPI_Comm_rank(HCMPI_Comm comm, int* rank);
int HCMPI_Comm_size(HCMPI_Comm comm, int* size);
#define HCMPI_COMM_RANK(comm, rank) HCMPI_Comm_rank(comm, rank)
#define HCMPI_COMM_SIZE(comm, size) HCMPI_Comm_size(comm, size)

enum { HC_ERRORS_ARE_FATAL = 0, HC_ERRORS_RETURN = 1 };
/* Sets how misuse is reported, for the whole process, from now on. MPI_ERR_ARG: `how` is neither
   of the two. */
int hc_set_errors(int how);
/* The reason of the last failed call of this thread. Read it right after the call. */
const char* hc_message(void);

/* ---- data-driven futures ---- */

/* A place for one pointer, which is put once. */
typedef struct hc_ddf DDF_t;

/* Makes a data-driven future; null if memory is exhausted. The program frees it. */
#define DDF_CREATE() hc_ddf_create(__FILE__, __LINE__)
/* Puts the pointer: tasks that await the future become ready. The pointer is kept, not the
   object that it points to. MPI_ERR_OTHER: a second put; the message names both places.
   MPI_ERR_REQUEST: the future is a request of MPI. */
#define DDF_PUT(ddf, pointer) hc_ddf_put(ddf, pointer, __FILE__, __LINE__)
/* Returns the pointer that was put, or the HCMPI_Status of a request, which lives as long as the
   request. Never suspends: a get before the put is misuse (MPI_ERR_OTHER); the message names
   both places. */
#define DDF_GET(ddf) hc_ddf_get(ddf, __FILE__, __LINE__)
/* Frees *ddf, and sets it to null. A task that awaits a future which cannot be put any more
   fails. */
#define DDF_FREE(ddf) hc_ddf_free(ddf)

/* The functions that these macros call. */
DDF_t* hc_ddf_create(const char* file, int line);
int hc_ddf_put(DDF_t* ddf, void* pointer, const char* file, int line);
void* hc_ddf_get(DDF_t* ddf, const char* file, int line);
int hc_ddf_free(DDF_t** ddf);

/* Returns the distributed future of number `guid`: any rank puts it once, all ranks read and await
   it, as the futures of DDF_CREATE. The program defines DDF_HOME(guid), the rank of MPI_COMM_WORLD
   that keeps the value, and DDF_SIZE(guid), its bytes; both are the same on all ranks. `guid` is
   evaluated three times. A number has one handle until that handle is freed. The call sends no
   message; ranks that do not await the future get none.
   - DDF_PUT copies DDF_SIZE bytes from `pointer` on, and returns at once. On another rank than the
     home, a finish around it waits until the home has the bytes, and fails if they were put before.
   - DDF_GET points to the bytes on this rank, which live as long as the handle, or null if there
     are 0. The program must not write to them. Without an await before it there may be no value.
   - A task that awaits the future fetches the value, once for each rank.
   Misuse, which returns null: MPI_ERR_ARG, the home is no rank, or home or size differ from an
   earlier call or from another rank; the message names both. MPI_ERR_OTHER: outside of HCMPI_Init
   and HCMPI_Finalize. If the size of a value differs at its home, the tasks that await it fail. */
#define DDF_HANDLE(guid) hc_ddf_handle((guid), DDF_HOME(guid), DDF_SIZE(guid))
DDF_t* hc_ddf_handle(uint64_t guid, int home, size_t bytes);

/* Futures that one task awaits. Only one task or thread at a time may use a list. */
typedef struct hc_ddf_list DDF_list_t;
DDF_list_t* DDF_LIST_CREATE(void); /* null if memory is exhausted */
int DDF_LIST_ADD(DDF_t* ddf, DDF_list_t* list); /* the list keeps the future, which may be freed */
int DDF_LIST_FREE(DDF_list_t** list);

/* malloc() and free(), by the names of Habanero-C. */
void* hc_malloc(size_t bytes);
void hc_free(void* memory);

/* ---- places ---- */

/* A part of the workers (docs/user/places.md); never freed. Null in hc_clauses: the place of the
   running task. */
typedef struct hc_place place_t;
/* The place that the running task was given, or the place of all workers. */
place_t* hc_get_current_place(void);
/* The parent of a place, and of the running task's place; the parent of the place of all workers
   is itself. Null, as misuse: `place` is no place (MPI_ERR_ARG), or belongs to a runtime that
   has ended. */
place_t* hc_get_place_parent(const place_t* place);
place_t* hc_get_parent_place(void);
int hc_num_places(void);
/* The place of this number, from 0 on. Null, as misuse (MPI_ERR_ARG), if there is no such place. */
place_t* hc_get_place(int number);
/* The number of the place; -1 for all workers. */
int hc_get_place_number(const place_t* place);

/* ---- phasers and accumulators ---- */

/* Barriers and signals between tasks that come and go (docs/user/phasers.md), and reductions
   over them; in one process, or over the ranks of a communicator, with a collective at the end
   of each phase. A phaser belongs to the finish in which it is made: at the end of the finish
   the task which made it drops it, then waits. PHASER_FREE frees the handle when no task uses it
   any more; the results of accum_get() are freed with it. */
struct hc_phaser;
#ifndef __cplusplus /* C++ programs may use this name otherwise */
typedef struct hc_phaser phaser;
#endif

/* The modes. A task hands on its own mode or a weaker one: SINGLE_MODE may hand on all modes,
   SIGNAL_WAIT_MODE the last three, the last two only themselves. */
enum {
  HC_SAME_MODE = 0, /* in a clause: the mode of the running task */
  SINGLE_MODE,      /* SIGNAL_WAIT_MODE that also allows hc_next_single() */
  SIGNAL_WAIT_MODE, /* the other tasks wait for its signal, and it waits for theirs */
  SIGNAL_ONLY_MODE, /* the task signals, and never waits */
  WAIT_ONLY_MODE    /* the task waits, and no task waits for it */
};

typedef struct {
  const HCMPI_Comm* comm; /* null: HCMPI_COMM_WORLD. May be freed before the phaser ends */
  const char* name;       /* the same on all ranks; in reports; copied */
  /* 1: ranks begin to meet when the first task has signalled. Weaker than a barrier
     (imbrex/mpi_phaser.hpp); not for accumulators */
  int fuzzy;
  /* phases that a signaller may be ahead of the slowest waiter; 0: any number */
  unsigned ahead;
  /* ranks find each other by this number, 0 to 2^29 - 1, whatever else they make meanwhile:
     tasks may make several, in any order. Null: no key */
  const int* key;
  int ranks_may_leave;    /* 1: phases go on without ranks all of whose signallers have left */
} hc_phaser_options;

/* Make a phaser and register the running task; `options` may be null. The HCMPI functions are
   collective over the ranks, in the order of the communicator's other collectives unless there
   is a key, and suspend. Null, as misuse: `mode` is no mode, or cannot be used (WAIT_ONLY_MODE
   over ranks); or names or options differ between the ranks, which all ranks report. */
#define PHASER_CREATE(mode) hc_phaser_create(mode, __FILE__, __LINE__)
#define HCMPI_PHASER_CREATE(mode) HCMPI_PHASER_CREATE_WITH(mode, NULL)
#define HCMPI_PHASER_CREATE_WITH(mode, options) \
  hcmpi_phaser_create(mode, options, __FILE__, __LINE__)
struct hc_phaser* hc_phaser_create(int mode, const char* file, int line);
struct hc_phaser* hcmpi_phaser_create(int mode, const hc_phaser_options* options,
                                      const char* file, int line);
/* Make accumulators: phasers of SIGNAL_WAIT_MODE whose tasks put a value in each phase. `type`
   has at most 64 bytes, and `op` is any operation for it, which must not wait; the program frees
   neither before the phaser has ended. Misuse, MPI_ERR_TYPE: a larger type, or a type with a
   lower bound. */
#define HCMPI_ACCUM_CREATE(op, type) HCMPI_ACCUM_CREATE_WITH(op, type, NULL)
#define HCMPI_ACCUM_CREATE_WITH(op, type, options) \
  hcmpi_accum_create(op, type, options, __FILE__, __LINE__)
struct hc_phaser* hcmpi_accum_create(HCMPI_Op op, HCMPI_Datatype type,
                                     const hc_phaser_options* options, const char* file,
                                     int line);
int PHASER_FREE(struct hc_phaser** handle);

/* Signals on all phasers of the running task, then waits until each of them has ended its phase.
   Suspends. Returns the code of MPI's collective, if it has failed. Misuse (MPI_ERR_OTHER): the
   task is registered on no phaser, for example. */
int hc_next(void);
/* hc_next() for a task that is registered on one phaser, on which all tasks have SINGLE_MODE.
   One of the tasks calls f(argument), when all have signalled and before any goes on. Suspends. */
int hc_next_single(void (*f)(void* argument), void* argument);
/* The halves of hc_next(), and the end of the registration; on one phaser, or on all phasers of
   the task if `handle` is null. hc_wait() suspends; hc_signal() only with
   hc_phaser_options::ahead. Misuse (MPI_ERR_OTHER): a wait without a signal before it, for
   example. */
int hc_signal(struct hc_phaser* handle);
int hc_wait(struct hc_phaser* handle);
int hc_drop(struct hc_phaser* handle);

/* Puts the value at `value` into each accumulator of the running task, then calls hc_next().
   Suspends. Misuse (MPI_ERR_OTHER): the task has no accumulator, for example. */
int accum_next(const void* value);
/* Returns the result of all tasks, and ranks, in the phase before the task's phase; bytes of 0
   if there was no such phase. A task that is not registered (after the finish, say) gets the
   last result, and suspends until the ranks have met. The result stays until the caller's next
   hc_next(). Null, as misuse: MPI_ERR_ARG, `accumulator` is no accumulator; MPI_ERR_OTHER, the
   mode of the task does not know which phase is over. */
void* accum_get(struct hc_phaser* accumulator);

/* ---- tasks ---- */

/* A phaser of a clause, and the mode of the new task. The running task must be registered on the
   phaser, in a mode that allows `mode`, and spawn the task in the phaser's own finish; else
   misuse (MPI_ERR_OTHER). */
typedef struct {
  struct hc_phaser* on;
  int mode;
} hc_phased;

/* Clauses of one task; a field that is 0 asks for nothing. Only hc_async() reads them. */
typedef struct {
  const char* name;             /* in reports; copied, each text once for the whole program */
  DDF_t* const* await;          /* `await_count` futures: the task begins when all have been put */
  int await_count;
  /* `await_any_count` futures: the task begins when the first has been put */
  DDF_t* const* await_any;
  int await_any_count;
  const DDF_list_t* await_list; /* the task awaits all of these, too */
  const hc_phased* phased;      /* `phased_count` phasers that the task is registered on */
  int phased_count;
  int phased_all;               /* 1: the task is registered on all phasers of the running task */
  /* where the task runs, and its children unless they name another place */
  const place_t* at;
} hc_clauses;

/* Spawns a task that calls body(argument). With `bytes`, the argument is a copy of so many bytes
   from `in` on, which the task owns (the IN of Habanero-C); with 0, it is `in` itself. `clauses`
   may be null. Returns at once; suspends if the caller is IMBREX_TASKS_AHEAD tasks ahead.

   A task that awaits a failed future does not run, and the finish around it returns that failure. A
   body that returns with a finish open is misuse (MPI_ERR_OTHER): the finish is closed, and the
   task fails. MPI_ERR_ARG: no body, or a null pointer with a size. MPI_ERR_OTHER: after the end of
   the runtime. */
#define hc_async(...) hc_async_from(__FILE__, __LINE__, __VA_ARGS__)
int hc_async_from(const char* file, int line, void (*body)(void* argument), const void* in,
                  size_t bytes, const hc_clauses* clauses);

/* hc_finish_end() waits for all tasks that were spawned since hc_finish_begin(), however deep,
   and for communication that was begun there without a request. Suspends. In one task the pairs
   nest like brackets. It returns the code of the first operation of MPI that has failed, or
   MPI_ERR_OTHER if a task has failed; hc_message() has the text, and this is no misuse. Misuse
   (MPI_ERR_OTHER): the running task has no finish open, or has one of C++ open inside of it. */
#define hc_finish_begin() hc_finish_begin_from(__FILE__, __LINE__)
int hc_finish_begin_from(const char* file, int line);
int hc_finish_end(void);
/* hc_finish_begin() and hc_finish_end() around body(argument). */
#define hc_finish(...) hc_finish_from(__FILE__, __LINE__, __VA_ARGS__)
int hc_finish_from(const char* file, int line, void (*body)(void* argument), void* argument);

/* ---- requests ---- */

/* An operation of MPI: a data-driven future that is put, with its status, when the operation is
   complete. Every parameter DDF_t accepts it. Buffers must stay until then. */
typedef DDF_t HCMPI_Request;

/* Makes a request that the program completes itself, by DDF_PUT(request, status); `status` may
   be null and must live as long as the request. The calls below make the requests of MPI. */
#define HCMPI_REQUEST_CREATE() hc_request_create(__FILE__, __LINE__)
HCMPI_Request* hc_request_create(const char* file, int line);
/* Frees *request, as DDF_FREE; an operation in flight goes on. */
int HCMPI_REQUEST_FREE(HCMPI_Request** request);
/* Returns the status of a complete request, and the code of the operation if it has failed.
   MPI_ERR_OTHER: the request is not complete. Each status that a function returns is a copy, which
   HCMPI_STATUS_FREE frees. Never suspends. */
int HCMPI_GET_STATUS(HCMPI_Request* request, HCMPI_Status** status);
int HCMPI_STATUS_FREE(HCMPI_Status** status);
int HCMPI_Get_count(const HCMPI_Status* status, HCMPI_Datatype type, int* count);
int HCMPI_Test_cancelled(const HCMPI_Status* status, int* flag);

/* Begin an operation and return at once. `request` is written, not read. If it is null, the
   innermost finish around the call owns the operation, and waits for it (the paper's Figure 3);
   MPI_ERR_OTHER if there is no finish. */
int HCMPI_Isend(const void* buffer, int count, HCMPI_Datatype type, int to, int tag,
                HCMPI_Comm comm, HCMPI_Request** request);
int HCMPI_Irecv(void* buffer, int count, HCMPI_Datatype type, int from, int tag, HCMPI_Comm comm,
                HCMPI_Request** request);
/* Suspend until the program may use the buffer again. */
int HCMPI_Send(const void* buffer, int count, HCMPI_Datatype type, int to, int tag,
               HCMPI_Comm comm);
int HCMPI_Recv(void* buffer, int count, HCMPI_Datatype type, int from, int tag, HCMPI_Comm comm,
               HCMPI_Status** status);

/* Suspend until the request is complete. The program still frees the request: other tasks may
   wait for it, too, and get the same status. Return the code of the operation. */
int HCMPI_Wait(HCMPI_Request* request, HCMPI_Status** status);
/* Waits for all requests. Suspends. `statuses` is an array of `count` pointers, or
   HCMPI_STATUSES_IGNORE. If a request has failed, returns MPI_ERR_IN_STATUS; MPI_ERROR of each
   status then has its code, and the status of a failed request has nothing else. */
int HCMPI_Waitall(int count, HCMPI_Request* const requests[], HCMPI_Status* statuses[]);
/* Waits for the first complete request. Suspends. A request that fails later than the call
   counts only if all do. Without requests *index is HCMPI_UNDEFINED. */
int HCMPI_Waitany(int count, HCMPI_Request* const requests[], int* index, HCMPI_Status** status);
/* Set *flag to whether the request is complete; the other results count only if it is. Otherwise
   other tasks run first, and MPI is asked. Suspend. */
int HCMPI_Test(HCMPI_Request* request, int* flag, HCMPI_Status** status);
int HCMPI_Testall(int count, HCMPI_Request* const requests[], int* flag, HCMPI_Status* statuses[]);
int HCMPI_Testany(int count, HCMPI_Request* const requests[], int* index, int* flag,
                  HCMPI_Status** status);
/* Asks MPI to cancel the operation. The request is complete some time later, cancelled or not,
   as its status tells (HCMPI_Test_cancelled). A cancel that comes too late is no error.
   MPI_ERR_REQUEST: the request is no operation of MPI. */
int HCMPI_Cancel(HCMPI_Request* request);

/* ---- collectives of MPI: suspend; one task after the other on one communicator ---- */

/* Each function is the MPI call of its name, with its arguments. Suspend. */
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

/* ---- blocks, with clang's -fblocks ---- */

#ifdef __BLOCKS__
#include <Block.h>
/* Calls the block that `argument` points to, once, and gives it back. */
static inline void hc_run_block(void* argument) {
  void (^block)(void) = *(void (^*)(void))argument;
  block();
  Block_release(block);
}
/* hc_async() for a block, which is copied. A block that never runs, because a future that it
   awaits has failed, is not released. */
static inline int hc_async_block(const hc_clauses* clauses, void (^block)(void)) {
  void (^copy)(void) = Block_copy(block);
  const int code = hc_async(hc_run_block, (const void*)&copy, sizeof copy, clauses);
  if (code != HCMPI_SUCCESS) Block_release(copy);
  return code;
}
#endif

#ifdef HCMPI_SHORT_NAMES
#define next hc_next()
/* finish { ... }: the block must not be left by return, break, continue or goto; it returns no
   code. */
#define finish                                                                            \
  for (int hc_once_ = (hc_finish_begin(), 1); hc_once_ != 0; hc_finish_end(), hc_once_ = 0)
#endif

#ifdef __cplusplus
}
#endif
#endif
