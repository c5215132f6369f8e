// SPDX-License-Identifier: BSD-3-Clause
// Mistakes with MPI in tasks, and what looks like one and is none; checks.cmake says what each
// must print.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <thread>
#include <vector>

#include "cases.hpp"
#include "imbrex/collective.hpp"
#include "imbrex/events.h"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"

namespace {

using imbrex::task;

int rank = 0;
int other = 0;

// Lets all tasks run until each waits in MPI.
void let_all_wait() {
  for (int round = 0; round < 20; ++round) imbrex::yield();
}

// A task that is always ready, so that the others do not wait in place.
struct Bustle {
  bool stop = false;
  imbrex::Future<void> done = task("bustle").spawn([this] {
    while (!stop) imbrex::yield();
  });
  ~Bustle() {
    stop = true;
    done.wait();
  }
};

// Two receives into one array; their messages come afterwards.
void receives_overlap() {
  static std::array<int, 6> values{};
  task("receive left").launch([] {
    MPI_Recv(&values[0], 4, MPI_INT, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  });
  task("receive right").launch([] {
    MPI_Recv(&values[3], 3, MPI_INT, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  });
  let_all_wait();
  MPI_Barrier(MPI_COMM_WORLD);  // both receives of each rank are posted
  const std::array<int, 4> out{};
  MPI_Send(out.data(), 4, MPI_INT, other, 1, MPI_COMM_WORLD);
  MPI_Send(out.data(), 3, MPI_INT, other, 2, MPI_COMM_WORLD);
  imbrex::taskwait();
}

// A request of the program's, and a call that blocks.
void receive_into_what_is_sent() {
  static std::vector<char> block(1 << 20);
  MPI_Request request;
  MPI_Irecv(block.data() + 100, 8, MPI_BYTE, other, 1, MPI_COMM_WORLD, &request);
  MPI_Send(block.data() + 104, 1, MPI_BYTE, other, 2, MPI_COMM_WORLD);
  MPI_Recv(block.data() + 500, 1, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(block.data(), 8, MPI_BYTE, other, 1, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  // The request has completed: its memory is free for others.
  MPI_Request again;
  MPI_Irecv(block.data() + 100, 8, MPI_BYTE, other, 3, MPI_COMM_WORLD, &again);
  MPI_Send(block.data(), 8, MPI_BYTE, other, 3, MPI_COMM_WORLD);
  MPI_Waitall(1, &again, MPI_STATUSES_IGNORE);
}

// A thread of the program's own, which stands in no task.
void thread_sends_what_is_received() {
  static std::array<char, 16> block{};
  MPI_Request request;
  MPI_Irecv(block.data(), 8, MPI_BYTE, other, 1, MPI_COMM_WORLD, &request);
  std::thread([] {
    MPI_Send(block.data() + 4, 1, MPI_BYTE, other, 2, MPI_COMM_WORLD);
  }).join();
  MPI_Recv(block.data() + 15, 1, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Send(block.data() + 8, 8, MPI_BYTE, other, 1, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void exchanges_overlap() {
  static std::array<char, 24> block{};
  MPI_Request request;
  MPI_Irecv(block.data(), 8, MPI_BYTE, other, 1, MPI_COMM_WORLD, &request);
  MPI_Sendrecv(block.data() + 4, 1, MPI_BYTE, other, 2, block.data() + 15, 1, MPI_BYTE, other, 2,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv_replace(block.data() + 6, 1, MPI_BYTE, other, 3, other, 3, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE);
  MPI_Sendrecv_replace(block.data() + 12, 1, MPI_BYTE, other, 3, other, 3, MPI_COMM_WORLD,
                       MPI_STATUS_IGNORE);
  MPI_Send(block.data() + 16, 8, MPI_BYTE, other, 1, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// Two sends may read the same; and columns of a matrix lie between each other without meeting.
void no_overlap() {
  constexpr int size = 8;
  static std::array<double, size * size> matrix{};
  MPI_Datatype column;
  MPI_Type_vector(size, 1, size, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  MPI_Request requests[5];
  MPI_Irecv(&matrix[0], 1, column, other, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(&matrix[size - 1], 1, column, other, 2, MPI_COMM_WORLD, &requests[1]);
  MPI_Isend(&matrix[1], 1, column, other, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(&matrix[size - 2], 1, column, other, 2, MPI_COMM_WORLD, &requests[3]);
  MPI_Isend(&matrix[1], 1, column, other, 3, MPI_COMM_WORLD, &requests[4]);
  MPI_Recv(&matrix[3], 1, column, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
  MPI_Type_free(&column);
}

// These columns, one of them twice.
void columns_overlap() {
  constexpr int size = 8;
  static std::array<double, size * size> matrix{};
  MPI_Datatype column;
  MPI_Type_vector(size, 1, size, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  MPI_Request requests[2];
  MPI_Irecv(&matrix[2], 1, column, other, 1, MPI_COMM_WORLD, &requests[0]);
  MPI_Type_free(&column);
  MPI_Irecv(&matrix[3 * size], 3, MPI_DOUBLE, other, 2, MPI_COMM_WORLD, &requests[1]);
  const std::array<double, size> out{};
  MPI_Send(out.data(), size, MPI_DOUBLE, other, 1, MPI_COMM_WORLD);
  MPI_Send(out.data(), 3, MPI_DOUBLE, other, 2, MPI_COMM_WORLD);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

// ---- collectives, persistent requests, remote memory: what overlaps -----------------------------

void collective_overlaps() {
  static std::array<int, 4> values{};
  const std::array<int, 3> in{};
  MPI_Request request;
  MPI_Irecv(&values[2], 1, MPI_INT, other, 1, MPI_COMM_WORLD, &request);
  MPI_Allreduce(in.data(), values.data(), 3, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Send(in.data(), 1, MPI_INT, other, 1, MPI_COMM_WORLD);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// One overlaps the other at its last block; the third lies in the gap between two blocks.
void collective_requests_overlap() {
  static std::array<int, 8> block{};
  const std::array<int, 4> in{};
  const int counts[2] = {1, 1};
  const int from_places[2] = {0, 1};
  const int to_places[2] = {0, 5};
  MPI_Request requests[3];
  MPI_Ialltoallv(in.data(), counts, from_places, MPI_INT, block.data(), counts, to_places, MPI_INT,
                 MPI_COMM_WORLD, &requests[0]);
  MPI_Ibcast(&block[4], 2, MPI_INT, 0, MPI_COMM_WORLD, &requests[1]);
  MPI_Iallgather(in.data(), 1, MPI_INT, &block[1], 1, MPI_INT, MPI_COMM_WORLD, &requests[2]);
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
}

void persistent_overlaps() {
  static std::array<int, 4> values{};
  MPI_Request receive;
  MPI_Request persistent[2];
  MPI_Send_init(values.data(), 2, MPI_INT, other, 1, MPI_COMM_WORLD, &persistent[0]);
  MPI_Recv_init(&values[2], 2, MPI_INT, other, 1, MPI_COMM_WORLD, &persistent[1]);
  for (int round = 0; round < 2; ++round) {  // between the rounds neither is active
    MPI_Startall(2, persistent);
    if (round == 0) MPI_Irecv(&values[1], 2, MPI_INT, other, 2, MPI_COMM_WORLD, &receive);
    MPI_Waitall(2, persistent, MPI_STATUSES_IGNORE);
    if (round == 1) MPI_Irecv(&values[1], 2, MPI_INT, other, 2, MPI_COMM_WORLD, &receive);
    const std::array<int, 2> out{};
    MPI_Send(out.data(), 2, MPI_INT, other, 2, MPI_COMM_WORLD);
    MPI_Wait(&receive, MPI_STATUS_IGNORE);
  }
  for (MPI_Request& request : persistent) MPI_Request_free(&request);
}

#if MPI_VERSION >= 4
void persistent_collective_overlaps() {
  static std::array<int, 4> values{};
  int word = 0;
  MPI_Request receive;
  MPI_Request persistent;
  MPI_Allreduce_init(MPI_IN_PLACE, values.data(), 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD,
                     MPI_INFO_NULL, &persistent);
  MPI_Irecv(&values[3], 1, MPI_INT, other, 2, MPI_COMM_WORLD, &receive);  // it is not started yet
  MPI_Send(&word, 1, MPI_INT, other, 2, MPI_COMM_WORLD);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  MPI_Start(&persistent);
  MPI_Irecv(&values[3], 1, MPI_INT, other, 2, MPI_COMM_WORLD, &receive);
  MPI_Send(&word, 1, MPI_INT, other, 2, MPI_COMM_WORLD);
  MPI_Wait(&persistent, MPI_STATUS_IGNORE);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  MPI_Request_free(&persistent);
}
#endif

// A window of this many ints, that all may use.
struct Window {
  explicit Window(int count) {
    MPI_Win_allocate(count * static_cast<MPI_Aint>(sizeof(int)), sizeof(int), MPI_INFO_NULL,
                     MPI_COMM_WORLD, static_cast<void*>(&memory), &handle);
    for (int i = 0; i < count; ++i) memory[i] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, handle);
  }
  ~Window() {
    MPI_Win_unlock_all(handle);
    MPI_Win_free(&handle);
  }
  int* memory = nullptr;
  MPI_Win handle = MPI_WIN_NULL;
};

// Some MPIs give one handle to all requests that are complete at once, as these may be: so each
// overlaps a receive, which is not.
void remote_overlaps() {
  const Window window(16);
  static std::array<int, 8> values{};
  MPI_Request receives[4];
  MPI_Request remote[4];
  for (int tag = 0; tag < 4; ++tag) {
    MPI_Irecv(&values[2 * tag], 1, MPI_INT, other, tag, MPI_COMM_WORLD, &receives[tag]);
  }
  MPI_Rput(&values[0], 2, MPI_INT, other, 0, 2, MPI_INT, window.handle, &remote[0]);
  MPI_Rget(&values[2], 2, MPI_INT, other, 8, 2, MPI_INT, window.handle, &remote[1]);
  MPI_Raccumulate(&values[4], 1, MPI_INT, other, 12, 1, MPI_INT, MPI_SUM, window.handle,
                  &remote[2]);
  MPI_Rget_accumulate(&values[5], 1, MPI_INT, &values[6], 1, MPI_INT, other, 13, 1, MPI_INT,
                      MPI_SUM, window.handle, &remote[3]);
  MPI_Waitall(4, remote, MPI_STATUSES_IGNORE);
  const int word = 0;
  for (int tag = 0; tag < 4; ++tag) MPI_Send(&word, 1, MPI_INT, other, tag, MPI_COMM_WORLD);
  MPI_Waitall(4, receives, MPI_STATUSES_IGNORE);
}

void matched_receives_overlap() {
  static std::array<int, 2> values{};
  const int out = 1;
  MPI_Request sends[2];
  MPI_Request receive;
  MPI_Message message;
  for (int tag = 0; tag < 2; ++tag) {
    MPI_Isend(&out, 1, MPI_INT, other, tag, MPI_COMM_WORLD, &sends[tag]);
  }
  MPI_Mprobe(other, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Imrecv(values.data(), 2, MPI_INT, &message, &receive);
  MPI_Mprobe(other, 1, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
  MPI_Mrecv(&values[1], 1, MPI_INT, &message, MPI_STATUS_IGNORE);
  MPI_Wait(&receive, MPI_STATUS_IGNORE);
  MPI_Waitall(2, sends, MPI_STATUSES_IGNORE);
}

// ---- and what does not --------------------------------------------------------------------------

// All are in flight at once, and none may be named.
void right_collectives() {
  constexpr int size = 4;
  static std::array<int, size * size> matrix{};
  static std::array<int, 32> values{};
  std::vector<MPI_Request> requests;
  const auto next = [&] { return &requests.emplace_back(MPI_REQUEST_NULL); };
  MPI_Datatype column;
  MPI_Type_vector(size, 1, size, MPI_INT, &column);
  MPI_Type_commit(&column);
  // Two read the same.
  MPI_Iallreduce(&values[0], &values[1], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, next());
  MPI_Iallreduce(&values[0], &values[2], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, next());
  MPI_Iallreduce(MPI_IN_PLACE, &values[3], 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, next());
  // Nothing is sent.
  MPI_Ibcast(&values[3], 0, MPI_INT, 0, MPI_COMM_WORLD, next());
  // Only the root has a place for what comes, and what is not the root may name any.
  MPI_Igather(&values[0], 1, MPI_INT, rank == 0 ? &values[4] : &values[1], rank == 0 ? 1 : 99,
              MPI_INT, 0, MPI_COMM_WORLD, next());
  MPI_Ireduce(&values[0], rank == 0 ? &values[6] : &values[1], 1, MPI_INT, MPI_SUM, 0,
              MPI_COMM_WORLD, next());
  MPI_Iexscan(&values[0], rank == 0 ? &values[1] : &values[7], 1, MPI_INT, MPI_SUM,
              MPI_COMM_WORLD, next());
  MPI_Iscatter(&values[8], 1, MPI_INT, rank == 0 ? MPI_IN_PLACE : &values[10], 1, MPI_INT, 0,
               MPI_COMM_WORLD, next());
  MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, &values[12], 1, MPI_INT, MPI_COMM_WORLD,
                 next());
  // Columns of one matrix.
  MPI_Ibcast(&matrix[0], 1, column, 0, MPI_COMM_WORLD, next());
  MPI_Ibcast(&matrix[2], 1, column, 0, MPI_COMM_WORLD, next());
  MPI_Irecv(&matrix[1], 1, column, other, 1, MPI_COMM_WORLD, next());
  MPI_Isend(&matrix[3], 1, column, other, 1, MPI_COMM_WORLD, next());
  MPI_Type_free(&column);
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  // All have completed.
  MPI_Bcast(values.data(), 32, MPI_INT, 0, MPI_COMM_WORLD);
}

// At the ends of a line, any task may touch the blocks of missing neighbours.
void right_neighbors() {
  const int ranks = 2;
  const int periodic = 0;
  MPI_Comm line;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &line);
  static std::array<int, 4> values{};
  int word = 0;
  MPI_Request requests[2];
  MPI_Ineighbor_alltoall(&values[0], 1, MPI_INT, &values[2], 1, MPI_INT, line, &requests[0]);
  MPI_Irecv(rank == 0 ? &values[2] : &values[3], 1, MPI_INT, other, 1, MPI_COMM_WORLD,
            &requests[1]);
  MPI_Send(&word, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  MPI_Comm_free(&line);
}

void right_remote_memory() {
  const Window window(16);
  static std::array<int, 8> values{};
  MPI_Request requests[5];
  MPI_Rput(&values[0], 2, MPI_INT, other, 0, 2, MPI_INT, window.handle, &requests[0]);
  MPI_Raccumulate(&values[1], 1, MPI_INT, other, 8, 1, MPI_INT, MPI_SUM, window.handle,
                  &requests[1]);
  MPI_Rget(&values[2], 2, MPI_INT, other, 4, 2, MPI_INT, window.handle, &requests[2]);
  MPI_Rget(&values[3], 0, MPI_INT, other, 4, 0, MPI_INT, window.handle, &requests[3]);
  MPI_Rget_accumulate(&values[2], 1, MPI_INT, &values[4], 1, MPI_INT, other, 12, 1, MPI_INT,
                      MPI_NO_OP, window.handle, &requests[4]);
  MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
  MPI_Rget(&values[0], 8, MPI_INT, other, 0, 8, MPI_INT, window.handle, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

// ---- other mistakes -----------------------------------------------------------------------------

void waited_for_twice() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  static int value = 0;
  static MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &request);
  static MPI_Request copy = request;
  const Bustle bustle;
  const auto first = task("first").spawn([] { return MPI_Wait(&request, MPI_STATUS_IGNORE); });
  let_all_wait();
  MPI_Barrier(MPI_COMM_WORLD);
  const auto second = task("second").spawn([] { return MPI_Wait(&copy, MPI_STATUS_IGNORE); });
  let_all_wait();
  MPI_Barrier(MPI_COMM_WORLD);
  const int out = 7;
  MPI_Send(&out, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
  const bool refused = second.get() != MPI_SUCCESS;
  const int code = first.get();
  std::printf("first %d, second %s, value %d\n", code, refused ? "refused" : "waits", value);
}

// A task waits, its request completes, and MPI gives the handle to another request before the task
// has run again. (fuzz/handles_again.cpp has the same for every wait, with an MPI that must do so.)
void handle_given_again() {
  constexpr int tries = 16;  // MPI gives the handle to one of them, or to none
  static int first = 0;
  static std::array<int, tries> later{};
  static MPI_Request request;
  MPI_Irecv(&first, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &request);
  const MPI_Request handle = request;
  const Bustle bustle;
  const auto waits =
      task("waits").spawn([] { return MPI_Waitall(1, &request, MPI_STATUSES_IGNORE); });
  let_all_wait();
  MPI_Barrier(MPI_COMM_WORLD);
  const int out[2] = {7, 8};
  MPI_Send(&out[0], 1, MPI_INT, other, 1, MPI_COMM_WORLD);
  for (int i = 0; i < tries; ++i) MPI_Send(&out[1], 1, MPI_INT, other, 2, MPI_COMM_WORLD);
  imbrex_mpi_event event;
  const double end = MPI_Wtime() + 0.5;
  while (MPI_Wtime() < end) (void)imbrex_mpi_event_poll(&event);  // and no task runs
  std::array<MPI_Request, tries> next;
  for (int i = 0; i < tries; ++i) {
    MPI_Irecv(&later[i], 1, MPI_INT, other, 2, MPI_COMM_WORLD, &next[i]);
  }
  const bool again = std::find(next.begin(), next.end(), handle) != next.end();
  const int code = MPI_Waitall(tries, next.data(), MPI_STATUSES_IGNORE);
  std::printf("codes %d %d, received %d and %d times %d, %s\n", waits.get(), code, first,
              static_cast<int>(std::count(later.begin(), later.end(), 8)), 8,
              again ? "one by the same handle" : "none by the same handle");
}

void collectives_in_no_order() {
  int word = 0;
  if (rank == 1) MPI_Recv(&word, 1, MPI_INT, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  task("one").launch([] { MPI_Barrier(MPI_COMM_WORLD); });
  task("two").launch([] { MPI_Barrier(MPI_COMM_WORLD); });
  if (rank == 0) {
    let_all_wait();  // both are in the barrier: rank 1 is not
    MPI_Send(&word, 1, MPI_INT, other, 7, MPI_COMM_WORLD);
  }
  imbrex::taskwait();
}

// ---- collectives that go block by block --------------------------------------------------------

// A communicator whose collectives go block by block, after its first one, and blocks of 2 ranks.
struct ByBlocks {
  static constexpr int count = 4;
  MPI_Comm comm = MPI_COMM_NULL;
  std::array<int, 2 * count> out{};
  std::array<int, 2 * count> in{};

  ByBlocks() {
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "imbrex_partial", "all");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    exchange();
  }
  void exchange() {
    MPI_Alltoall(out.data(), count, MPI_INT, in.data(), count, MPI_INT, comm);
  }
  [[nodiscard]] int* block_from(const int source) { return &in[count * source]; }
  [[nodiscard]] int* block_for(const int destination) { return &out[count * destination]; }
};

void receive_into_a_block() {
  static ByBlocks it;
  std::array<MPI_Request, 2> requests{};
  MPI_Ialltoall(it.out.data(), it.count, MPI_INT, it.in.data(), it.count, MPI_INT, it.comm,
                &requests[0]);
  MPI_Irecv(it.block_from(other) + 1, 1, MPI_INT, other, 1, MPI_COMM_WORLD, &requests[1]);
  const int word = 0;
  MPI_Send(&word, 1, MPI_INT, other, 1, MPI_COMM_WORLD);
  MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
}

// Each block is sent on when it is here, and received into when it has left, while the call may go
// on.
void blocks_that_are_over() {
  static ByBlocks it;
  imbrex::finish([] {
    task("exchange")
        .in(imbrex::range(it.block_for(0), it.count))
        .in(imbrex::range(it.block_for(1), it.count))
        .out(imbrex::range(it.block_from(0), it.count))
        .out(imbrex::range(it.block_from(1), it.count))
        .launch([] {
          imbrex::release_by_blocks();
          it.exchange();
        });
    for (const int block : {0, 1}) {
      task("send on").inout(imbrex::range(it.block_from(block), it.count)).launch([block] {
        MPI_Send(it.block_from(block), it.count, MPI_INT, other, block, MPI_COMM_WORLD);
      });
      task("receive into").inout(imbrex::range(it.block_for(block), it.count)).launch([block] {
        MPI_Recv(it.block_for(block), it.count, MPI_INT, other, block, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
      });
    }
  });
}

void blocks_in_no_order() {
  static ByBlocks it;
  static ByBlocks more;
  more.comm = it.comm;
  int word = 0;
  if (rank == 1) MPI_Recv(&word, 1, MPI_INT, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  task("one").launch([] { it.exchange(); });
  task("two").launch([] { more.exchange(); });
  if (rank == 0) {
    let_all_wait();
    MPI_Send(&word, 1, MPI_INT, other, 7, MPI_COMM_WORLD);
  }
  imbrex::taskwait();
}

// `end` is the call that takes the handle away.
void ended_while_waited_on(int (*end)(MPI_Comm*)) {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  int value = 0;
  const Bustle bustle;
  const auto waits = task("waits").spawn([&] {
    return MPI_Recv(&value, 1, MPI_INT, other, 7, comm, MPI_STATUS_IGNORE);
  });
  let_all_wait();
  const bool refused = end(&comm) != MPI_SUCCESS;
  MPI_Barrier(MPI_COMM_WORLD);
  const int out = 42;
  MPI_Send(&out, 1, MPI_INT, other, 7, comm);
  const int code = waits.get();
  std::printf("%s, received %d with code %d\n", refused ? "refused" : "ended", value, code);
  end(&comm);
}

void freed_while_waited_on() { ended_while_waited_on(&MPI_Comm_free); }
void disconnected_while_waited_on() { ended_while_waited_on(&MPI_Comm_disconnect); }

// MPI completes requests of a communicator that is freed.
void freed_with_requests() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int value = 0;
  const int out = 42;
  MPI_Request requests[2];
  MPI_Irecv(&value, 1, MPI_INT, other, 7, comm, &requests[0]);
  MPI_Isend(&out, 1, MPI_INT, other, 7, comm, &requests[1]);
  MPI_Comm_free(&comm);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  std::printf("received %d\n", value);
}

const imbrex::test::Cases cases{
    {"receives_overlap", receives_overlap},
    {"thread_sends_what_is_received", thread_sends_what_is_received},
    {"exchanges_overlap", exchanges_overlap},
    {"receive_into_what_is_sent", receive_into_what_is_sent},
    {"no_overlap", no_overlap},
    {"columns_overlap", columns_overlap},
    {"collective_overlaps", collective_overlaps},
    {"collective_requests_overlap", collective_requests_overlap},
    {"persistent_overlaps", persistent_overlaps},
#if MPI_VERSION >= 4
    {"persistent_collective_overlaps", persistent_collective_overlaps},
#endif
    {"remote_overlaps", remote_overlaps},
    {"matched_receives_overlap", matched_receives_overlap},
    {"right_collectives", right_collectives},
    {"right_neighbors", right_neighbors},
    {"right_remote_memory", right_remote_memory},
    {"waited_for_twice", waited_for_twice},
    {"handle_given_again", handle_given_again},
    {"collectives_in_no_order", collectives_in_no_order},
    {"receive_into_a_block", receive_into_a_block},
    {"blocks_that_are_over", blocks_that_are_over},
    {"blocks_in_no_order", blocks_in_no_order},
    {"freed_while_waited_on", freed_while_waited_on},
    {"disconnected_while_waited_on", disconnected_while_waited_on},
    {"freed_with_requests", freed_with_requests},
};

}  // namespace

int main(int argc, char** argv) {
  const auto& run = imbrex::test::chosen(cases, argc, argv).second;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  run();
  MPI_Finalize();
}
