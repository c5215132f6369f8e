// SPDX-License-Identifier: BSD-3-Clause
// While a task waits in MPI, others run: with one worker every test here would hang or fail if a
// blocking call kept its worker.
#include <numeric>
#include <string>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

TEST(Overlap, another_task_runs_while_a_task_waits_in_recv) {
  const Ring ring;
  bool ran = false;
  int value = -1;
  auto receive = task("receive").spawn([&] {
    MPI_Recv(&value, 1, MPI_INT, ring.rank, 0, ring.comm, MPI_STATUS_IGNORE);
    EXPECT_TRUE(ran);
  });
  task("send").launch([&] {
    sleep_ms(1);
    ran = true;
    MPI_Send(&ring.rank, 1, MPI_INT, ring.rank, 0, ring.comm);
  });
  receive.get();
  EXPECT_EQ(value, ring.rank);
}

TEST(Overlap, a_task_runs_while_main_waits_in_recv) {
  const Ring ring;
  task("send").launch([&] { MPI_Send(&ring.rank, 1, MPI_INT, ring.rank, 0, ring.comm); });
  int value = -1;
  MPI_Recv(&value, 1, MPI_INT, ring.rank, 0, ring.comm, MPI_STATUS_IGNORE);
  EXPECT_EQ(value, ring.rank);
  taskwait();
}

TEST(Overlap, a_synchronous_send_to_oneself_completes) {
  const Ring ring;
  std::vector<int> in(100000);
  std::vector<int> out(in.size(), 7);
  task("receive").launch([&] {
    MPI_Recv(in.data(), static_cast<int>(in.size()), MPI_INT, ring.rank, 0, ring.comm,
             MPI_STATUS_IGNORE);
  });
  MPI_Ssend(out.data(), static_cast<int>(out.size()), MPI_INT, ring.rank, 0, ring.comm);
  taskwait();
  EXPECT_EQ(in, out);
}

// One blocking worker could not do this: first all receives, then all sends.
void exchange(int tasks) {
  const Ring ring;
  std::vector<int> in(static_cast<std::size_t>(tasks), -1);
  std::vector<int> out(in.size());
  std::iota(out.begin(), out.end(), 1000 * ring.rank);
  finish([&] {
    for (int i = 0; i < tasks; ++i) {
      task("receive").out(in[i]).launch([&ring, &in, i] {
        MPI_Recv(&in[i], 1, MPI_INT, ring.previous(), i, ring.comm, MPI_STATUS_IGNORE);
      });
    }
    for (int i = 0; i < tasks; ++i) {
      task("send").in(out[i]).launch([&ring, &out, i] {
        MPI_Ssend(&out[i], 1, MPI_INT, ring.next(), i, ring.comm);
      });
    }
  });
  std::vector<int> expected(in.size());
  std::iota(expected.begin(), expected.end(), 1000 * ring.previous());
  EXPECT_EQ(in, expected);
}

TEST(Exchange, eight_receives_then_eight_sends_complete) { exchange(8); }
TEST(Exchange, many_receives_then_many_sends_complete) { exchange(5000); }

TEST(Collectives, many_tasks_run_collectives_on_communicators_of_their_own) {
  constexpr int tasks = 12;
  constexpr int rounds = 10;
  std::vector<MPI_Comm> comms(tasks);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  finish([&] {
    // Ranks create the tasks in opposite orders.
    for (int i = 0; i < tasks; ++i) {
      const int which = rank % 2 == 0 ? i : tasks - 1 - i;
      task("collective").launch([&, which] {
        for (int round = 0; round < rounds; ++round) {
          int value = rank + which;
          MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, comms[which]);
          EXPECT_EQ(value, size * (size - 1) / 2 + size * which);
          MPI_Bcast(&value, 1, MPI_INT, round % size, comms[which]);
          MPI_Barrier(comms[which]);
        }
      });
    }
  });
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

TEST(Collectives, in_a_task_of_one_rank_match_those_of_main_and_of_foreign_threads) {
  const Ring ring;
  const auto sum = [&] {
    int value = 1;
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, ring.comm);
    return value;
  };
  for (int round = 0; round < 6; ++round) {
    int result = -1;
    const int kind = (ring.rank + round) % 3;
    if (kind == 0) {
      result = task("sum").spawn(sum).get();
    } else if (kind == 1) {
      result = sum();
    } else {
      on_unknown_thread([&] { result = sum(); });
    }
    EXPECT_EQ(result, ring.size);
  }
}

bool is_mpich_4() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text, static_cast<std::size_t>(length));
  const std::size_t digit = version.find_first_of("0123456789");
  return version.starts_with("MPICH Version") && version.compare(digit, 2, "4.") == 0;
}

TEST(Threads, unknown_threads_call_mpi_as_without_imbrex) {
  if (is_mpich_4()) GTEST_SKIP() << "MPICH 4 starves all other threads while one blocks";
  const Ring ring;
  constexpr int rounds = 200;
  task("answer").launch([&] {
    for (int round = 0; round < rounds; ++round) {
      int value = -1;
      MPI_Recv(&value, 1, MPI_INT, ring.previous(), 1, ring.comm, MPI_STATUS_IGNORE);
      ++value;
      MPI_Send(&value, 1, MPI_INT, ring.previous(), 2, ring.comm);
    }
  });
  on_unknown_thread([&] {
    for (int round = 0; round < rounds; ++round) {
      int value = -1;
      MPI_Send(&round, 1, MPI_INT, ring.next(), 1, ring.comm);
      MPI_Recv(&value, 1, MPI_INT, ring.next(), 2, ring.comm, MPI_STATUS_IGNORE);
      ASSERT_EQ(value, round + 1);
    }
  });
  taskwait();
}

// A message that goes round the ring through many tasks on each rank.
TEST(Overlap, a_relay_of_tasks_passes_a_message_on) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP() << "a standard send to oneself may wait for its receive";
  constexpr int laps = 50;
  finish([&] {
    for (int lap = 0; lap < laps; ++lap) {
      task("relay").launch([&ring, lap] {
        int value = 0;
        if (ring.rank == 0) {
          MPI_Send(&value, 1, MPI_INT, ring.next(), lap, ring.comm);
          MPI_Recv(&value, 1, MPI_INT, ring.previous(), lap, ring.comm, MPI_STATUS_IGNORE);
          EXPECT_EQ(value, ring.size - 1);
        } else {
          MPI_Recv(&value, 1, MPI_INT, ring.previous(), lap, ring.comm, MPI_STATUS_IGNORE);
          ++value;
          MPI_Send(&value, 1, MPI_INT, ring.next(), lap, ring.comm);
        }
      });
    }
  });
}

}  // namespace
}  // namespace imbrex::test
