// SPDX-License-Identifier: BSD-3-Clause
// Calls on other ranks, on a real MPI.
#include "imbrex/remote.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "imbrex/imbrex.hpp"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

std::atomic<int> marks{0};

int own_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
std::string greet(const std::string& who, int times) {
  std::string text = who + " is greeted by " + std::to_string(own_rank());
  for (int i = 1; i < times; ++i) text += "!";
  return text;
}
void mark(int by) { marks += by; }
std::vector<int> twice(std::vector<int> values) {
  for (int& value : values) value *= 2;
  return values;
}
int refuse(int value) { throw std::invalid_argument("not " + std::to_string(value)); }
int depth(int left) {
  if (left == 0) return 0;
  return 1 + call((own_rank() + 1) % 2, depth, left - 1).get();
}

TEST(RemoteCalls, return_what_the_function_returns_on_every_rank) {
  const Ring ring;
  for (int rank = 0; rank < ring.size; ++rank) {  // itself, too
    EXPECT_EQ(call(ring.comm, rank, greet, "this", 3).get(),
              "this is greeted by " + std::to_string(rank) + "!!");
  }
}

TEST(RemoteCalls, move_long_arguments_and_results) {
  const Ring ring;
  std::vector<int> values(300'000);
  std::iota(values.begin(), values.end(), ring.rank);
  const std::vector<int> result = call(ring.comm, ring.next(), twice, values).get();
  EXPECT_EQ(result, twice(values));
}

TEST(RemoteCalls, a_finish_waits_for_those_that_return_nothing) {
  const Ring ring;
  marks = 0;
  MPI_Barrier(ring.comm);
  finish([&] {
    for (int i = 0; i < 50; ++i) {
      task("caller").launch([&] { (void)call(ring.comm, ring.next(), mark, 2); });
    }
  });
  MPI_Barrier(ring.comm);
  EXPECT_EQ(marks.load(), 100);
}

TEST(RemoteCalls, an_exception_arrives_with_the_rank) {
  const Ring ring;
  try {
    (void)call(ring.comm, ring.next(), refuse, 7).get();
    FAIL() << "nothing thrown";
  } catch (const RemoteError& error) {
    EXPECT_EQ(error.rank(), ring.next());
    const std::string text = error.what();
    EXPECT_NE(text.find("not 7"), std::string::npos) << text;
    const std::string from = "a call from rank " + std::to_string(ring.rank);
    EXPECT_NE(text.find(from), std::string::npos) << text;
    EXPECT_NE(text.find("remote_test.cpp:"), std::string::npos) << text;
    EXPECT_EQ(text.find("call_messages.cpp"), std::string::npos) << text;
  }
  EXPECT_THROW((void)call(ring.comm, ring.size, own_rank), Error);
}

TEST(RemoteCalls, call_on) {
  const Ring ring;
  if (ring.size < 2) GTEST_SKIP() << "needs another rank";
  if (ring.rank == 0) {
    EXPECT_EQ(call(1, depth, 9).get(), 9);
  }
}

TEST(RemoteCalls, go_to_the_ranks_of_a_communicator) {
  const Ring ring;
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(ring.comm, 0, ring.size - ring.rank, &reversed);
  EXPECT_EQ(call(reversed, 0, own_rank).get(), ring.size - 1);
  EXPECT_THROW((void)call(reversed, -1, own_rank), Error);
  EXPECT_THROW((void)call(reversed, ring.size, own_rank), Error);
  EXPECT_THROW((void)call(ring.size, own_rank), Error);
  MPI_Comm_free(&reversed);
}

// More of them wait there than a creator may run ahead.
TEST(RemoteCalls, many_calls_all_arrive) {
  const Ring ring;
  constexpr int calls = 5000 / IMBREX_TEST_SCALE;
  marks = 0;
  MPI_Barrier(ring.comm);
  finish([&] {
    for (int i = 0; i < calls; ++i) (void)call((ring.rank + i) % ring.size, mark, 1);
  });
  MPI_Barrier(ring.comm);
  int all = 0;
  const int mine = marks;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, ring.comm);
  EXPECT_EQ(all, calls * ring.size);
}

// The other rank is in no call of imbrex's, only in MPI's.
TEST(RemoteCalls, need_nothing_of_the_rank_that_is_called) {
  const Ring ring;
  int token = 0;
  if (ring.rank == 0) {
    EXPECT_EQ(call(ring.size - 1, own_rank).get(), ring.size - 1);
    if (ring.size > 1) MPI_Send(&token, 1, MPI_INT, ring.size - 1, 0, ring.comm);
  } else if (ring.rank == ring.size - 1) {
    MPI_Recv(&token, 1, MPI_INT, 0, 0, ring.comm, MPI_STATUS_IGNORE);
  }
}

// Each rank has as many hops as all chains have together for each rank, once MPI_Finalize is over.
struct Hops {
  std::atomic<int> taken{0};
  int expected = 0;
  ~Hops() {
    if (taken == expected) return;
    std::fprintf(stderr, "%d calls of %d ran before MPI_Finalize ended\n", taken.load(), expected);
    std::_Exit(1);
  }
};
Hops hops;
void hop(const int left) {
  ++hops.taken;
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (left > 1) (void)call((own_rank() + 1) % size, hop, left - 1);
}

TEST(RemoteCalls, calls_without_a_waiter_end_in_MPI_Finalize) {
  const Ring ring;
  constexpr int rounds = 100;
  hops.expected = rounds * ring.size;
  (void)call(ring.comm, ring.next(), hop, rounds * ring.size);
}

}  // namespace
}  // namespace imbrex::test
