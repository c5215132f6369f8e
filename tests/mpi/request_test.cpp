// SPDX-License-Identifier: BSD-3-Clause
// The C++ calls: await, when, release_after, and what they throw.
#include <string>
#include <vector>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

MPI_Request receive_one(const Ring& ring, int tag, int* value) {
  MPI_Request request;
  MPI_Irecv(value, 1, MPI_INT, ring.previous(), tag, ring.comm, &request);
  return request;
}
void send_one(const Ring& ring, int tag) {
  MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), tag, ring.comm);
}

TEST(Await, suspends_until_the_request_is_complete) {
  const Ring ring;
  int value = -1;
  MPI_Request request = receive_one(ring, 1, &value);
  auto status = task("await").spawn([&] { return await(request); });
  if (ring.rank == 0) sleep_ms(1);
  send_one(ring, 1);
  EXPECT_EQ(status.get().MPI_SOURCE, ring.previous());
  EXPECT_EQ(value, ring.previous());
  EXPECT_EQ(request, MPI_REQUEST_NULL);
}

TEST(Await, a_null_request_returns_an_empty_status) {
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_EQ(await(request).MPI_SOURCE, MPI_ANY_SOURCE);
}

TEST(Await, keeps_a_persistent_request) {
  const Ring ring;
  int value = -1;
  MPI_Request request;
  MPI_Recv_init(&value, 1, MPI_INT, ring.previous(), 1, ring.comm, &request);
  for (int round = 0; round < 3; ++round) {
    MPI_Start(&request);
    send_one(ring, 1);
    await(request);
    EXPECT_EQ(value, ring.previous());
    EXPECT_NE(request, MPI_REQUEST_NULL);
  }
  MPI_Request_free(&request);
}

TEST(Await, works_on_a_thread_that_imbrex_does_not_know) {
  const Ring ring;
  on_unknown_thread([&] {
    int value = -1;
    MPI_Request request = receive_one(ring, 1, &value);
    send_one(ring, 1);
    await(request);
    EXPECT_EQ(value, ring.previous());
  });
}

// A receive of one int, two ints sent. Open MPI notices it only between two ranks.
class Truncated : public testing::Test {
 protected:
  void SetUp() override {
    if (ring_.size == 1) GTEST_SKIP() << "needs two ranks";
    MPI_Comm_set_errhandler(ring_.comm, MPI_ERRORS_RETURN);
    MPI_Irecv(&value_, 1, MPI_INT, ring_.previous(), 1, ring_.comm, &request_);
  }
  // After the receivers have begun to wait, on all ranks.
  void send() const {
    MPI_Barrier(ring_.comm);
    const int values[2] = {1, 2};
    MPI_Send(values, 2, MPI_INT, ring_.next(), 1, ring_.comm);
  }
  const Ring ring_;
  int value_ = -1;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

void expect_truncation(const MpiError& error, const std::string& call, const std::string& task) {
  EXPECT_EQ(error.error_class(), MPI_ERR_TRUNCATE);
  EXPECT_EQ(error.call(), call);
  const std::string text = error.what();
  EXPECT_NE(text.find(call), std::string::npos) << text;
  EXPECT_NE(text.find(task), std::string::npos) << text;
  EXPECT_NE(text.find("truncated"), std::string::npos) << text;
}

TEST_F(Truncated, request_makes_await_throw) {
  const Bustle bustle;
  auto done = task("careless").spawn([this] { await(request_); });
  yield();
  send();
  try {
    done.get();
    FAIL() << "await did not throw";
  } catch (const MpiError& error) {
    expect_truncation(error, "await(MPI_Request)", "\"careless\"");
  }
}

TEST_F(Truncated, request_makes_the_future_of_when_throw) {
  auto status = when(request_);
  EXPECT_EQ(request_, MPI_REQUEST_NULL);
  EXPECT_FALSE(status.ready());
  task("send").launch([this] { send(); });
  try {
    (void)status.get();
    FAIL() << "get did not throw";
  } catch (const MpiError& error) {
    expect_truncation(error, "when(MPI_Request)", "in task");
  }
  taskwait();
}

TEST_F(Truncated, request_that_is_complete_already_makes_it_throw_too) {
  send();
  // MPICH tells one of these of the failure, whatever the request's communicator is.
  for (const MPI_Comm comm : {MPI_COMM_SELF, MPI_COMM_WORLD}) {
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  int flag = 0;
  while (flag == 0) MPI_Request_get_status(request_, &flag, MPI_STATUS_IGNORE);
  for (const MPI_Comm comm : {MPI_COMM_SELF, MPI_COMM_WORLD}) {
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
  }
  auto status = when(request_);
  EXPECT_TRUE(status.ready());
  EXPECT_THROW((void)status.get(), MpiError);
}

TEST_F(Truncated, request_of_release_after_makes_the_enclosing_finish_throw) {
  EXPECT_THROW(finish([this] {
                 task("release").launch([this] { release_after(request_); });
                 task("send").launch([this] { send(); });
               }),
               MpiError);
}

TEST_F(Truncated, request_that_a_finish_owns_makes_it_throw) {
  EXPECT_THROW(finish([this] {
                 task("hands over").launch([this] { finish_owns(request_); });
                 task("send").launch([this] { send(); });
               }),
               MpiError);
}

TEST_F(Truncated, request_that_a_task_awaits_makes_that_fail) {
  auto awaits = task("awaits").in(when(request_)).spawn([] {});
  EXPECT_EQ(request_, MPI_REQUEST_NULL);
  task("send").launch([this] { send(); });
  try {
    awaits.get();
    FAIL() << "the task ran";
  } catch (const DependencyFailed& error) {
    EXPECT_THROW(std::rethrow_exception(error.cause()), MpiError);
  }
  taskwait();
}

TEST_F(Truncated, request_of_release_after_makes_the_future_of_its_task_throw) {
  auto result = std::make_shared<int>(1);  // what the body returns is destroyed all the same
  auto done = task("release").spawn([this, result] {
    release_after(request_);
    return result;
  });
  task("send").launch([this] { send(); });
  try {
    (void)done.get();
    FAIL() << "get did not throw";
  } catch (const MpiError& error) {
    expect_truncation(error, "release_after(MPI_Request)", "\"release\"");
  }
  done = {};
  EXPECT_EQ(result.use_count(), 1);
  taskwait();
}

TEST(When, gives_a_future_that_tasks_can_depend_on) {
  const Ring ring;
  int value = -1;
  MPI_Request request = receive_one(ring, 1, &value);
  Future<MPI_Status> arrived = when(request);
  bool seen = false;
  auto after = task("after").in(arrived).spawn([&] {
    EXPECT_EQ(value, ring.previous());
    seen = true;
  });
  task("send").launch([&] { send_one(ring, 1); });
  after.get();
  EXPECT_EQ(arrived.get().MPI_SOURCE, ring.previous());
  EXPECT_TRUE(seen);
  taskwait();
}

TEST(When, many_requests_complete_with_the_last) {
  const Ring ring;
  constexpr int count = 100;
  std::vector<int> values(count, -1);
  std::vector<Future<MPI_Status>> all;
  for (int tag = 0; tag < count; ++tag) {
    MPI_Request request = receive_one(ring, tag, &values[tag]);
    all.push_back(when(request));
  }
  task("send").launch([&] {
    for (int tag = count - 1; tag >= 0; --tag) send_one(ring, tag);
  });
  when_all(all).get();
  EXPECT_EQ(values, std::vector<int>(count, ring.previous()));
  taskwait();
}

TEST(When, mixes_with_futures_and_promises) {
  const Ring ring;
  const Promise<int> never("never before the message");
  int values[4] = {-1, -1, -1, -1};
  MPI_Request requests[2] = {receive_one(ring, 1, &values[0]), receive_one(ring, 2, &values[1])};
  MPI_Request third = receive_one(ring, 3, &values[2]);
  MPI_Request fourth = receive_one(ring, 4, &values[3]);
  finish([&] {
    auto any = task("any").in(when_any(when(third), never.future())).spawn([&] {
      EXPECT_EQ(values[2], ring.previous());
    });
    auto all = task("all").in(when(requests[0]), when(requests[1]), any).spawn([&] {
      EXPECT_EQ(values[0] + values[1], 2 * ring.previous());
    });
    EXPECT_EQ(requests[1], MPI_REQUEST_NULL);
    auto mixed = when_all(when(fourth), all, when_any(all, never.future()));
    for (int tag = 1; tag <= 4; ++tag) send_one(ring, tag);
    mixed.get();
  });
  EXPECT_EQ(values[3], ring.previous());
}

TEST(FinishOwns, a_request_started_in_it_or_in_a_task_that_has_ended) {
  const Ring ring;
  int values[2] = {-1, -1};
  finish([&] {
    MPI_Request request = receive_one(ring, 1, &values[0]);
    finish_owns(request);
    EXPECT_EQ(request, MPI_REQUEST_NULL);
    task("receive").launch([&] {
      MPI_Request later = receive_one(ring, 2, &values[1]);
      finish_owns(later);
    });
    task("send").launch([&] {
      for (const int tag : {1, 2}) send_one(ring, tag);
    });
  });
  EXPECT_EQ(values[0], ring.previous());
  EXPECT_EQ(values[1], ring.previous());
}

TEST(FinishOwns, takes_nothing_over_where_there_is_no_finish) {
  const Ring ring;
  int value = -1;
  MPI_Request request = receive_one(ring, 1, &value);
  EXPECT_THROW(finish_owns(request), Error);
  EXPECT_NE(request, MPI_REQUEST_NULL);
  send_one(ring, 1);
  await(request);
}

// Methodology: the last receives are imbrex's to match, and the first ones MPI's, whatever
// IMBREX_MATCH_ABOVE is; one has got its message, so that it is too late to cancel it.
TEST(Cancel, ends_receives_that_nobody_sends_to_and_leaves_others_alone) {
  const Ring ring;
  std::vector<int> values(100, -1);
  std::vector<Future<MPI_Status>> futures;
  for (int i = 0; i < 100; ++i) {
    MPI_Request request = receive_one(ring, i, &values[i]);
    futures.push_back(when(request));
  }
  send_one(ring, 99);
  EXPECT_EQ(futures[99].get().MPI_TAG, 99);
  for (const auto& future : futures) {
    cancel(future);
    cancel(future);  // again is no error
  }
  for (int i = 0; i < 100; ++i) {
    int cancelled = 0;
    MPI_Test_cancelled(&futures[i].get(), &cancelled);
    EXPECT_EQ(cancelled, i < 99 ? 1 : 0);
  }
  EXPECT_EQ(values[99], ring.previous());
  EXPECT_THROW(cancel(Future<MPI_Status>()), Error);
}

TEST(When, a_null_request_is_ready) {
  MPI_Request request = MPI_REQUEST_NULL;
  auto status = when(request);
  EXPECT_TRUE(status.ready());
  EXPECT_EQ(status.get().MPI_TAG, MPI_ANY_TAG);
}

TEST(When, refuses_a_persistent_request) {
  const Ring ring;
  int value = -1;
  MPI_Request request;
  MPI_Recv_init(&value, 1, MPI_INT, ring.previous(), 1, ring.comm, &request);
  EXPECT_THROW((void)when(request), Error);  // inactive: known at once, and given back
  EXPECT_NE(request, MPI_REQUEST_NULL);
  MPI_Start(&request);
  auto status = when(request);  // active: known when it completes
  MPI_Barrier(ring.comm);
  task("send").launch([&] { send_one(ring, 1); });
  EXPECT_THROW((void)status.get(), Error);
  taskwait();
  // It is freed, so its handle may be that of the next one, which is no receive.
  MPI_Send_init(&ring.rank, 1, MPI_INT, ring.next(), 2, ring.comm, &request);
  MPI_Start(&request);
  MPI_Recv(&value, 1, MPI_INT, ring.previous(), 2, ring.comm, MPI_STATUS_IGNORE);
  EXPECT_EQ(value, ring.previous());
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Request_free(&request);
}

TEST(When, works_on_a_thread_that_imbrex_does_not_know) {
  const Ring ring;
  int value = -1;
  Future<MPI_Status> arrived;
  on_unknown_thread([&] {
    MPI_Request request = receive_one(ring, 1, &value);
    arrived = when(request);
  });
  send_one(ring, 1);
  EXPECT_EQ(arrived.get().MPI_SOURCE, ring.previous());
}

TEST(ReleaseAfter, holds_dependents_back_until_the_message_is_there) {
  const Ring ring;
  int value = -1;
  bool body_ended = false;
  task("receive").out(value).launch([&] {
    MPI_Request request = receive_one(ring, 1, &value);
    release_after(request);
    EXPECT_EQ(request, MPI_REQUEST_NULL);
    body_ended = true;
  });
  auto use = task("use").in(value).spawn([&] {
    EXPECT_EQ(value, ring.previous());
    return body_ended;
  });
  task("send").launch([&] {
    if (ring.rank == 0) sleep_ms(1);
    send_one(ring, 1);
  });
  EXPECT_TRUE(use.get());
  taskwait();
}

TEST(ReleaseAfter, outside_a_task_is_refused) {
  on_unknown_thread([] {
    MPI_Request request = MPI_REQUEST_NULL;
    EXPECT_THROW(release_after(request), Error);
  });
}

}  // namespace
}  // namespace imbrex::test
