// SPDX-License-Identifier: BSD-3-Clause
// TAMPI's calls from imbrex tasks in C++: what is bound, when dependents run, what fails. Every
// collective is in collectives_test.cpp.
#include <TAMPI.h>

#include <array>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

constexpr std::chrono::seconds limit{60};

// Lets other tasks run until `condition` holds.
void wait_until(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    ASSERT_LT(std::chrono::steady_clock::now(), end) << "waited for a minute";
    yield();
  }
}

// MPI returns errors while it lives, also where it knows no communicator.
class ErrorsReturn {
 public:
  explicit ErrorsReturn(MPI_Comm comm) {
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (const MPI_Comm one : {MPI_COMM_SELF, MPI_COMM_WORLD}) {
      MPI_Comm_set_errhandler(one, MPI_ERRORS_RETURN);
    }
  }
  ~ErrorsReturn() {
    for (const MPI_Comm one : {MPI_COMM_SELF, MPI_COMM_WORLD}) {
      MPI_Comm_set_errhandler(one, MPI_ERRORS_ARE_FATAL);
    }
  }
  ErrorsReturn(const ErrorsReturn&) = delete;
  ErrorsReturn& operator=(const ErrorsReturn&) = delete;
};

// Methodology: no rank sends before every rank has seen that its receiving body is over and that
// the dependent has not run.
TEST(Iwait, holds_dependents_back_until_the_message_and_its_status_are_there) {
  const Ring ring;
  int value = -1;
  MPI_Status status;
  MPI_Request request = MPI_REQUEST_NULL;
  std::atomic<bool> ended{false};
  std::atomic<bool> used{false};
  finish([&] {
    task("receive").out(value).launch([&] {
      MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, ring.comm, &request);
      EXPECT_EQ(TAMPI_Iwait(&request, &status), MPI_SUCCESS);
      EXPECT_EQ(request, MPI_REQUEST_NULL);
      ended.store(true);
    });
    task("use").in(value).launch([&] {
      EXPECT_EQ(value, ring.previous());
      EXPECT_EQ(status.MPI_SOURCE, ring.previous());
      EXPECT_EQ(status.MPI_TAG, 1);
      int count = 0;
      MPI_Get_count(&status, MPI_INT, &count);
      EXPECT_EQ(count, 1);
      used.store(true);
    });
    wait_until([&] { return ended.load(); });
    EXPECT_FALSE(used.load());
    MPI_Barrier(ring.comm);
    MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 1, ring.comm);
  });
  EXPECT_TRUE(used.load());
}

TEST(Iwaitall, leaves_out_null_requests_and_writes_the_other_statuses) {
  const Ring ring;
  std::array<int, 3> values{-1, -1, -1};
  std::array<MPI_Status, 4> statuses{};
  statuses[1].MPI_TAG = 77;
  std::array<MPI_Request, 4> requests{};
  std::atomic<bool> ended{false};
  finish([&] {
    task("receive").out(values).launch([&] {
      requests[1] = MPI_REQUEST_NULL;
      int place = 0;
      for (const std::size_t i : {0, 2, 3}) {
        MPI_Irecv(&values[static_cast<std::size_t>(place++)], 1, MPI_INT, ring.previous(),
                  static_cast<int>(i), ring.comm, &requests[i]);
      }
      EXPECT_EQ(TAMPI_Iwaitall(4, requests.data(), statuses.data()), MPI_SUCCESS);
      for (const MPI_Request request : requests) EXPECT_EQ(request, MPI_REQUEST_NULL);
      ended.store(true);
    });
    task("use").in(values).launch([&] {
      EXPECT_EQ(values, (std::array<int, 3>{0, 2, 3}));
      for (const std::size_t i : {0, 2, 3}) EXPECT_EQ(statuses[i].MPI_TAG, static_cast<int>(i));
      EXPECT_EQ(statuses[1].MPI_TAG, 77);
    });
    wait_until([&] { return ended.load(); });
    MPI_Barrier(ring.comm);
    for (const int tag : {3, 0, 2}) MPI_Send(&tag, 1, MPI_INT, ring.next(), tag, ring.comm);
  });
}

TEST(Iwaitall, ignores_statuses_on_request) {
  const Ring ring;
  std::array<int, 2> values{-1, -1};
  finish([&] {
    task("receive").out(values).launch([&] {
      std::array<MPI_Request, 2> requests{};
      for (const int tag : {0, 1}) {
        MPI_Irecv(&values[static_cast<std::size_t>(tag)], 1, MPI_INT, ring.previous(), tag,
                  ring.comm, &requests[static_cast<std::size_t>(tag)]);
      }
      EXPECT_EQ(TAMPI_Iwaitall(2, requests.data(), MPI_STATUSES_IGNORE), MPI_SUCCESS);
    });
    task("use").in(values).launch([&] { EXPECT_EQ(values, (std::array<int, 2>{5, 6})); });
    for (const int tag : {0, 1}) {
      const int value = 5 + tag;
      MPI_Send(&value, 1, MPI_INT, ring.next(), tag, ring.comm);
    }
  });
}

// Every kind of send, and the receive: more than imbrex gives to MPI at once, so that it matches
// some itself.
TEST(PointToPoint, each_send_and_receive_binds_its_request) {
  const Ring ring;
  using Send = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
  constexpr std::array<Send, 4> sends{TAMPI_Isend, TAMPI_Issend, TAMPI_Ibsend, TAMPI_Irsend};
  constexpr int rounds = 12;
  constexpr int count = static_cast<int>(sends.size()) * rounds;
  std::vector<char> room(static_cast<std::size_t>(count) * (MPI_BSEND_OVERHEAD + sizeof(int)));
  MPI_Buffer_attach(room.data(), static_cast<int>(room.size()));

  std::array<int, count> in{};
  std::array<int, count> out{};
  std::array<MPI_Status, count> statuses{};
  std::atomic<int> posted{0};
  std::atomic<int> sum{0};
  finish([&] {
    for (std::size_t i = 0; i < count; ++i) {
      task("receive").out(in[i]).launch([&, i] {
        MPI_Request request = MPI_REQUEST_NULL;
        EXPECT_EQ(TAMPI_Irecv(&in[i], 1, MPI_INT, ring.previous(), static_cast<int>(i), ring.comm,
                              &request, &statuses[i]),
                  MPI_SUCCESS);
        EXPECT_EQ(request, MPI_REQUEST_NULL);
        posted.fetch_add(1);
      });
      task("use").in(in[i]).launch([&, i] {
        EXPECT_EQ(statuses[i].MPI_TAG, static_cast<int>(i));
        sum.fetch_add(in[i]);
      });
    }
    wait_until([&] { return posted.load() == count; });
    MPI_Barrier(ring.comm);  // for the sends that must find their receive
    for (std::size_t i = 0; i < count; ++i) {
      task("send").out(out[i]).launch([&, i] {
        out[i] = static_cast<int>(i);
        MPI_Request request = MPI_REQUEST_NULL;
        EXPECT_EQ(sends[i % sends.size()](&out[i], 1, MPI_INT, ring.next(), static_cast<int>(i),
                                          ring.comm, &request),
                  MPI_SUCCESS);
        EXPECT_EQ(request, MPI_REQUEST_NULL);
      });
      task("overwrite").inout(out[i]).launch([&, i] { out[i] = -1; });
    }
  });
  EXPECT_EQ(sum.load(), count * (count - 1) / 2);
  void* buffer = nullptr;
  int bytes = 0;
  MPI_Buffer_detach(&buffer, &bytes);
}

TEST(Wait, does_nothing_in_a_task) {
  const Ring ring;
  int value = -1;
  std::atomic<bool> went_on{false};
  finish([&] {
    task("receive").out(value).launch([&] {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Status status;
      TAMPI_Irecv(&value, 1, MPI_INT, ring.previous(), 1, ring.comm, &request, MPI_STATUS_IGNORE);
      EXPECT_EQ(TAMPI_Wait(&request, &status), MPI_SUCCESS);
      EXPECT_EQ(TAMPI_Waitall(1, &request, MPI_STATUSES_IGNORE), MPI_SUCCESS);
      went_on.store(true);
    });
    task("use").in(value).launch([&] { EXPECT_EQ(value, ring.previous()); });
    wait_until([&] { return went_on.load(); });
    MPI_Barrier(ring.comm);
    MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 1, ring.comm);
  });
}

// A program that makes TAMPI's calls without tasks.
void exchange_outside_of_tasks(const Ring& ring) {
  int value = -1;
  std::array<MPI_Request, 2> requests{};
  std::array<MPI_Status, 2> statuses{};
  TAMPI_Irecv(&value, 1, MPI_INT, ring.previous(), 1, ring.comm, &requests[0], &statuses[0]);
  TAMPI_Isend(&ring.rank, 1, MPI_INT, ring.next(), 1, ring.comm, &requests[1]);
  EXPECT_EQ(TAMPI_Waitall(2, requests.data(), statuses.data()), MPI_SUCCESS);
  EXPECT_EQ(value, ring.previous());
  EXPECT_EQ(statuses[0].MPI_SOURCE, ring.previous());
  EXPECT_EQ(TAMPI_Wait(requests.data(), statuses.data()), MPI_SUCCESS);  // nothing left
}

TEST(Wait, in_main_waits_for_what_main_has_bound) {
  const Ring ring;
  exchange_outside_of_tasks(ring);
}

TEST(Wait, in_a_thread_waits_for_what_the_thread_has_bound) {
  const Ring ring;
  on_unknown_thread([&] { exchange_outside_of_tasks(ring); });
}

// ---- what fails --------------------------------------------------------------------------------

constexpr std::array<int, 2> two{1, 2};

TEST(Failing, request_makes_the_finish_throw_when_it_fails_later) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP() << "Open MPI truncates a message to itself without a word";
  const ErrorsReturn errors(ring.comm);
  int one = 0;
  MPI_Status status{};
  std::atomic<bool> ended{false};
  EXPECT_THROW(finish([&] {
                 task("receive").launch([&] {
                   MPI_Request request = MPI_REQUEST_NULL;
                   EXPECT_EQ(TAMPI_Irecv(&one, 1, MPI_INT, ring.previous(), 1, ring.comm,
                                         &request, &status),
                             MPI_SUCCESS);
                   ended.store(true);
                 });
                 wait_until([&] { return ended.load(); });
                 MPI_Barrier(ring.comm);
                 MPI_Send(two.data(), 2, MPI_INT, ring.next(), 1, ring.comm);
               }),
               MpiError);
  int error_class = MPI_SUCCESS;
  MPI_Error_class(status.MPI_ERROR, &error_class);
  EXPECT_EQ(error_class, MPI_ERR_TRUNCATE);
}

// Methodology: the body has ended, without an error, before the request fails.
TEST(Failing, request_fails_its_task_so_that_dependents_do_not_run) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP() << "Open MPI truncates a message to itself without a word";
  const ErrorsReturn errors(ring.comm);
  int one = 0;
  std::atomic<bool> ended{false};
  std::atomic<bool> used{false};
  std::atomic<bool> overwritten{false};
  const auto received = task("receive").out(one).spawn([&] {
    MPI_Request request = MPI_REQUEST_NULL;
    EXPECT_EQ(TAMPI_Irecv(&one, 1, MPI_INT, ring.previous(), 1, ring.comm, &request,
                          MPI_STATUS_IGNORE),
              MPI_SUCCESS);
    ended.store(true);
  });
  const auto use = task("use").in(one).spawn([&] { used.store(true); });
  const auto overwrite = task("overwrite").out(one).spawn([&] { overwritten.store(true); });
  wait_until([&] { return ended.load(); });
  MPI_Barrier(ring.comm);
  MPI_Send(two.data(), 2, MPI_INT, ring.next(), 1, ring.comm);
  EXPECT_THROW(received.get(), MpiError);
  EXPECT_THROW(use.get(), DependencyFailed);
  overwrite.get();
  EXPECT_FALSE(used.load());
  EXPECT_TRUE(overwritten.load());
}

// Methodology: the message is there before the receive, in Open MPI at least.
TEST(Failing, request_makes_the_finish_throw_when_that_is_known_at_once) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP() << "Open MPI truncates a message to itself without a word";
  const ErrorsReturn errors(ring.comm);
  MPI_Request sending = MPI_REQUEST_NULL;
  MPI_Isend(two.data(), 2, MPI_INT, ring.next(), 1, ring.comm, &sending);
  MPI_Status probed;
  MPI_Probe(ring.previous(), 1, ring.comm, &probed);
  int one = 0;
  int code = MPI_SUCCESS;
  EXPECT_THROW(finish([&] {
                 task("receive").launch([&] {
                   MPI_Request request = MPI_REQUEST_NULL;
                   code = TAMPI_Irecv(&one, 1, MPI_INT, ring.previous(), 1, ring.comm, &request,
                                      MPI_STATUS_IGNORE);
                   EXPECT_EQ(request, MPI_REQUEST_NULL);
                 });
               }),
               MpiError);
  int error_class = MPI_SUCCESS;
  MPI_Error_class(code, &error_class);
  EXPECT_TRUE(error_class == MPI_ERR_TRUNCATE || code == MPI_SUCCESS) << code;
  MPI_Wait(&sending, MPI_STATUS_IGNORE);
}

TEST(Failing, request_in_main_is_told_by_Wait) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP() << "Open MPI truncates a message to itself without a word";
  const ErrorsReturn errors(ring.comm);
  int one = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_EQ(TAMPI_Irecv(&one, 1, MPI_INT, ring.previous(), 1, ring.comm, &request,
                        MPI_STATUS_IGNORE),
            MPI_SUCCESS);
  MPI_Barrier(ring.comm);
  MPI_Send(two.data(), 2, MPI_INT, ring.next(), 1, ring.comm);
  EXPECT_NE(TAMPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
}

TEST(Failing, persistent_request_is_refused_and_left_to_the_program) {
  const Ring ring;
  const ErrorsReturn errors(ring.comm);
  int value = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Recv_init(&value, 1, MPI_INT, ring.previous(), 1, ring.comm, &request);
  testing::internal::CaptureStderr();
  finish([&] {
    task("receive").launch([&] {
      EXPECT_EQ(TAMPI_Iwait(&request, MPI_STATUS_IGNORE), MPI_ERR_REQUEST);
    });
  });
  const std::string output = testing::internal::GetCapturedStderr();
  EXPECT_NE(output.find("imbrex: TAMPI_Iwait in \"receive\""), std::string::npos) << output;
  EXPECT_NE(output.find("a persistent request"), std::string::npos) << output;
  EXPECT_NE(output.find("use MPI_Wait"), std::string::npos) << output;
  EXPECT_NE(request, MPI_REQUEST_NULL);
  MPI_Request_free(&request);
}

// ---- properties --------------------------------------------------------------------------------

TEST(Property, the_modes_can_only_be_read) {
  int value = -1;
  EXPECT_EQ(TAMPI_Property_get(TAMPI_PROPERTY_NONBLOCKING_MODE, &value), MPI_SUCCESS);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(TAMPI_Nonblocking_enabled(&value), MPI_SUCCESS);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(TAMPI_Blocking_enabled(&value), MPI_SUCCESS);
  EXPECT_EQ(value, 0);  // this program has called MPI_Init
  testing::internal::CaptureStderr();
  EXPECT_EQ(TAMPI_Property_set(TAMPI_PROPERTY_BLOCKING_MODE, 1), MPI_ERR_ARG);
  EXPECT_EQ(TAMPI_Property_set(TAMPI_PROPERTY_AUTO_INIT, 0), MPI_ERR_ARG);
  const std::string output = testing::internal::GetCapturedStderr();
  EXPECT_NE(output.find("can be read only"), std::string::npos) << output;
  EXPECT_NE(output.find("set it before MPI_Init"), std::string::npos) << output;
}

TEST(Property, an_unknown_property_is_refused) {
  int value = -1;
  testing::internal::CaptureStderr();
  EXPECT_EQ(TAMPI_Property_get(9, &value), MPI_ERR_ARG);
  EXPECT_EQ(TAMPI_Property_set(0, 1), MPI_ERR_ARG);
  const std::string output = testing::internal::GetCapturedStderr();
  EXPECT_NE(output.find("TAMPI_Property_get in \"main\""), std::string::npos) << output;
  EXPECT_NE(output.find("there is no property 9: the properties are"), std::string::npos) << output;
}

// Methodology: the message comes from a thread that is no worker, long after the task has begun to
// receive. Meanwhile the only worker could run the child, if the task left it to it.
TEST(Property, taskaware_0_lets_the_blocking_calls_of_one_task_block) {
  const Ring ring;
  std::atomic<bool> receiving{false};
  std::atomic<bool> child_ran{false};
  std::thread sender([&] {
    while (!receiving.load()) sleep_ms(1);
    sleep_ms(50);
    MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 1, ring.comm);
  });
  finish([&] {
    task("receive").launch([&] {
      int aware = -1;
      TAMPI_Property_get(TAMPI_PROPERTY_THREAD_TASKAWARE, &aware);
      EXPECT_EQ(aware, 1);
      EXPECT_EQ(TAMPI_Property_set(TAMPI_PROPERTY_THREAD_TASKAWARE, 0), MPI_SUCCESS);
      TAMPI_Property_get(TAMPI_PROPERTY_THREAD_TASKAWARE, &aware);
      EXPECT_EQ(aware, 0);
      task("child").launch([&] { child_ran.store(true); });
      int value = -1;
      receiving.store(true);
      MPI_Recv(&value, 1, MPI_INT, ring.previous(), 1, ring.comm, MPI_STATUS_IGNORE);
      EXPECT_EQ(value, ring.previous());
      const char* const workers = std::getenv("IMBREX_WORKERS");
      const bool is_only_worker = workers != nullptr && std::string(workers) == "1";
      EXPECT_FALSE(is_only_worker && child_ran.load());
    });
  });
  sender.join();
  EXPECT_TRUE(child_ran.load());
}

// The property is the task's: another one on the same worker suspends as ever.
TEST(Property, taskaware_0_ends_with_its_task) {
  const Ring ring;
  int chain = 0;
  int value = -1;
  finish([&] {
    task("blocks").inout(chain).launch(
        [] { TAMPI_Property_set(TAMPI_PROPERTY_THREAD_TASKAWARE, 0); });
    task("receive").inout(chain).launch([&] {
      int aware = -1;
      TAMPI_Property_get(TAMPI_PROPERTY_THREAD_TASKAWARE, &aware);
      EXPECT_EQ(aware, 1);
      task("send").launch(
          [&] { MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 1, ring.comm); });
      MPI_Recv(&value, 1, MPI_INT, ring.previous(), 1, ring.comm, MPI_STATUS_IGNORE);
    });
  });
  EXPECT_EQ(value, ring.previous());
}

}  // namespace
}  // namespace imbrex::test
