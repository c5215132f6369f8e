// SPDX-License-Identifier: BSD-3-Clause
// Measures the MPI and the network between rank 0 and the last rank, for `imbrex calibrate`, which
// compiles this file with the MPI's own compiler. Prints NAME VALUE lines: times in microseconds,
// sizes in bytes. Needs no imbrex. With a third rank, rank 1 is on the node of rank 0.
#define _DEFAULT_SOURCE  // usleep()
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { large = 1 << 20, rounds = 400, stream = 64, repetitions = 9 };

static int rank, ranks, other;
static char* buffer;

static double us(void) { return MPI_Wtime() * 1e6; }

static void wait_us(double time) {
  const double end = us() + time;
  while (us() < end) {
  }
}

static int by_size(const void* one, const void* another) {
  const double a = *(const double*)one, b = *(const double*)another;
  return (a > b) - (a < b);
}
// The median: a pause of the system spoils none of its neighbours.
static double median(double* values, int count) {
  qsort(values, (size_t)count, sizeof *values, by_size);
  return values[count / 2];
}

// Both ranks of the pair are here, as far as messages can tell.
static void meet(void) {
  MPI_Sendrecv(NULL, 0, MPI_BYTE, other, 9, NULL, 0, MPI_BYTE, other, 9, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
}

// Half a round trip.
static double ping_pong(int bytes) {
  double times[rounds];
  const int count = bytes >= large ? 20 : rounds;
  meet();
  for (int round = 0; round < count; ++round) {
    const double start = us();
    if (rank == 0) {
      MPI_Send(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
      MPI_Recv(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    }
    times[round] = (us() - start) / 2;
  }
  return median(times, count);
}

// From rank 0 to the other, `stream` messages at a time: the time of a message at the receiver.
static double streamed(int bytes, double* in_send) {
  MPI_Request requests[stream];
  double whole[repetitions], calls[repetitions];
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    meet();
    const double start = us();
    for (int i = 0; i < stream; ++i) {
      if (rank == 0) {
        MPI_Isend(buffer, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[i]);
      } else {
        MPI_Irecv(buffer + (size_t)i * (size_t)bytes % large, bytes, MPI_BYTE, other, 1,
                  MPI_COMM_WORLD, &requests[i]);
      }
    }
    calls[repetition] = (us() - start) / stream;
    MPI_Waitall(stream, requests, MPI_STATUSES_IGNORE);
    meet();  // the last one has arrived
    whole[repetition] = (us() - start) / stream;
  }
  if (in_send != NULL) *in_send = median(calls, repetitions);
  return median(whole, repetitions);
}

// Whether MPI_Send of so many bytes returns while nobody receives them.
static int is_eager(int bytes) {
  const double late_us = 4000;
  int votes = 0;
  for (int repetition = 0; repetition < 3; ++repetition) {
    meet();
    if (rank == 0) {
      const double start = us();
      MPI_Send(buffer, bytes, MPI_BYTE, other, 2, MPI_COMM_WORLD);
      votes += us() - start < late_us / 2;
    } else {
      wait_us(late_us);
      MPI_Recv(buffer, bytes, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  MPI_Sendrecv_replace(&votes, 1, MPI_INT, other, 3, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return votes;
}
// Rank 0 has voted; the other rank has got the votes.
static int eager(int bytes) {
  const int votes = is_eager(bytes);
  int mine = votes;
  MPI_Sendrecv(&mine, 1, MPI_INT, other, 4, &mine, 1, MPI_INT, other, 4, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  return (rank == 0 ? mine : votes) >= 2;
}

static int eager_limit(void) {
  int low = 0, high = large;  // eager; not
  if (eager(large)) return large;
  while (high - low > 64) {
    const int middle = low + (high - low) / 2;
    if (eager(middle)) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// A long message to a receive that waits, while the sender computes: 1 if it only arrives after the
// sender has called MPI again.
static int sender_answers(int bytes) {
  const double computes_us = 8000;
  double times[5];
  for (int repetition = 0; repetition < 5; ++repetition) {
    meet();
    const double start = us();
    MPI_Request request;
    if (rank == 0) {
      wait_us(500);  // the receive is posted
      MPI_Isend(buffer, bytes, MPI_BYTE, other, 5, MPI_COMM_WORLD, &request);
      wait_us(computes_us);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(buffer, bytes, MPI_BYTE, other, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    times[repetition] = us() - start;
  }
  double took = median(times, 5);
  // The receiver knows.
  if (rank == 0) {
    MPI_Recv(&took, 1, MPI_DOUBLE, other, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Send(&took, 1, MPI_DOUBLE, other, 6, MPI_COMM_WORLD);
  }
  return took > computes_us;
}

static void print(const char* name, double value) {
  if (rank == 0) printf("%s %.9g\n", name, value);
}

// `prefix`: of the names.
static void measure_pair(const char* prefix) {
  char name[64];
  double in_send = 0, in_send_long = 0;
#define PRINT(what, value)                        \
  do {                                            \
    snprintf(name, sizeof name, "%s%s", prefix, what); \
    print(name, value);                           \
  } while (0)
  (void)ping_pong(1);  // connects
  PRINT("half_round_trip", ping_pong(1));
  PRINT("stream_small", streamed(8, &in_send));
  PRINT("in_send", in_send);
  const int limit = eager_limit();
  PRINT("eager_limit", limit);
  const int copied = limit < 16384 ? (limit < 1024 ? 1024 : limit) : 16384;
  (void)streamed(copied, &in_send_long);
  PRINT("copied", copied);
  PRINT("in_send_copied", in_send_long);
  PRINT("large", large);
  PRINT("stream_large", streamed(large, NULL));
  PRINT("sender_answers", sender_answers(limit < large / 2 ? 2 * limit + 65536 : large));
}

// A barrier in which ranks sleep, so that they take no processor from the pair that measures.
static void wait_for_all(void) {
  MPI_Request request;
  int done = 0;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (;;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done) return;
    usleep(1000);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  buffer = calloc(2, large);
  if (ranks < 2 || buffer == NULL) {
    if (rank == 0) fprintf(stderr, "calibrate: two ranks at least\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  const int last = ranks - 1;
  other = rank == 0 ? last : 0;
  if (rank == 0 || rank == last) measure_pair("");
  wait_for_all();
  if (ranks > 2) {
    other = rank == 0 ? 1 : 0;
    if (rank < 2) measure_pair("node_");
    wait_for_all();
  }
  if (rank == 0) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\n,")] = 0;
    printf("library %s\n", library);
  }
  free(buffer);
  MPI_Finalize();
  return 0;
}
