// SPDX-License-Identifier: BSD-3-Clause
// Requests, statuses and communicators of all kinds, in tasks: they behave as without imbrex.
#include <cstddef>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

constexpr int untouched = 77;

// Runs `body` in a task while another is always ready, so that what waits suspends.
template <class F>
void in_suspending_task(F&& body) {
  const Bustle bustle;
  task("test").spawn(std::forward<F>(body)).get();
}

// ---- nothing to wait for ---------------------------------------------------------------------

TEST(Requests, proc_null_gives_an_empty_status) {
  const Ring ring;
  in_suspending_task([&] {
    int value = untouched;
    MPI_Status status;
    EXPECT_EQ(MPI_Recv(&value, 1, MPI_INT, MPI_PROC_NULL, 3, ring.comm, &status), MPI_SUCCESS);
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_EQ(count, 0);
    EXPECT_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
    EXPECT_EQ(status.MPI_TAG, MPI_ANY_TAG);
    EXPECT_EQ(value, untouched);
    EXPECT_EQ(MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 3, ring.comm), MPI_SUCCESS);
    EXPECT_EQ(MPI_Probe(MPI_PROC_NULL, 3, ring.comm, &status), MPI_SUCCESS);
    EXPECT_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
    EXPECT_EQ(MPI_Sendrecv_replace(&value, 1, MPI_INT, MPI_PROC_NULL, 1, MPI_PROC_NULL, 1,
                                   ring.comm, &status),
              MPI_SUCCESS);
    EXPECT_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
    EXPECT_EQ(value, untouched);
    MPI_Message message;
    EXPECT_EQ(MPI_Mprobe(MPI_PROC_NULL, 3, ring.comm, &message, &status), MPI_SUCCESS);
    EXPECT_EQ(message, MPI_MESSAGE_NO_PROC);
    EXPECT_EQ(MPI_Mrecv(&value, 1, MPI_INT, &message, &status), MPI_SUCCESS);
    EXPECT_EQ(status.MPI_SOURCE, MPI_PROC_NULL);
  });
}

TEST(Requests, null_ones_complete_at_once_with_an_empty_status) {
  in_suspending_task([] {
    MPI_Request none[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status status;
    EXPECT_EQ(MPI_Wait(&none[0], &status), MPI_SUCCESS);
    EXPECT_EQ(status.MPI_SOURCE, MPI_ANY_SOURCE);
    EXPECT_EQ(status.MPI_TAG, MPI_ANY_TAG);
    EXPECT_EQ(MPI_Waitall(2, none, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(MPI_Waitall(0, nullptr, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    int index = 0;
    EXPECT_EQ(MPI_Waitany(2, none, &index, &status), MPI_SUCCESS);
    EXPECT_EQ(index, MPI_UNDEFINED);
    int found = 0;
    int indices[2];
    EXPECT_EQ(MPI_Waitsome(2, none, &found, indices, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(found, MPI_UNDEFINED);
  });
}

TEST(Requests, inactive_persistent_ones_complete_at_once_and_stay) {
  const Ring ring;
  in_suspending_task([&] {
    int value = 0;
    MPI_Request request;
    MPI_Recv_init(&value, 1, MPI_INT, ring.rank, 0, ring.comm, &request);
    MPI_Status status;
    EXPECT_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    EXPECT_EQ(status.MPI_TAG, MPI_ANY_TAG);
    EXPECT_NE(request, MPI_REQUEST_NULL);
    int index = 0;
    EXPECT_EQ(MPI_Waitany(1, &request, &index, &status), MPI_SUCCESS);
    EXPECT_EQ(index, MPI_UNDEFINED);
    EXPECT_EQ(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    MPI_Request_free(&request);
  });
}

// ---- persistent ------------------------------------------------------------------------------

TEST(Requests, persistent_ones_can_be_started_again_and_again) {
  const Ring ring;
  in_suspending_task([&] {
    int in = -1;
    int out = -1;
    MPI_Request requests[2];
    MPI_Recv_init(&in, 1, MPI_INT, ring.previous(), 0, ring.comm, &requests[0]);
    MPI_Ssend_init(&out, 1, MPI_INT, ring.next(), 0, ring.comm, &requests[1]);
    for (int round = 0; round < 20; ++round) {
      out = 100 * ring.rank + round;
      if (ring.rank == 0) sleep_ms(1);
      MPI_Startall(2, requests);
      if (round % 2 == 0) {
        MPI_Status status;
        EXPECT_EQ(MPI_Wait(&requests[0], &status), MPI_SUCCESS);
        EXPECT_EQ(status.MPI_SOURCE, ring.previous());
        EXPECT_EQ(MPI_Wait(&requests[1], MPI_STATUS_IGNORE), MPI_SUCCESS);
      } else {
        EXPECT_EQ(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
      }
      EXPECT_EQ(in, 100 * ring.previous() + round);
      EXPECT_NE(requests[0], MPI_REQUEST_NULL);
      EXPECT_NE(requests[1], MPI_REQUEST_NULL);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
  });
}

// ---- any and some ----------------------------------------------------------------------------

TEST(Requests, waitany_skips_null_and_inactive_ones) {
  const Ring ring;
  in_suspending_task([&] {
    int value = -1;
    int unused = 0;
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Recv_init(&unused, 1, MPI_INT, ring.rank, 9, ring.comm, &requests[1]);
    MPI_Irecv(&value, 1, MPI_INT, ring.previous(), 0, ring.comm, &requests[2]);
    MPI_Barrier(ring.comm);
    if (ring.rank == 0) sleep_ms(1);
    MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 0, ring.comm);
    int index = -1;
    MPI_Status status;
    EXPECT_EQ(MPI_Waitany(3, requests, &index, &status), MPI_SUCCESS);
    EXPECT_EQ(index, 2);
    EXPECT_EQ(status.MPI_SOURCE, ring.previous());
    EXPECT_EQ(value, ring.previous());
    MPI_Request_free(&requests[1]);
  });
}

// One request never completes; nothing that waits for it may pile up.
TEST(Requests, waitany_many_times_beside_one_that_never_completes_keeps_memory_flat) {
  const Ring ring;
  const int rounds = ring.size == 1 ? 1'000'000 : 100'000;
  in_suspending_task([&] {
    int never = -1;
    int value = -1;
    MPI_Request requests[2];
    MPI_Irecv(&never, 1, MPI_INT, ring.rank, 99, ring.comm, &requests[0]);
    Statistics early;
    for (int round = 0; round < rounds; ++round) {
      if (round == rounds / 10) early = statistics();
      MPI_Irecv(&value, 1, MPI_INT, ring.rank, 0, ring.comm, &requests[1]);
      task("send").launch([&] { MPI_Send(&round, 1, MPI_INT, ring.rank, 0, ring.comm); });
      int index = -1;
      if (MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE) != MPI_SUCCESS || index != 1 ||
          value != round) {
        FAIL() << "round " << round << ": index " << index << ", value " << value;
      }
    }
    taskwait();
    const Statistics late = statistics();
    EXPECT_EQ(late.stack_count, early.stack_count);
    // Workers that share a processor may keep some more; one for each round would be 20 MB.
    EXPECT_LT(late.descriptor_bytes, early.descriptor_bytes + (4 << 20));
    MPI_Cancel(&requests[0]);
    EXPECT_EQ(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_SUCCESS);
  });
}

TEST(Requests, a_cancelled_receive_completes_a_waiting_task) {
  const Ring ring;
  const Bustle bustle;
  int value = -1;
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, ring.rank, 5, ring.comm, &request);
  MPI_Request same = request;
  auto cancelled = task("wait").spawn([&] {
    MPI_Status status;
    EXPECT_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    int flag = 0;
    MPI_Test_cancelled(&status, &flag);
    return flag;
  });
  for (int round = 0; round < 100; ++round) yield();
  MPI_Cancel(&same);
  EXPECT_NE(cancelled.get(), 0);
  EXPECT_EQ(request, MPI_REQUEST_NULL);
}

// ---- statuses --------------------------------------------------------------------------------

TEST(Statuses, the_error_field_of_a_single_status_is_left_alone) {
  const Ring ring;
  for (const bool late : {false, true}) {
    in_suspending_task([&] {
      MPI_Status status;
      status.MPI_ERROR = untouched;
      int value = -1;
      task("send").launch([&] {
        if (late) sleep_ms(1);
        MPI_Send(&ring.rank, 1, MPI_INT, ring.rank, 4, ring.comm);
      });
      EXPECT_EQ(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, ring.comm, &status),
                MPI_SUCCESS);
      taskwait();
      EXPECT_EQ(status.MPI_SOURCE, ring.rank);
      EXPECT_EQ(status.MPI_TAG, 4);
      EXPECT_EQ(status.MPI_ERROR, untouched);
    });
  }
}

// ---- datatypes and communicators -------------------------------------------------------------

TEST(Datatypes, a_column_arrives_in_a_column) {
  const Ring ring;
  constexpr int n = 300;
  in_suspending_task([&] {
    std::vector<double> matrix(n * n, -1.0);
    MPI_Datatype column;
    MPI_Type_vector(n, 1, n, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    for (int row = 0; row < n; ++row) matrix[row * n] = 1000.0 * ring.rank + row;
    MPI_Request request;
    MPI_Isend(matrix.data(), 1, column, ring.next(), 0, ring.comm, &request);
    EXPECT_EQ(MPI_Recv(&matrix[1], 1, column, ring.previous(), 0, ring.comm, MPI_STATUS_IGNORE),
              MPI_SUCCESS);
    EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_Type_free(&column);
    for (int row = 0; row < n; ++row) {
      ASSERT_EQ(matrix[row * n + 1], 1000.0 * ring.previous() + row);
      ASSERT_EQ(matrix[row * n + 2], -1.0);
    }
  });
}

// Even and odd ranks, and the bridge between them.
TEST(Intercommunicators, messages_and_collectives_cross_them) {
  const Ring ring;
  if (ring.size < 2) GTEST_SKIP() << "needs two groups";
  const int side = ring.rank % 2;
  MPI_Comm half;
  MPI_Comm_split(ring.comm, side, ring.rank, &half);
  MPI_Comm bridge;
  MPI_Intercomm_create(half, 0, ring.comm, 1 - side, 11, &bridge);
  in_suspending_task([&] {
    int rank = 0;
    MPI_Comm_rank(bridge, &rank);
    int value = -1;
    MPI_Status status;
    EXPECT_EQ(MPI_Sendrecv(&ring.rank, 1, MPI_INT, rank, 1, &value, 1, MPI_INT, rank, 1, bridge,
                           &status),
              MPI_SUCCESS);
    EXPECT_EQ(value, 2 * rank + (1 - side));
    EXPECT_EQ(status.MPI_SOURCE, rank);

    // The sum of the other side.
    int sum = -1;
    EXPECT_EQ(MPI_Allreduce(&ring.rank, &sum, 1, MPI_INT, MPI_SUM, bridge), MPI_SUCCESS);
    int expected = 0;
    for (int other = 1 - side; other < ring.size; other += 2) expected += other;
    EXPECT_EQ(sum, expected);

    int word = side == 0 && rank == 0 ? 4711 : -1;
    const int root = side == 1 ? 0 : (rank == 0 ? MPI_ROOT : MPI_PROC_NULL);
    EXPECT_EQ(MPI_Bcast(&word, 1, MPI_INT, root, bridge), MPI_SUCCESS);
    EXPECT_EQ(word, side == 1 || rank == 0 ? 4711 : -1);
    EXPECT_EQ(MPI_Barrier(bridge), MPI_SUCCESS);
  });
  MPI_Comm_free(&bridge);
  MPI_Comm_free(&half);
}

// ---- callbacks -------------------------------------------------------------------------------

// MPI calls a user's operation while it makes progress: no task runs it, whichever thread polls.
TEST(Callbacks, an_operation_of_the_users_runs_as_no_task) {
  static std::atomic<int> in_a_task{0};
  static std::atomic<int> calls{0};
  const Ring ring;
  MPI_Op sum;
  MPI_Op_create(
      [](void* from, void* to, int* count, MPI_Datatype*) {
        calls.fetch_add(1);
        if (detail::in_task()) in_a_task.fetch_add(1);
        for (int i = 0; i < *count; ++i) static_cast<int*>(to)[i] += static_cast<int*>(from)[i];
      },
      1, &sum);
  for (int round = 0; round < 3; ++round) {
    in_suspending_task([&] {
      if (ring.rank == round % ring.size) sleep_ms(1);
      int value = ring.rank;
      EXPECT_EQ(MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, sum, ring.comm), MPI_SUCCESS);
      EXPECT_EQ(value, ring.size * (ring.size - 1) / 2);
    });
  }
  MPI_Op_free(&sum);
  EXPECT_EQ(in_a_task.load(), 0);
  // Not every rank has something to add, but one has.
  int all_calls = calls.load();
  MPI_Allreduce(MPI_IN_PLACE, &all_calls, 1, MPI_INT, MPI_SUM, ring.comm);
  EXPECT_GE(all_calls, ring.size > 1 ? 3 : 0);
}

}  // namespace
}  // namespace imbrex::test
