// SPDX-License-Identifier: BSD-3-Clause
// Collectives that go block by block, from C: imbrex_release_by_blocks(). The last rank comes to
// the second all-to-all only when on all others a task has read what came from rank 0: so where
// accesses end with their task, all wait for ever. (In the first one imbrex makes a communicator,
// for which all must have come.) The argument: so many calls must have gone block by block. With
// another one the calls are those that give a request, which main waits for when its task has
// ended, on a communicator whose info asks for blocks in parts.
#include <imbrex/imbrex.h>
#include <imbrex/mpi.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { length = 700, ranks_max = 8 };  // ints of a block: above the threshold

static int rank, ranks;
static int out[ranks_max * length], in[ranks_max * length];
static int right[ranks_max];
static int round_now;
static MPI_Comm comm = MPI_COMM_WORLD;
static int by_request;
static MPI_Request request = MPI_REQUEST_NULL;

static int value_of(const int from, const int to, const int at) {
  return (from * ranks_max + to) * 1000 + at;
}

static void require(const int holds, const char* const what) {
  if (holds) return;
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, imbrex_message());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static int exchange(void* argument, void* result) {
  (void)argument;
  (void)result;
  const int waits = rank == ranks - 1 && round_now != 0;
  for (int other = 0; waits && other < ranks - 1; ++other) {
    MPI_Recv(NULL, 0, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  require(imbrex_release_by_blocks() == 0, "imbrex_release_by_blocks");
  if (by_request) {
    return MPI_Ialltoall(out, length, MPI_INT, in, length, MPI_INT, comm, &request);
  }
  return MPI_Alltoall(out, length, MPI_INT, in, length, MPI_INT, comm);
}

static int consume(void* argument, void* result) {
  const int from = *(const int*)argument;
  (void)result;
  for (int i = 0; i < length; ++i) right[from] += in[from * length + i] == value_of(from, rank, i);
  if (from != 0 || rank == ranks - 1 || round_now == 0) return 0;
  return MPI_Send(NULL, 0, MPI_INT, ranks - 1, 0, MPI_COMM_WORLD);
}

static void run(void) {
  imbrex_access blocks[2 * ranks_max];  // each is named twice, which is as once
  for (int r = 0; r < ranks; ++r) {
    right[r] = 0;
    blocks[r].kind = IMBREX_OUT;
    blocks[r].object = &in[r * length];
    blocks[ranks + r] = blocks[r];
    for (int i = 0; i < length; ++i) {
      out[r * length + i] = value_of(rank, r, i);
      in[r * length + i] = -1;
    }
  }
  imbrex_task_spec spec = IMBREX_TASK("exchange", exchange);
  spec.access_count = 2 * ranks;
  spec.accesses = blocks;
  require(imbrex_spawn(&spec, NULL) == 0, "imbrex_spawn");
  for (int r = 0; r < ranks; ++r) {
    const imbrex_access block = {IMBREX_IN, &in[r * length], 0};
    imbrex_task_spec reader = IMBREX_TASK("consume", consume);
    reader.argument = &r;
    reader.argument_bytes = sizeof r;
    reader.access_count = 1;
    reader.accesses = &block;
    require(imbrex_spawn(&reader, NULL) == 0, "imbrex_spawn");
  }
  require(imbrex_taskwait() == 0, "imbrex_taskwait");
  require(MPI_Wait(&request, MPI_STATUS_IGNORE) == MPI_SUCCESS, "MPI_Wait");
  for (int r = 0; r < ranks; ++r) require(right[r] == length, "a block is wrong");
}

int main(int argc, char** argv) {
  int provided;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  require(argc >= 2, "how many calls shall go block by block?");
  by_request = argc > 2;
  if (by_request) {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "imbrex_partial", "on");
    MPI_Info_set(info, "imbrex_partial_parts", "3");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
  }
  require(ranks <= ranks_max, "there are too many ranks");
  for (round_now = 0; round_now < 2; ++round_now) run();
  require(imbrex_decomposed_calls() == strtoull(argv[1], NULL, 10), "calls block by block");
  if (by_request) MPI_Comm_free(&comm);
  MPI_Finalize();
  return 0;
}
