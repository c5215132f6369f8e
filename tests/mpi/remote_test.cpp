// SPDX-License-Identifier: BSD-3-Clause
// Calls on other ranks, on a real MPI.
#include "imbrex/remote.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "imbrex/imbrex.hpp"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

RemoteCalls* all = nullptr;  // for functions that call on
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
  return 1 + all->call((own_rank() + 1) % 2, depth, left - 1).get();
}

TEST(RemoteCalls, return_what_the_function_returns_on_every_rank) {
  const Ring ring;
  RemoteCalls calls(ring.comm);
  for (int rank = 0; rank < ring.size; ++rank) {  // itself, too
    EXPECT_EQ(calls.call(rank, greet, "this", 3).get(),
              "this is greeted by " + std::to_string(rank) + "!!");
  }
}

TEST(RemoteCalls, move_long_arguments_and_results) {
  const Ring ring;
  RemoteCalls calls(ring.comm);
  std::vector<int> values(300'000);
  std::iota(values.begin(), values.end(), ring.rank);
  const std::vector<int> result = calls.call(ring.next(), twice, values).get();
  EXPECT_EQ(result, twice(values));
}

TEST(RemoteCalls, a_finish_waits_for_those_that_return_nothing) {
  const Ring ring;
  marks = 0;
  RemoteCalls calls(ring.comm);
  finish([&] {
    for (int i = 0; i < 50; ++i) {
      task("caller").launch([&] { (void)calls.call(ring.next(), mark, 2); });
    }
  });
  MPI_Barrier(ring.comm);
  EXPECT_EQ(marks.load(), 100);
}

TEST(RemoteCalls, what_they_throw_arrives_with_the_rank) {
  const Ring ring;
  RemoteCalls calls(ring.comm);
  try {
    (void)calls.call(ring.next(), refuse, 7).get();
    FAIL() << "nothing thrown";
  } catch (const RemoteError& error) {
    EXPECT_EQ(error.rank(), ring.next());
    EXPECT_NE(std::string(error.what()).find("not 7"), std::string::npos) << error.what();
  }
  EXPECT_THROW((void)calls.call(ring.size, own_rank), Error);
}

TEST(RemoteCalls, call_on) {
  const Ring ring;
  if (ring.size < 2) GTEST_SKIP() << "needs another rank";
  RemoteCalls calls(ring.comm);
  all = &calls;
  MPI_Barrier(ring.comm);
  if (ring.rank == 0) {
    EXPECT_EQ(calls.call(1, depth, 9).get(), 9);
  }
  calls.close();
  EXPECT_THROW((void)calls.call(0, own_rank), Error);
}

}  // namespace
}  // namespace imbrex::test
