// SPDX-License-Identifier: BSD-3-Clause
// MPI gives a handle to a new request while the task that waited for the one before does not know
// yet that it has ended. Each task here waits once for each of its own requests, with the default
// error handler: nothing may be refused. (fuzz/handles_again.cpp has it by an MPI that must do so.)
#include <array>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

constexpr int scale = IMBREX_TEST_SCALE > 1 ? 4 : 1;

// Two handles of each task go back to MPI in each round, and others take them.
TEST(Handles, of_many_tasks_that_exchange_are_no_second_wait) {
  constexpr int tasks = 200;
  constexpr int rounds = 60 / scale;
  const Ring ring;
  std::atomic<int> wrong{0};
  finish([&] {
    for (int tag = 0; tag < tasks; ++tag) {
      task("exchange").launch([&, tag] {
        for (int round = 0; round < rounds; ++round) {
          int in = -1;
          const int out = tag * rounds + round;
          MPI_Request receive;
          MPI_Request send;
          MPI_Irecv(&in, 1, MPI_INT, ring.previous(), tag, ring.comm, &receive);
          MPI_Issend(&out, 1, MPI_INT, ring.next(), tag, ring.comm, &send);
          MPI_Wait(&send, MPI_STATUS_IGNORE);
          MPI_Wait(&receive, MPI_STATUS_IGNORE);
          if (in != out) wrong.fetch_add(1);
        }
      });
    }
  });
  EXPECT_EQ(wrong.load(), 0);
}

// Hundreds of waits end in one poll, while other tasks make requests.
TEST(Handles, of_a_batch_that_ends_at_once_are_no_second_wait) {
  constexpr int count = 400;
  constexpr int rounds = 24 / scale;
  const Ring ring;
  MPI_Comm self;
  MPI_Comm_dup(MPI_COMM_SELF, &self);
  for (int round = 0; round < rounds; ++round) {
    std::array<int, count> in{};
    std::array<MPI_Request, count> receives;
    std::atomic<int> left{count};
    finish([&] {
      for (int tag = 0; tag < count; ++tag) {
        task("send").launch([&, tag] {
          MPI_Request request;
          MPI_Issend(&tag, 1, MPI_INT, ring.next(), tag, ring.comm, &request);
          MPI_Wait(&request, MPI_STATUS_IGNORE);
          left.fetch_sub(1);
        });
      }
      for (int tag = 0; tag < 3; ++tag) {
        task("other").launch([&, tag] {
          while (left.load() > 0) {
            int word = -1;
            MPI_Request both[2];
            MPI_Irecv(&word, 1, MPI_INT, 0, tag, self, &both[0]);
            MPI_Isend(&tag, 1, MPI_INT, 0, tag, self, &both[1]);
            MPI_Wait(&both[1], MPI_STATUS_IGNORE);
            MPI_Wait(&both[0], MPI_STATUS_IGNORE);
            EXPECT_EQ(word, tag);
            yield();
          }
        });
      }
      for (int i = 0; i < 5; ++i) yield();
      for (int tag = 0; tag < count; ++tag) {
        MPI_Irecv(&in[tag], 1, MPI_INT, ring.previous(), tag, ring.comm, &receives[tag]);
      }
      MPI_Waitall(count, receives.data(), MPI_STATUSES_IGNORE);
    });
    for (int tag = 0; tag < count; ++tag) ASSERT_EQ(in[tag], tag);
  }
  MPI_Comm_free(&self);
}

}  // namespace
}  // namespace imbrex::test
