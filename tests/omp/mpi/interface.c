// SPDX-License-Identifier: BSD-3-Clause
// Requests in OpenMP tasks: TAMPI's calls, imbrex's, and a progress function that tests. More tasks
// than threads are held by receives, and the sends are created last.
#include <TAMPI.h>
#include <imbrex/mpi.h>
#include <imbrex/omp.h>
#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                                \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #condition, imbrex_message());       \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                       \
    }                                                                                     \
  } while (0)

enum { count = 30 };
static int rank, left, right;
static int in[count], out[count];
static MPI_Status statuses[count];

static void send_all(int tag) {
  for (int i = 0; i < count; ++i) {
#pragma omp task firstprivate(i, tag)
    {
      out[i] = 1000 * tag + 100 * rank + i;
      REQUIRE(TAMPI_Isend(&out[i], 1, MPI_INT, right, tag + i, MPI_COMM_WORLD) == MPI_SUCCESS);
    }
  }
}

static void require_all(int tag) {
  for (int i = 0; i < count; ++i) {
#pragma omp task depend(in : in[i]) firstprivate(i, tag)
    REQUIRE(in[i] == 1000 * tag + 100 * left + i);
  }
}

// The task's body ends at once; what depends on it waits for the message.
static void a_request_holds_its_task(void) {
#pragma omp parallel
#pragma omp single
  {
    for (int i = 0; i < count; ++i) {
#pragma omp task depend(out : in[i]) firstprivate(i)
      {
        MPI_Request request;
        in[i] = -1;
        MPI_Irecv(&in[i], 1, MPI_INT, left, 100 + i, MPI_COMM_WORLD, &request);
        REQUIRE(TAMPI_Iwait(&request, &statuses[i]) == MPI_SUCCESS);
        REQUIRE(request == MPI_REQUEST_NULL);
      }
    }
    require_all(100);
    send_all(100);
  }
  for (int i = 0; i < count; ++i) REQUIRE(statuses[i].MPI_SOURCE == left);
  MPI_Barrier(MPI_COMM_WORLD);
}

// An undeferred task holds its creator.
static void an_undeferred_task_is_held(void) {
#pragma omp parallel
#pragma omp single
  {
    send_all(200);
    for (int i = 0; i < count; ++i) {
#pragma omp task if (0) depend(out : in[i])
      {
        MPI_Request request;
        in[i] = -1;
        MPI_Irecv(&in[i], 1, MPI_INT, left, 200 + i, MPI_COMM_WORLD, &request);
        REQUIRE(TAMPI_Iwait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS);
      }
      REQUIRE(in[i] == 200000 + 100 * left + i);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// Requests are awaited by imbrex's calls: in the task, and after it.
static void imbrex_waits_for_requests(void) {
#pragma omp parallel
#pragma omp single
  {
    for (int i = 0; i < count; ++i) {
#pragma omp task depend(out : in[i]) firstprivate(i)
      {
        MPI_Request request;
        MPI_Irecv(&in[i], 1, MPI_INT, left, 300 + i, MPI_COMM_WORLD, &request);
        if (i % 2 == 0) {
          REQUIRE(imbrex_await_request(&request, &statuses[i]) == IMBREX_SUCCESS);
          REQUIRE(in[i] == 300000 + 100 * left + i);
        } else {
          REQUIRE(imbrex_release_after_request(&request) == IMBREX_SUCCESS);
        }
      }
    }
    require_all(300);
    send_all(300);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static MPI_Request requests[count];

static int look(void* unused) {
  (void)unused;
  int all = 0;
  MPI_Testall(count, requests, &all, MPI_STATUSES_IGNORE);
  if (all == 0) return 1;
  return imbrex_trigger("ghosts") == IMBREX_SUCCESS ? 0 : -1;
}

// Capra et al., listing 1.4: the program keeps its requests, and a progress function tests them.
static void a_progress_function_tests(void) {
  for (int step = 0; step < 5; ++step) {
    int ready = 0;
#pragma omp parallel
#pragma omp single
#pragma omp taskgroup
    {
      for (int i = 0; i < count; ++i) {
        in[i] = -1;
        MPI_Irecv(&in[i], 1, MPI_INT, left, 400 + i, MPI_COMM_WORLD, &requests[i]);
      }
      REQUIRE(imbrex_progress_function(look) == IMBREX_SUCCESS);
#pragma omp task depend(in : *imbrex_named("ghosts")) shared(ready)
      {
        for (int i = 0; i < count; ++i) REQUIRE(in[i] == 400000 + 100 * left + i);
        ready = 1;
      }
      send_all(400);
    }
    REQUIRE(ready == 1);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

int main(int argc, char** argv) {
  int provided, ranks;
  MPI_Init_thread(&argc, &argv, MPI_TASK_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  REQUIRE(provided == MPI_TASK_MULTIPLE);
  left = (rank + ranks - 1) % ranks;
  right = (rank + 1) % ranks;
  a_request_holds_its_task();
  an_undeferred_task_is_held();
  imbrex_waits_for_requests();
  a_progress_function_tests();
  MPI_Finalize();
  if (rank == 0) printf("done\n");
  return 0;
}
