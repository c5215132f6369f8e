// SPDX-License-Identifier: BSD-3-Clause
// imbrex/continue.h: functions that are called when requests are complete, without tasks.
#include "imbrex/continue.h"

#include <array>
#include <mutex>
#include <string>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

// The arguments of a continuation's calls.
struct Called {
  std::atomic<int> times{0};
  int code = -1;
  std::vector<MPI_Status> statuses;

  static void note(int code, int count, const MPI_Status* statuses, void* argument) {
    Called& self = *static_cast<Called*>(argument);
    self.code = code;
    self.statuses.assign(statuses, statuses + count);
    ++self.times;
  }
};

void progress_until(const std::atomic<int>& value, int least) {
  while (value.load() < least) (void)imbrex_progress();
}

int words_in(const MPI_Status& status) {
  int count = 0;
  MPI_Get_count(&status, MPI_INT, &count);
  return count;
}

TEST(Continue, calls_the_function_once_with_the_status_of_the_receive) {
  const Ring ring;
  int value = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, ring.comm, &request);
  Called called;
  EXPECT_EQ(imbrex_continue(&request, &Called::note, &called), IMBREX_SUCCESS);
  EXPECT_EQ(request, MPI_REQUEST_NULL);
  MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 3, ring.comm);
  progress_until(called.times, 1);
  EXPECT_EQ(called.code, MPI_SUCCESS);
  ASSERT_EQ(called.statuses.size(), 1u);
  EXPECT_EQ(called.statuses[0].MPI_SOURCE, ring.previous());
  EXPECT_EQ(called.statuses[0].MPI_TAG, 3);
  EXPECT_EQ(words_in(called.statuses[0]), 1);
  EXPECT_EQ(value, ring.previous());
  for (int i = 0; i < 100; ++i) (void)imbrex_progress();
  EXPECT_EQ(called.times, 1);
}

TEST(Continue, calls_once_for_several_requests_when_all_are_complete) {
  const Ring ring;
  std::array<int, 2> values{-1, -1};
  std::array<MPI_Request, 4> requests;
  requests.fill(MPI_REQUEST_NULL);
  MPI_Irecv(&values[0], 1, MPI_INT, ring.previous(), 4, ring.comm, &requests[0]);
  MPI_Irecv(&values[1], 1, MPI_INT, ring.previous(), 5, ring.comm, &requests[2]);
  MPI_Isend(&ring.rank, 1, MPI_INT, ring.next(), 4, ring.comm, &requests[3]);
  Called called;
  EXPECT_EQ(imbrex_continue_all(4, requests.data(), &Called::note, &called), IMBREX_SUCCESS);
  for (const MPI_Request request : requests) EXPECT_EQ(request, MPI_REQUEST_NULL);
  for (int i = 0; i < 200; ++i) (void)imbrex_progress();
  EXPECT_EQ(called.times, 0);  // of tag 5 there is no message yet
  MPI_Barrier(ring.comm);
  MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 5, ring.comm);
  progress_until(called.times, 1);
  EXPECT_EQ(called.code, MPI_SUCCESS);
  ASSERT_EQ(called.statuses.size(), 4u);
  EXPECT_EQ(called.statuses[0].MPI_TAG, 4);
  EXPECT_EQ(called.statuses[1].MPI_SOURCE, MPI_ANY_SOURCE);  // of the null request
  EXPECT_EQ(called.statuses[2].MPI_TAG, 5);
  EXPECT_EQ(values[0] + values[1], 2 * ring.previous());
}

// Each continuation asks for another one of a request that is complete.
struct Chain {
  int left = 2000;
  int depth = 0;
  int deepest = 0;
  std::atomic<int> ended{0};

  static void next(int, int, const MPI_Status*, void* argument) {
    Chain& self = *static_cast<Chain*>(argument);
    self.deepest = std::max(self.deepest, ++self.depth);
    if (--self.left == 0) {
      ++self.ended;
    } else {
      MPI_Request none = MPI_REQUEST_NULL;
      EXPECT_EQ(imbrex_continue(&none, &Chain::next, &self), IMBREX_SUCCESS);
      int flag = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);  // may poll
    }
    --self.depth;
  }
};

TEST(Continue, is_neither_called_within_the_call_nor_nested) {
  Chain chain;
  MPI_Request none = MPI_REQUEST_NULL;
  imbrex_continue(&none, &Chain::next, &chain);
  if (worker_count() == 1) {
    EXPECT_EQ(chain.left, 2000);
  }
  progress_until(chain.ended, 1);
  EXPECT_EQ(chain.deepest, 1);
}

// A continuation that posts the next receive, and another that answers: no task waits.
struct Echo {
  MPI_Comm comm;
  int peer;
  int rounds;
  int value = 0;
  std::atomic<int> received{0};

  void post() {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(&value, 1, MPI_INT, peer, 6, comm, &request);
    imbrex_continue(&request, &Echo::answer, this);
  }
  static void sent(int, int, const MPI_Status*, void* argument) {
    delete static_cast<int*>(argument);
  }
  static void answer(int code, int, const MPI_Status*, void* argument) {
    Echo& self = *static_cast<Echo*>(argument);
    EXPECT_EQ(code, MPI_SUCCESS);
    const int got = self.value;
    EXPECT_EQ(got, self.received.load());
    if (got + 1 < self.rounds) self.post();
    self.send(got + 1);
    ++self.received;  // the last: then the test may end
  }
  void send(int number) {
    if (number >= rounds) return;
    int* const content = new int(number);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(content, 1, MPI_INT, peer, 6, comm, &request);
    imbrex_continue(&request, &Echo::sent, content);
  }
};

TEST(Continue, may_start_operations_and_ask_for_more) {
  const Ring ring;
  if (ring.size % 2 != 0 && ring.size != 1) GTEST_SKIP() << "needs pairs";
  const int peer = ring.size == 1 ? 0 : ring.rank ^ 1;
  Echo echo{.comm = ring.comm, .peer = peer, .rounds = 300};
  echo.post();
  echo.send(0);
  progress_until(echo.received, echo.rounds);
  while (imbrex_progress() != 0) {
  }
  MPI_Barrier(ring.comm);
}

TEST(Continue, a_failed_receive_gives_its_code_and_its_handler_runs_once) {
  const Ring ring;
  if (ring.size == 1) {
    GTEST_SKIP() << "MPI_Testsome of Open MPI 4.1 does not tell that a message to oneself was cut";
  }
  MPI_Comm_set_errhandler(ring.comm, MPI_ERRORS_RETURN);
  std::array<int, 2> values{};
  std::array<MPI_Request, 2> requests;
  MPI_Irecv(&values[0], 1, MPI_INT, ring.previous(), 8, ring.comm, &requests[0]);
  MPI_Irecv(&values[1], 1, MPI_INT, ring.previous(), 9, ring.comm, &requests[1]);
  Called called;
  imbrex_continue_all(2, requests.data(), &Called::note, &called);
  const std::array<int, 2> two{7, 7};
  MPI_Send(two.data(), 2, MPI_INT, ring.next(), 8, ring.comm);
  MPI_Send(two.data(), 1, MPI_INT, ring.next(), 9, ring.comm);
  progress_until(called.times, 1);
  EXPECT_EQ(called.code, MPI_ERR_IN_STATUS);
  int error_class = MPI_SUCCESS;
  MPI_Error_class(called.statuses[0].MPI_ERROR, &error_class);
  EXPECT_EQ(error_class, MPI_ERR_TRUNCATE);
  EXPECT_EQ(called.statuses[1].MPI_ERROR, MPI_SUCCESS);
  EXPECT_EQ(values[1], 7);
}

TEST(Continue, refuses_a_persistent_receive_and_leaves_it_as_it_was) {
  const Ring ring;
  int value = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Recv_init(&value, 1, MPI_INT, ring.previous(), 2, ring.comm, &request);
  Called called;
  EXPECT_EQ(imbrex_continue(&request, &Called::note, &called), IMBREX_ERR_USE);
  MPI_Start(&request);
  MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 2, ring.comm);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(value, ring.previous());
  EXPECT_EQ(called.times, 0);
  MPI_Request_free(&request);
}

TEST(Continue, refuses_a_call_without_a_function) {
  MPI_Request none = MPI_REQUEST_NULL;
  EXPECT_EQ(imbrex_continue(&none, nullptr, nullptr), IMBREX_ERR_USE);
}

void make_progress(int, int, const MPI_Status*, void* argument) {
  static_cast<std::atomic<int>*>(argument)->store(1 + imbrex_progress());
}

TEST(Continue, progress_within_a_continuation_does_nothing) {
  std::atomic<int> called{0};
  MPI_Request none = MPI_REQUEST_NULL;
  testing::internal::CaptureStderr();
  imbrex_continue(&none, &make_progress, &called);
  progress_until(called, 1);
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(called, 1);
  EXPECT_NE(text.find("imbrex_progress is called within a continuation"), std::string::npos);
}

void throw_something(int, int, const MPI_Status*, void* argument) {
  ++*static_cast<std::atomic<int>*>(argument);
  throw Error("no use");
}

TEST(Continue, an_exception_of_a_continuation_is_named_and_harms_no_other) {
  std::atomic<int> called{0};
  MPI_Request none = MPI_REQUEST_NULL;
  testing::internal::CaptureStderr();
  imbrex_continue(&none, &throw_something, &called);
  progress_until(called, 1);
  while (imbrex_progress() != 0) {
  }
  if (worker_count() == 1) {
    EXPECT_NE(testing::internal::GetCapturedStderr().find("has thrown: no use"), std::string::npos);
  } else {
    (void)testing::internal::GetCapturedStderr();  // perhaps a worker has not said it yet
  }
}

// Threads that imbrex does not know, and no task at all.
TEST(Continue, plain_threads_may_make_all_the_progress) {
  const Ring ring;
  constexpr int messages = 400;
  std::vector<int> values(messages, -1);
  std::vector<int> sent(messages);
  std::atomic<int> done{0};
  const auto count = [](int code, int, const MPI_Status*, void* argument) {
    EXPECT_EQ(code, MPI_SUCCESS);
    ++*static_cast<std::atomic<int>*>(argument);
  };
  const auto work = [&](int first, int last) {
    for (int i = first; i < last; ++i) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Irecv(&values[i], 1, MPI_INT, ring.previous(), i, ring.comm, &request);
      imbrex_continue(&request, count, &done);
      sent[i] = i * i;
      MPI_Isend(&sent[i], 1, MPI_INT, ring.next(), i, ring.comm, &request);
      imbrex_continue(&request, count, &done);
    }
    progress_until(done, 2 * messages);
  };
  std::thread one([&] { work(0, messages / 2); });
  std::thread two([&] { work(messages / 2, messages); });
  one.join();
  two.join();
  for (int i = 0; i < messages; ++i) EXPECT_EQ(values[i], i * i);
  MPI_Barrier(ring.comm);
}

}  // namespace
}  // namespace imbrex::test
