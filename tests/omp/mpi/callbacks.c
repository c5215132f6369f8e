// SPDX-License-Identifier: BSD-3-Clause
// OpenMP in the functions that MPI calls: operations of reductions, error handlers, functions of
// attributes and of generalised requests. Each does all that OpenMP has, from within a region and
// from outside. One argument, the name of a case of main(), selects that case.
#include <mpi.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { elements = 64, messages = 4, rounds = 8, threads_most = 256 };

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "callbacks.c: not so: %s\n", what);
  abort();
}

// ---- what a function does -----------------------------------------------------------------------

static omp_lock_t lock;
static omp_nest_lock_t nest_lock;
static long guarded;                  // by the critical region `shared`
static long calls[threads_most];      // of each thread by itself
static int own_data;
#pragma omp threadprivate(own_data)

static long sum_in_regions(const long n) {
  long sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (long i = 0; i < n; ++i) sum += i;
  long dynamic = 0;
#pragma omp parallel for schedule(dynamic, 3) reduction(+ : dynamic)
  for (long i = 0; i < n; ++i) dynamic += i;
  long in_order = 0;
#pragma omp parallel for ordered schedule(static, 2)
  for (long i = 0; i < n; ++i) {
#pragma omp ordered
    in_order += i;
  }
  long in_pieces = 0;
#pragma omp parallel num_threads(3)
  {
    const int team = omp_get_num_threads();
#pragma omp sections reduction(+ : in_pieces)
    {
#pragma omp section
      in_pieces += 1;
#pragma omp section
      in_pieces += 2;
    }
#pragma omp single copyprivate(own_data)
    own_data = 7;
#pragma omp barrier
    require(omp_get_thread_num() < team && own_data == 7, "single and barrier");
#pragma omp parallel for schedule(guided) reduction(+ : in_pieces)
    for (long i = 0; i < 8; ++i) in_pieces += 0;
  }
  require(dynamic == sum && in_order == sum, "loops");
  require(in_pieces == 3, "sections");
  return sum;
}

static long sum_in_tasks(const long n) {
  long sum = 0;
  long chain = 0;
  long looped = 0;
#pragma omp taskgroup task_reduction(+ : looped)
  {
#pragma omp taskloop grainsize(5) in_reduction(+ : looped)
    for (long i = 0; i < n; ++i) looped += i;
  }
  for (long i = 0; i < n; ++i) {
#pragma omp task shared(chain) depend(inout : chain)
    chain += i;
  }
#pragma omp taskwait
#pragma omp parallel
#pragma omp single
  {
    for (long i = 0; i < n; ++i) {
#pragma omp task shared(sum)
      {
#pragma omp atomic
        sum += i;
      }
    }
#pragma omp taskyield
#pragma omp taskwait
  }
  require(looped == sum && chain == sum, "tasks");
  return sum;
}

static void take_locks(void) {
#pragma omp critical(shared)
  ++guarded;
#pragma omp critical
  {
    omp_set_lock(&lock);
    omp_set_nest_lock(&nest_lock);
    omp_set_nest_lock(&nest_lock);
    omp_unset_nest_lock(&nest_lock);
    omp_unset_nest_lock(&nest_lock);
    omp_unset_lock(&lock);
  }
}

// Returns the sum of 0 to 29.
static long do_all(void) {
  const int number = omp_get_thread_num();
  require(number >= 0 && number < threads_most, "thread number");
  ++calls[number];
  require(omp_get_max_threads() >= 1 && omp_get_level() >= omp_get_active_level(), "questions");
  const long sum = sum_in_regions(30);
  require(sum_in_tasks(30) == sum, "sums");
  long on_device = 0;
#pragma omp target map(tofrom : on_device)
  on_device = 1;
  require(on_device == 1, "target");
  take_locks();
  require(omp_get_thread_num() == number, "thread number afterwards");
  return sum;
}

// ---- functions that MPI calls -------------------------------------------------------------------

static void add(void* from, void* to, int* count, MPI_Datatype* type) {
  (void)type;
  const long more = do_all() - 435;
  for (int i = 0; i < *count; ++i) ((long*)to)[i] += ((long*)from)[i] + more;
}

static int errors;
static void on_error(MPI_Comm* comm, int* code, ...) {
  (void)comm;
  (void)code;
  require(do_all() == 435, "in an error handler");
#pragma omp atomic
  ++errors;
}

static int copies, drops;
static int copy(MPI_Comm comm, int key, void* extra, void* from, void* to, int* flag) {
  (void)comm;
  (void)key;
  (void)extra;
  require(do_all() == 435, "in a copy function");
#pragma omp atomic
  ++copies;
  *(void**)to = from;
  *flag = 1;
  return MPI_SUCCESS;
}
static int drop(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm;
  (void)key;
  (void)value;
  (void)extra;
  require(do_all() == 435, "in a delete function");
#pragma omp atomic
  ++drops;
  return MPI_SUCCESS;
}

static int query(void* extra, MPI_Status* status) {
  (void)extra;
  require(do_all() == 435, "in a query function");
  MPI_Status_set_elements(status, MPI_INT, 1);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = MPI_UNDEFINED;
  status->MPI_TAG = MPI_UNDEFINED;
  return MPI_SUCCESS;
}
static int release(void* extra) {
  (void)extra;
  require(do_all() == 435, "in a free function");
  return MPI_SUCCESS;
}
static int cancel(void* extra, int complete) {
  (void)extra;
  (void)complete;
  require(do_all() == 435, "in a cancel function");
  return MPI_SUCCESS;
}

// ---- who makes MPI call them --------------------------------------------------------------------

static MPI_Op operation;
static MPI_Comm comms[messages];
static int rank, ranks;

static void reduce(MPI_Comm comm) {
  long mine[elements], all[elements];
  for (int i = 0; i < elements; ++i) mine[i] = rank + i;
  MPI_Allreduce(mine, all, elements, MPI_LONG, operation, comm);
  for (int i = 0; i < elements; ++i) {
    require(all[i] == (long)ranks * (ranks - 1) / 2 + (long)ranks * i, "Allreduce");
  }
  MPI_Request request;
  MPI_Ireduce(mine, all, elements, MPI_LONG, operation, 0, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Scan(mine, all, elements, MPI_LONG, operation, comm);
  memcpy(all, mine, sizeof all);
  MPI_Reduce_local(mine, all, elements, MPI_LONG, operation);
  for (int i = 0; i < elements; ++i) require(all[i] == 2 * mine[i], "Reduce_local");
}

static void fail(MPI_Comm comm) {
  const int before = errors;
  int word = 0;
  // MPIs disagree about the code that they return behind a handler that returns: MPICH says
  // MPI_SUCCESS.
  MPI_Send(&word, 1, MPI_INT, ranks + 1, 0, comm);
  MPI_Recv(&word, 1, MPI_INT, ranks + 1, 0, comm, MPI_STATUS_IGNORE);
  MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER);
  require(errors >= before + 3, "error handlers");
}

static int key;
static void copy_attributes(MPI_Comm comm) {
  MPI_Comm copied;
  MPI_Comm_set_attr(comm, key, &key);
  MPI_Comm_set_attr(comm, key, &key);  // deletes the one before
  MPI_Comm_dup(comm, &copied);
  MPI_Comm_free(&copied);
  MPI_Comm_delete_attr(comm, key);
}

static void request_generally(MPI_Comm comm) {
  (void)comm;
  MPI_Request request;
  MPI_Grequest_start(&query, &release, &cancel, NULL, &request);
  MPI_Cancel(&request);
  MPI_Grequest_complete(request);
  MPI_Status status;
  MPI_Wait(&request, &status);
  MPI_Grequest_start(&query, &release, &cancel, NULL, &request);
  MPI_Grequest_complete(request);
  int done = 0;
  while (!done) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

static void in_tasks(void (*const make)(MPI_Comm)) {
  for (int round = 0; round < rounds; ++round) {
    make(comms[0]);
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < messages; ++i) {
#pragma omp task firstprivate(i)
      {
        make(comms[i]);
#pragma omp critical(shared)
        {
          usleep(20);  // so that others come to wait for it
          ++guarded;
        }
        omp_set_lock(&lock);
        usleep(20);
        omp_unset_lock(&lock);
      }
    }
#pragma omp parallel
#pragma omp master
    make(comms[1]);
  }
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  omp_init_lock(&lock);
  omp_init_nest_lock(&nest_lock);
  MPI_Op_create(&add, 1, &operation);
  MPI_Comm_create_keyval(&copy, &drop, &key, NULL);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(&on_error, &handler);
  for (int i = 0; i < messages; ++i) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    MPI_Comm_set_errhandler(comms[i], handler);
  }
  const struct {
    const char* name;
    void (*make)(MPI_Comm);
  } cases[] = {{"reduce", &reduce}, {"fail", &fail}, {"attributes", &copy_attributes},
               {"requests", &request_generally}};
  for (int i = 0; i < 4; ++i) {
    if (argc < 2 || strcmp(argv[1], cases[i].name) == 0) in_tasks(cases[i].make);
  }
  require(drops == 3 * copies, "attributes copied and deleted");
  long all = 0;
  for (int i = 0; i < threads_most; ++i) all += calls[i];
  require(all > 0, "functions called");
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("done\n");
  MPI_Finalize();
  return 0;
}
