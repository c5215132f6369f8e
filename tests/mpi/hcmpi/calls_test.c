/* SPDX-License-Identifier: BSD-3-Clause */
/* Every call of hcmpi.h that talks to other ranks, in tasks and outside, with any number of ranks.
   Prints what is wrong, and ends with 1 then. */
#include <pthread.h>

#include "check.h"

enum { count = 100, many = 200 };

static int rank, ranks;
static int left(void) { return (rank + ranks - 1) % ranks; }
static int right(void) { return (rank + 1) % ranks; }

/* ---- tasks that block, and requests ---- */

static void blocking(void* argument) {
  int tag = *(const int*)argument;
  int mine[count], theirs[count];
  HCMPI_Request* sent;
  for (int i = 0; i < count; i++) mine[i] = 1000 * rank + tag + i;
  CHECK(HCMPI_Isend(mine, count, HCMPI_INT, right(), tag, HCMPI_COMM_WORLD, &sent) ==
        HCMPI_SUCCESS);
  HCMPI_Status* status = NULL;
  CHECK(HCMPI_Recv(theirs, count, HCMPI_INT, left(), tag, HCMPI_COMM_WORLD, &status) ==
        HCMPI_SUCCESS);
  CHECK(status->MPI_SOURCE == left() && status->MPI_TAG == tag);
  int got = 0;
  CHECK(HCMPI_Get_count(status, HCMPI_INT, &got) == HCMPI_SUCCESS && got == count);
  CHECK(HCMPI_STATUS_FREE(&status) == HCMPI_SUCCESS && status == NULL);
  for (int i = 0; i < count; i++) CHECK(theirs[i] == 1000 * left() + tag + i);
  CHECK(HCMPI_Wait(sent, HCMPI_STATUS_IGNORE) == HCMPI_SUCCESS);
  CHECK(HCMPI_REQUEST_FREE(&sent) == HCMPI_SUCCESS && sent == NULL);
}

static void test_blocking_calls_suspend(void) {
  CHECK(hc_finish_begin() == HCMPI_SUCCESS);
  for (int tag = 0; tag < 50; tag++) {
    CHECK(hc_async(blocking, &tag, sizeof tag, NULL) == HCMPI_SUCCESS);
  }
  CHECK(hc_finish_end() == HCMPI_SUCCESS);
}

/* A receive is begun from each task of many, so that imbrex matches some of them itself. */
static void begin_all(int received[many], HCMPI_Request* requests[2 * many]) {
  static int sent[many];
  for (int i = 0; i < many; i++) {
    sent[i] = i + rank;
    received[i] = -1;
    CHECK(HCMPI_Irecv(&received[i], 1, HCMPI_INT, left(), i, HCMPI_COMM_WORLD, &requests[i]) ==
          HCMPI_SUCCESS);
  }
  HCMPI_Barrier(HCMPI_COMM_WORLD);
  for (int i = 0; i < many; i++) {
    CHECK(HCMPI_Isend(&sent[i], 1, HCMPI_INT, right(), i, HCMPI_COMM_WORLD,
                      &requests[many + i]) == HCMPI_SUCCESS);
  }
}
static void end_all(const int received[many], HCMPI_Request* requests[2 * many]) {
  for (int i = 0; i < many; i++) CHECK(received[i] == i + left());
  for (int i = 0; i < 2 * many; i++) CHECK(HCMPI_REQUEST_FREE(&requests[i]) == HCMPI_SUCCESS);
  HCMPI_Barrier(HCMPI_COMM_WORLD);
}

static void test_waitall(void) {
  static int received[many];
  static HCMPI_Request* requests[2 * many];
  static HCMPI_Status* statuses[2 * many];
  begin_all(received, requests);
  CHECK(HCMPI_Waitall(2 * many, requests, statuses) == HCMPI_SUCCESS);
  for (int i = 0; i < many; i++) CHECK(statuses[i]->MPI_TAG == i);
  for (int i = 0; i < 2 * many; i++) CHECK(HCMPI_STATUS_FREE(&statuses[i]) == HCMPI_SUCCESS);
  CHECK(HCMPI_Waitall(2 * many, requests, HCMPI_STATUSES_IGNORE) == HCMPI_SUCCESS); /* again */
  int flag = 0;
  CHECK(HCMPI_Testall(2 * many, requests, &flag, HCMPI_STATUSES_IGNORE) == HCMPI_SUCCESS);
  CHECK(flag == 1);
  end_all(received, requests);
}

static void test_waitany_and_tests(void) {
  static int received[many];
  static HCMPI_Request* requests[2 * many];
  begin_all(received, requests);
  int index = -1, flag = 0;
  CHECK(HCMPI_Waitany(many, requests, &index, HCMPI_STATUS_IGNORE) == HCMPI_SUCCESS);
  CHECK(index >= 0 && index < many && received[index] == index + left());
  CHECK(HCMPI_Testany(many, requests, &index, &flag, HCMPI_STATUS_IGNORE) == HCMPI_SUCCESS);
  CHECK(flag == 1 && index >= 0 && received[index] == index + left());
  while (flag = 0, HCMPI_Test(requests[many - 1], &flag, HCMPI_STATUS_IGNORE), !flag) continue;
  CHECK(received[many - 1] == many - 1 + left());
  while (flag = 0, HCMPI_Testall(2 * many, requests, &flag, HCMPI_STATUSES_IGNORE), !flag) continue;
  end_all(received, requests);
  CHECK(HCMPI_Waitany(0, NULL, &index, HCMPI_STATUS_IGNORE) == HCMPI_SUCCESS);
  CHECK(index == HCMPI_UNDEFINED);
}

/* ---- requests are data-driven futures ---- */

static int sum;
typedef struct {
  HCMPI_Request* request;
  const int* value;
} Awaited;
static void add(void* argument) {
  const Awaited* awaited = argument;
  HCMPI_Status* status = DDF_GET(awaited->request);
  CHECK(status->MPI_SOURCE == left());
  __atomic_fetch_add(&sum, *awaited->value, __ATOMIC_RELAXED);
}
static void test_tasks_await_requests(void) {
  static int received[many];
  static HCMPI_Request* requests[2 * many];
  sum = 0;
  hc_finish_begin();
  DDF_list_t* list = DDF_LIST_CREATE();
  begin_all(received, requests);
  for (int i = 0; i < many; i++) {
    Awaited awaited = {requests[i], &received[i]};
    hc_clauses clauses = {.name = "add", .await = &requests[i], .await_count = 1};
    CHECK(hc_async(add, &awaited, sizeof awaited, &clauses) == HCMPI_SUCCESS);
    CHECK(DDF_LIST_ADD(requests[i], list) == HCMPI_SUCCESS);
  }
  Awaited last = {requests[0], &received[0]};
  hc_clauses all = {.await_list = list};
  CHECK(hc_async(add, &last, sizeof last, &all) == HCMPI_SUCCESS);
  hc_clauses first = {.await_any = requests + many, .await_any_count = many};
  CHECK(hc_async(blocking, &(int){1000}, sizeof(int), &first) == HCMPI_SUCCESS);
  CHECK(DDF_LIST_FREE(&list) == HCMPI_SUCCESS);
  CHECK(hc_finish_end() == HCMPI_SUCCESS);
  CHECK(sum == many * (many - 1) / 2 + many * left() + left());
  CHECK(HCMPI_Waitall(many, requests + many, HCMPI_STATUSES_IGNORE) == HCMPI_SUCCESS);
  end_all(received, requests);
}

/* The task ends long before what it has begun, and the finish around waits for that. */
static int owned[many];
static void begin_owned(void* argument) {
  int i = *(const int*)argument;
  CHECK(HCMPI_Irecv(&owned[i], 1, HCMPI_INT, left(), i, HCMPI_COMM_WORLD, NULL) == HCMPI_SUCCESS);
}
static void test_a_finish_owns_communication(void) {
  static int sent[many];
  hc_finish_begin();
  for (int i = 0; i < many; i++) hc_async(begin_owned, &i, sizeof i, NULL);
  for (int i = 0; i < many; i++) {
    sent[i] = i + rank;
    HCMPI_Isend(&sent[i], 1, HCMPI_INT, right(), i, HCMPI_COMM_WORLD, NULL);
  }
  CHECK(hc_finish_end() == HCMPI_SUCCESS);
  for (int i = 0; i < many; i++) CHECK(owned[i] == i + left());
}

static void test_a_request_that_the_program_completes(void) {
  HCMPI_Request* request = HCMPI_REQUEST_CREATE();
  int flag = 1;
  CHECK(HCMPI_Test(request, &flag, HCMPI_STATUS_IGNORE) == HCMPI_SUCCESS && flag == 0);
  CHECK(DDF_PUT(request, NULL) == HCMPI_SUCCESS);
  HCMPI_Status* status = NULL;
  CHECK(HCMPI_Wait(request, &status) == HCMPI_SUCCESS);
  CHECK(HCMPI_Get_count(status, HCMPI_BYTE, &flag) == HCMPI_SUCCESS && flag == 0);
  CHECK(HCMPI_STATUS_FREE(&status) == HCMPI_SUCCESS);
  CHECK(HCMPI_GET_STATUS(request, &status) == HCMPI_SUCCESS);
  CHECK(HCMPI_STATUS_FREE(&status) == HCMPI_SUCCESS);
  CHECK(HCMPI_REQUEST_FREE(&request) == HCMPI_SUCCESS);
}

/* ---- cancelling and errors ---- */

/* First a few receives, which MPI has, then many, most of which imbrex matches. */
static void test_cancel(int receives) {
  static int buffers[many];
  static HCMPI_Request* requests[many];
  for (int i = 0; i < receives; i++) {
    CHECK(HCMPI_Irecv(&buffers[i], 1, HCMPI_INT, left(), 5000 + i, HCMPI_COMM_WORLD,
                      &requests[i]) == HCMPI_SUCCESS);
  }
  for (int i = receives - 1; i >= 0; i--) {
    HCMPI_Status* status = NULL;
    int cancelled = 0;
    CHECK(HCMPI_Cancel(requests[i]) == HCMPI_SUCCESS);
    CHECK(HCMPI_Wait(requests[i], &status) == HCMPI_SUCCESS);
    CHECK(HCMPI_Test_cancelled(status, &cancelled) == HCMPI_SUCCESS && cancelled == 1);
    CHECK(HCMPI_Cancel(requests[i]) == HCMPI_SUCCESS); /* too late is no error */
    CHECK(HCMPI_STATUS_FREE(&status) == HCMPI_SUCCESS);
    CHECK(HCMPI_REQUEST_FREE(&requests[i]) == HCMPI_SUCCESS);
  }
}

static void never(void* argument) {
  (void)argument;
  CHECK(!"a task ran though what it awaits has failed");
}
static void test_operations_that_fail(void) {
  HCMPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int value = 0, two[2] = {1, 2}, error_class = 0;
  HCMPI_Request* request = NULL;
  CHECK(HCMPI_Isend(two, 2, HCMPI_INT, ranks, 0, comm, &request) != HCMPI_SUCCESS);
  CHECK(request == NULL);
  hc_finish_begin();
  CHECK(HCMPI_Irecv(&value, 1, HCMPI_INT, left(), 0, comm, &request) == HCMPI_SUCCESS);
  hc_clauses clauses = {.await = &request, .await_count = 1};
  hc_async(never, NULL, 0, &clauses);
  CHECK(HCMPI_Irecv(&value, 1, HCMPI_INT, left(), 1, comm, NULL) == HCMPI_SUCCESS);
  HCMPI_Isend(two, 2, HCMPI_INT, right(), 0, comm, NULL);
  HCMPI_Isend(two, 2, HCMPI_INT, right(), 1, comm, NULL);
  int code = HCMPI_Wait(request, HCMPI_STATUS_IGNORE);
  MPI_Error_class(code, &error_class);
  CHECK(error_class == MPI_ERR_TRUNCATE && said("HCMPI_Wait") && said("runcated"));
  HCMPI_Status* status = NULL;
  CHECK(HCMPI_Waitall(1, &request, &status) == MPI_ERR_IN_STATUS && status->MPI_ERROR == code);
  CHECK(HCMPI_STATUS_FREE(&status) == HCMPI_SUCCESS);
  code = hc_finish_end();
  MPI_Error_class(code, &error_class);
  CHECK(error_class == MPI_ERR_TRUNCATE);
  HCMPI_REQUEST_FREE(&request);
  MPI_Comm_free(&comm);
}

/* ---- threads of the program's own ---- */

static void* run_on_thread(void* argument) {
  int tag = 2000, received = -1;
  HCMPI_Request* request;
  CHECK(hc_finish_begin() == HCMPI_SUCCESS);
  CHECK(hc_async(blocking, &tag, sizeof tag, NULL) == HCMPI_SUCCESS);
  CHECK(HCMPI_Irecv(&received, 1, HCMPI_INT, left(), 2001, HCMPI_COMM_WORLD, &request) ==
        HCMPI_SUCCESS);
  CHECK(HCMPI_Isend(&rank, 1, HCMPI_INT, right(), 2001, HCMPI_COMM_WORLD, NULL) == HCMPI_SUCCESS);
  CHECK(HCMPI_Wait(request, HCMPI_STATUS_IGNORE) == HCMPI_SUCCESS && received == left());
  CHECK(hc_finish_end() == HCMPI_SUCCESS);
  CHECK(HCMPI_REQUEST_FREE(&request) == HCMPI_SUCCESS);
  CHECK(DDF_PUT(argument, NULL) == HCMPI_SUCCESS);
  return NULL;
}
/* The worker that main stands on runs the thread's task: main must not block it by a join. */
static void test_a_thread_that_is_no_worker(void) {
  pthread_t thread;
  HCMPI_Request* done = HCMPI_REQUEST_CREATE();
  CHECK(pthread_create(&thread, NULL, run_on_thread, done) == 0);
  CHECK(HCMPI_Wait(done, HCMPI_STATUS_IGNORE) == HCMPI_SUCCESS);
  pthread_join(thread, NULL);
  CHECK(HCMPI_REQUEST_FREE(&done) == HCMPI_SUCCESS);
}

/* ---- collectives, in a task ---- */

static void collectives(void* argument) {
  const HCMPI_Comm comm = HCMPI_COMM_WORLD;
  (void)argument;
  int value = rank == 0 ? 42 : 0, total = 0, mine = rank + 1;
  int all[64] = {0}, out[64];
  CHECK(HCMPI_Barrier(comm) == HCMPI_SUCCESS);
  CHECK(HCMPI_Bcast(&value, 1, HCMPI_INT, 0, comm) == HCMPI_SUCCESS && value == 42);
  const int triangle = ranks * (ranks + 1) / 2;
  CHECK(HCMPI_Reduce(&mine, &total, 1, HCMPI_INT, HCMPI_SUM, 0, comm) == HCMPI_SUCCESS);
  CHECK(rank != 0 || total == triangle);
  CHECK(HCMPI_Allreduce(&mine, &total, 1, HCMPI_INT, HCMPI_SUM, comm) == HCMPI_SUCCESS);
  CHECK(total == triangle);
  CHECK(HCMPI_Scan(&mine, &total, 1, HCMPI_INT, HCMPI_SUM, comm) == HCMPI_SUCCESS);
  CHECK(total == mine * (mine + 1) / 2);
  CHECK(HCMPI_Gather(&mine, 1, HCMPI_INT, all, 1, HCMPI_INT, 0, comm) == HCMPI_SUCCESS);
  CHECK(rank != 0 || all[ranks - 1] == ranks);
  CHECK(HCMPI_Scatter(all, 1, HCMPI_INT, &value, 1, HCMPI_INT, 0, comm) == HCMPI_SUCCESS);
  CHECK(value == mine);
  CHECK(HCMPI_Allgather(&mine, 1, HCMPI_INT, all, 1, HCMPI_INT, comm) == HCMPI_SUCCESS);
  for (int i = 0; i < ranks; i++) {
    CHECK(all[i] == i + 1);
    out[i] = 100 * rank + i;
  }
  CHECK(HCMPI_Alltoall(out, 1, HCMPI_INT, all, 1, HCMPI_INT, comm) == HCMPI_SUCCESS);
  for (int i = 0; i < ranks; i++) CHECK(all[i] == 100 * i + rank);
}

/* ---- MPI's own calls for what HCMPI leaves to future work ---- */

enum { go_tag = 900 };

/* Other ranks begin the reduction when rank 0 has sent them a message, from a task behind this one:
   with one worker, rank 0 gets there only if the wait suspends. */
static void non_blocking_collective(void* argument) {
  (void)argument;
  int go = 0, mine = rank + 1, total = 0;
  if (rank != 0) {
    CHECK(HCMPI_Recv(&go, 1, HCMPI_INT, 0, go_tag, HCMPI_COMM_WORLD, HCMPI_STATUS_IGNORE) ==
          HCMPI_SUCCESS);
  }
  MPI_Request request;
  CHECK(MPI_Iallreduce(&mine, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request) ==
        MPI_SUCCESS);
  CHECK(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  CHECK(total == ranks * (ranks + 1) / 2);
}
static void send_go(void* argument) {
  (void)argument;
  const int go = 1;
  for (int to = 1; to < ranks; to++) {
    CHECK(HCMPI_Send(&go, 1, HCMPI_INT, to, go_tag, HCMPI_COMM_WORLD) == HCMPI_SUCCESS);
  }
}
/* The fence of other ranks waits for that message, too. 64 bytes: MPICH 4.0.2 loses what is put in
   a window of 4 or 8 bytes (docs/design/mpi-facts.md). */
static void one_sided(void* argument) {
  (void)argument;
  int go = 0, *memory = NULL;
  const int mine = 10 + rank;
  MPI_Win window;
  CHECK(MPI_Win_allocate(64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window) ==
        MPI_SUCCESS);
  CHECK(MPI_Win_fence(0, window) == MPI_SUCCESS);
  CHECK(MPI_Put(&mine, 1, MPI_INT, right(), 0, 1, MPI_INT, window) == MPI_SUCCESS);
  if (rank != 0) {
    CHECK(HCMPI_Recv(&go, 1, HCMPI_INT, 0, go_tag, HCMPI_COMM_WORLD, HCMPI_STATUS_IGNORE) ==
          HCMPI_SUCCESS);
  }
  CHECK(MPI_Win_fence(0, window) == MPI_SUCCESS);
  CHECK(*memory == 10 + left());
  CHECK(MPI_Win_free(&window) == MPI_SUCCESS);
}
static void test_calls_of_mpi_suspend(void (*waits)(void*)) {
  CHECK(hc_finish_begin() == HCMPI_SUCCESS);
  CHECK(hc_async(waits, NULL, 0, NULL) == HCMPI_SUCCESS);
  if (rank == 0) CHECK(hc_async(send_go, NULL, 0, NULL) == HCMPI_SUCCESS);
  CHECK(hc_finish_end() == HCMPI_SUCCESS);
}

/* The last thing that this program does, in a task that HCMPI_Finalize waits for. */
static int late;
static void run_late(void* argument) {
  blocking(argument);
  late = 1;
}

int main(int argc, char** argv) {
  CHECK(HCMPI_Init(&argc, &argv) == HCMPI_SUCCESS);
  CHECK(argc == 1 && argv[1] == NULL); /* -nproc is taken out */
  HCMPI_COMM_RANK(HCMPI_COMM_WORLD, &rank);
  HCMPI_COMM_SIZE(HCMPI_COMM_WORLD, &ranks);
  test_blocking_calls_suspend();
  test_waitall();
  test_waitany_and_tests();
  test_tasks_await_requests();
  test_a_finish_owns_communication();
  test_a_request_that_the_program_completes();
  test_cancel(3);
  test_cancel(many);
  if (ranks > 1) test_operations_that_fail(); /* Open MPI cuts a message to oneself off silently */
  test_a_thread_that_is_no_worker();
  hc_finish(collectives, NULL);
  hc_finish_begin();
  hc_async(collectives, NULL, 0, NULL);
  CHECK(hc_finish_end() == HCMPI_SUCCESS);
  test_calls_of_mpi_suspend(non_blocking_collective);
  test_calls_of_mpi_suspend(one_sided);
  hc_async(run_late, &(int){3}, sizeof(int), NULL);
  CHECK(HCMPI_Finalize() == HCMPI_SUCCESS && late == 1);
  return 0;
}
