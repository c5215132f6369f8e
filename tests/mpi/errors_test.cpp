// SPDX-License-Identifier: BSD-3-Clause
// Errors of MPI in tasks: return codes, error fields, the user's error handlers, and that one
// operation's failure harms no other. Methodology: every rank sends to the next; a barrier, while
// the receivers are suspended, keeps messages from being there too early. Open MPI 4.1 notices no
// truncation of a message to oneself, so these need two ranks.
#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

int class_of(int code) {
  int error_class = -1;
  MPI_Error_class(code, &error_class);
  return error_class;
}

// Two ints for a receive of one.
void send_too_much(const Ring& ring, int tag) {
  const int values[2] = {1, 2};
  MPI_Send(values, 2, MPI_INT, ring.next(), tag, ring.comm);
}
void send_one(const Ring& ring, int tag, int value) {
  MPI_Send(&value, 1, MPI_INT, ring.next(), tag, ring.comm);
}
int receive_one(const Ring& ring, int tag, int* value) {
  return MPI_Recv(value, 1, MPI_INT, ring.previous(), tag, ring.comm, MPI_STATUS_IGNORE);
}

class Errors : public testing::Test {
 protected:
  Errors() { MPI_Comm_set_errhandler(ring_.comm, MPI_ERRORS_RETURN); }
  ~Errors() override { set_for_all(MPI_ERRORS_ARE_FATAL); }
  void SetUp() override {
    if (ring_.size == 1) GTEST_SKIP() << "needs two ranks";
  }

  // Sets the handler of a call that names no communicator: for a failed request MPICH 5 calls that
  // of MPI_COMM_SELF, MPICH 4 that of MPI_COMM_WORLD. Everywhere else these two keep the default,
  // which ends the program.
  void set_for_all(MPI_Errhandler handler) const {
    for (const MPI_Comm comm : {ring_.comm, MPI_COMM_SELF, MPI_COMM_WORLD}) {
      MPI_Comm_set_errhandler(comm, handler);
    }
  }

  // On all ranks, what was spawned before has got as far as it can.
  void meet() const {
    for (int round = 0; round < 3; ++round) yield();
    MPI_Barrier(ring_.comm);
  }

  const Ring ring_;
};

TEST_F(Errors, truncation_gives_its_code_when_the_message_is_there_already) {
  send_too_much(ring_, 1);
  MPI_Barrier(ring_.comm);
  const int code = task("receive").spawn([this] {
    int value = 0;
    return receive_one(ring_, 1, &value);
  }).get();
  EXPECT_EQ(class_of(code), MPI_ERR_TRUNCATE);
}

TEST_F(Errors, truncation_gives_its_code_to_a_suspended_task_and_to_no_other) {
  constexpr int tasks = 40;
  constexpr int failing = 17;
  std::vector<Future<int>> codes;
  std::vector<int> values(tasks, -1);
  const Bustle bustle;
  for (int tag = 0; tag < tasks; ++tag) {
    codes.push_back(task("receive").spawn(
        [this, tag, &values] { return receive_one(ring_, tag, &values[tag]); }));
  }
  meet();
  for (int tag = tasks - 1; tag >= 0; --tag) {
    if (tag == failing) {
      send_too_much(ring_, tag);
    } else {
      send_one(ring_, tag, 100 + tag);
    }
  }
  for (int tag = 0; tag < tasks; ++tag) {
    const int code = codes[tag].get();
    if (tag == failing) {
      EXPECT_EQ(class_of(code), MPI_ERR_TRUNCATE);
    } else {
      EXPECT_EQ(code, MPI_SUCCESS);
      EXPECT_EQ(values[tag], 100 + tag);
    }
  }
}

TEST_F(Errors, many_failures_at_once_reach_their_tasks) {
  constexpr int tasks = 30;
  std::vector<Future<int>> codes;
  std::vector<int> values(tasks, -1);
  const Bustle bustle;
  for (int tag = 0; tag < tasks; ++tag) {
    codes.push_back(task("receive").spawn(
        [this, tag, &values] { return receive_one(ring_, tag, &values[tag]); }));
  }
  meet();
  for (int tag = 0; tag < tasks; ++tag) send_too_much(ring_, tag);
  for (Future<int>& code : codes) EXPECT_NE(code.get(), MPI_SUCCESS);
}

TEST_F(Errors, waitall_says_in_the_statuses_which_request_failed) {
  set_for_all(MPI_ERRORS_RETURN);
  MPI_Request requests[3];
  int values[3] = {};
  for (int tag = 0; tag < 3; ++tag) {
    MPI_Irecv(&values[tag], 1, MPI_INT, ring_.previous(), tag, ring_.comm, &requests[tag]);
  }
  MPI_Status statuses[3];
  const Bustle bustle;
  auto code = task("waitall").spawn([&] { return MPI_Waitall(3, requests, statuses); });
  meet();
  send_one(ring_, 0, 5);
  send_too_much(ring_, 1);
  send_one(ring_, 2, 7);
  EXPECT_EQ(class_of(code.get()), MPI_ERR_IN_STATUS);
  EXPECT_EQ(statuses[0].MPI_ERROR, MPI_SUCCESS);
  EXPECT_EQ(class_of(statuses[1].MPI_ERROR), MPI_ERR_TRUNCATE);
  EXPECT_EQ(statuses[2].MPI_ERROR, MPI_SUCCESS);
  EXPECT_EQ(values[0], 5);
  EXPECT_EQ(values[2], 7);
  for (const MPI_Request request : requests) EXPECT_EQ(request, MPI_REQUEST_NULL);
}

// Some of many receives get too much; after each that `next` finds complete, a request of others
// is made, to which MPI gives the handle. `next(requests, done)` waits, and calls done(index, code)
// for each that is over. Open MPI 4.1 frees all that have failed when it finds the first, and names
// that one.
template <class Next>
void expect_all_to_be_reported(const Ring& ring, Next next) {
  constexpr int count = 60;
  constexpr std::array failing{5, 9, 41};
  MPI_Comm self;
  MPI_Comm_dup(MPI_COMM_SELF, &self);
  for (int round = 0; round < 10; ++round) {
    std::array<int, count> in{};
    std::array<int, count> codes{};
    std::vector<MPI_Request> requests(count);
    codes.fill(-1);
    for (int tag = 0; tag < count; ++tag) {
      MPI_Irecv(&in[tag], 1, MPI_INT, ring.previous(), tag, ring.comm, &requests[tag]);
    }
    MPI_Barrier(ring.comm);
    for (int tag = 0; tag < count; ++tag) {
      if (std::ranges::find(failing, tag) != failing.end()) {
        send_too_much(ring, tag);
      } else {
        send_one(ring, tag, 1000 + tag);
      }
    }
    if (round % 2 == 0) MPI_Barrier(ring.comm);  // all at once, else one by one
    int left = count;
    while (left > 0) {
      int found = 0;
      next(requests, [&](int index, int code) {
        ASSERT_TRUE(index >= 0 && index < count);
        EXPECT_EQ(codes[index], -1) << "reported twice";
        codes[index] = code;
        EXPECT_EQ(requests[index], MPI_REQUEST_NULL);
        ++found;
      });
      ASSERT_GT(found, 0) << left << " are not reported";
      left -= found;
      int word = 0;
      MPI_Request reused;
      MPI_Irecv(&word, 1, MPI_INT, 0, 0, self, &reused);
      MPI_Send(&left, 1, MPI_INT, 0, 0, self);
      MPI_Wait(&reused, MPI_STATUS_IGNORE);
      EXPECT_EQ(word, left);
    }
    for (int tag = 0; tag < count; ++tag) {
      const bool fails = std::ranges::find(failing, tag) != failing.end();
      EXPECT_EQ(class_of(codes[tag]), fails ? MPI_ERR_TRUNCATE : MPI_SUCCESS) << "tag " << tag;
      EXPECT_EQ(in[tag], fails ? in[tag] : 1000 + tag);
    }
  }
  MPI_Comm_free(&self);
}

TEST_F(Errors, each_of_several_failures_is_reported_by_waitany) {
  set_for_all(MPI_ERRORS_RETURN);
  task("waitany").spawn([this] {
    expect_all_to_be_reported(ring_, [](std::vector<MPI_Request>& requests, auto done) {
      int index = -1;
      const int code = MPI_Waitany(static_cast<int>(requests.size()), requests.data(), &index,
                                   MPI_STATUS_IGNORE);
      done(index, code);
    });
  }).get();
}

TEST_F(Errors, each_of_several_failures_is_reported_by_testany) {
  set_for_all(MPI_ERRORS_RETURN);
  task("testany").spawn([this] {
    expect_all_to_be_reported(ring_, [](std::vector<MPI_Request>& requests, auto done) {
      int index = -1;
      int code = MPI_SUCCESS;
      for (int flag = 0; flag == 0 && code == MPI_SUCCESS;) {
        code = MPI_Testany(static_cast<int>(requests.size()), requests.data(), &index, &flag,
                           MPI_STATUS_IGNORE);
      }
      done(index, code);
    });
  }).get();
}

TEST_F(Errors, each_of_several_failures_is_reported_by_waitsome) {
  set_for_all(MPI_ERRORS_RETURN);
  task("waitsome").spawn([this] {
    expect_all_to_be_reported(ring_, [](std::vector<MPI_Request>& requests, auto done) {
      int found = 0;
      std::vector<int> indices(requests.size());
      std::vector<MPI_Status> statuses(requests.size());
      const int code = MPI_Waitsome(static_cast<int>(requests.size()), requests.data(), &found,
                                    indices.data(), statuses.data());
      for (int i = 0; i < found; ++i) {
        done(indices[i], code == MPI_SUCCESS ? MPI_SUCCESS : statuses[i].MPI_ERROR);
      }
    });
  }).get();
}

// Failures of many tasks, found in any number at once, beside messages that are still in flight.
TEST_F(Errors, failures_of_many_tasks_harm_no_transfer_that_is_under_way) {
  constexpr int tasks = 60;
  constexpr int rounds = 10;
  constexpr int large = 100'000;
  set_for_all(MPI_ERRORS_RETURN);
  for (int round = 0; round < rounds; ++round) {
    std::atomic<int> wrong{0};
    finish([&] {
      for (int tag = 0; tag < tasks; ++tag) {
        task("receive").launch([&, tag] {
          const bool fails = tag % 3 == 0;
          std::vector<int> in(fails ? 1 : large, -1);
          MPI_Request request;
          MPI_Irecv(in.data(), static_cast<int>(in.size()), MPI_INT, ring_.previous(), tag,
                    ring_.comm, &request);
          const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
          if (class_of(code) != (fails ? MPI_ERR_TRUNCATE : MPI_SUCCESS)) wrong.fetch_add(1);
          if (!fails && (in.front() != tag || in.back() != tag)) wrong.fetch_add(1);
        });
        task("send").launch([&, tag] {
          if (tag % 3 == 0) {
            send_too_much(ring_, tag);
          } else {
            const std::vector<int> out(large, tag);
            MPI_Send(out.data(), large, MPI_INT, ring_.next(), tag, ring_.comm);
          }
        });
      }
    });
    EXPECT_EQ(wrong.load(), 0);
  }
}

TEST_F(Errors, sendrecv_returns_the_code_of_its_receive) {
  const int values[2] = {1, 2};
  const Bustle bustle;
  const int code = task("sendrecv").spawn([&] {
    int value = 0;
    return MPI_Sendrecv(values, 2, MPI_INT, ring_.next(), 1, &value, 1, MPI_INT, ring_.previous(),
                        1, ring_.comm, MPI_STATUS_IGNORE);
  }).get();
  EXPECT_EQ(class_of(code), MPI_ERR_TRUNCATE);
}

TEST_F(Errors, sendrecv_to_a_rank_that_does_not_exist_leaves_no_receive_behind) {
  task("sendrecv").spawn([this] {
    int value = -1;
    const int one = 1;
    const int code = MPI_Sendrecv(&one, 1, MPI_INT, ring_.size, 3, &value, 1, MPI_INT,
                                  ring_.previous(), 3, ring_.comm, MPI_STATUS_IGNORE);
    MPI_Barrier(ring_.comm);
    EXPECT_EQ(class_of(code), MPI_ERR_RANK);
    // The following receive gets the message, not the receive that was given up.
    MPI_Request request;
    int after = -1;
    MPI_Irecv(&after, 1, MPI_INT, ring_.previous(), 3, ring_.comm, &request);
    send_one(ring_, 3, 9);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(after, 9);
    EXPECT_EQ(value, -1);
  }).get();
}

TEST_F(Errors, wrong_arguments_give_their_codes) {
  task("wrong arguments").spawn([this] {
    int value = 0;
    EXPECT_EQ(class_of(MPI_Recv(&value, -1, MPI_INT, 0, 0, ring_.comm, MPI_STATUS_IGNORE)),
              MPI_ERR_COUNT);
    EXPECT_EQ(class_of(MPI_Send(&value, 1, MPI_INT, ring_.size + 3, 0, ring_.comm)), MPI_ERR_RANK);
    EXPECT_EQ(class_of(MPI_Probe(0, -77, ring_.comm, MPI_STATUS_IGNORE)), MPI_ERR_TAG);
    EXPECT_EQ(class_of(MPI_Bcast(&value, 1, MPI_INT, ring_.size, ring_.comm)), MPI_ERR_ROOT);
    EXPECT_EQ(class_of(MPI_Sendrecv_replace(&value, -2, MPI_INT, 0, 0, 0, 0, ring_.comm,
                                            MPI_STATUS_IGNORE)),
              MPI_ERR_COUNT);
  }).get();
}

// ---- handlers of the user's --------------------------------------------------------------------

struct Handled {
  std::atomic<int> calls{0};
  std::atomic<int> code{MPI_SUCCESS};
  std::atomic<MPI_Comm> comm{MPI_COMM_NULL};
} handled;

void remember(MPI_Comm* comm, int* code, ...) {
  handled.calls.fetch_add(1);
  handled.code.store(*code);
  handled.comm.store(*comm);
}

class Handlers : public Errors {
 protected:
  Handlers() {
    handled.calls.store(0);
    MPI_Comm_create_errhandler(&remember, &handler_);
    MPI_Comm_set_errhandler(ring_.comm, handler_);
  }
  ~Handlers() override { MPI_Errhandler_free(&handler_); }
  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
};

TEST_F(Handlers, a_handler_is_called_once_for_a_suspended_task_with_its_communicator) {
  const Bustle bustle;
  auto code = task("receive").spawn([this] {
    int value = 0;
    return receive_one(ring_, 1, &value);
  });
  meet();
  send_too_much(ring_, 1);
  EXPECT_EQ(class_of(code.get()), MPI_ERR_TRUNCATE);
  EXPECT_EQ(handled.calls.load(), 1);
  EXPECT_EQ(class_of(handled.code.load()), MPI_ERR_TRUNCATE);
  EXPECT_EQ(handled.comm.load(), ring_.comm);
}

TEST_F(Handlers, each_of_many_failures_calls_it) {
  constexpr int tasks = 20;
  std::vector<Future<int>> codes;
  int values[tasks];
  const Bustle bustle;
  for (int tag = 0; tag < tasks; ++tag) {
    codes.push_back(task("receive").spawn(
        [this, tag, &values] { return receive_one(ring_, tag, &values[tag]); }));
  }
  meet();
  for (int tag = 0; tag < tasks; ++tag) send_too_much(ring_, tag);
  for (Future<int>& code : codes) EXPECT_NE(code.get(), MPI_SUCCESS);
  EXPECT_EQ(handled.calls.load(), tasks);
}

TEST_F(Handlers, the_communicators_handler_is_called_when_wait_gets_a_failed_receive) {
  MPI_Request request;
  int value = 0;
  MPI_Irecv(&value, 1, MPI_INT, ring_.previous(), 1, ring_.comm, &request);
  const Bustle bustle;
  auto code = task("wait").spawn([&] { return MPI_Wait(&request, MPI_STATUS_IGNORE); });
  meet();
  send_too_much(ring_, 1);
  EXPECT_EQ(class_of(code.get()), MPI_ERR_TRUNCATE);
  EXPECT_EQ(handled.calls.load(), 1);
  EXPECT_EQ(handled.comm.load(), ring_.comm);
}

TEST_F(Handlers, the_communicators_handler_is_called_when_test_gets_a_failed_receive) {
  MPI_Request request;
  int value = 0;
  MPI_Irecv(&value, 1, MPI_INT, ring_.previous(), 1, ring_.comm, &request);
  send_too_much(ring_, 1);
  int code = MPI_SUCCESS;
  for (int flag = 0; flag == 0 && code == MPI_SUCCESS;) {
    code = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
  }
  EXPECT_EQ(class_of(code), MPI_ERR_TRUNCATE);
  EXPECT_EQ(handled.calls.load(), 1);
  EXPECT_EQ(handled.comm.load(), ring_.comm);
}

// A wait for many names no communicator: MPICH 5 calls the handler of MPI_COMM_SELF, MPICH 4 that
// of MPI_COMM_WORLD, Open MPI that of the failed request's. Outside of tasks the wait is MPI's own,
// so that it says itself what is right.
struct Told {
  int calls;
  int error_class;
  MPI_Comm comm;
};

using WaitForMany = void (*)(MPI_Request requests[2]);

void wait_for_all(MPI_Request requests[2]) {
  MPI_Status statuses[2];
  MPI_Waitall(2, requests, statuses);
  EXPECT_EQ(class_of(statuses[1].MPI_ERROR), MPI_ERR_TRUNCATE);
}
void wait_for_any(MPI_Request requests[2]) {
  int index = -1;
  MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
  EXPECT_EQ(index, 1);
}
void wait_for_some(MPI_Request requests[2]) {
  MPI_Status statuses[2];
  int indices[2] = {-1, -1};
  int found = 0;
  MPI_Waitsome(2, requests, &found, indices, statuses);
  EXPECT_EQ(found, 1);
  EXPECT_EQ(indices[0], 1);
}

TEST_F(Handlers, waits_for_many_in_tasks_call_the_handlers_that_mpi_calls) {
  set_for_all(handler_);
  const auto told_by = [this](WaitForMany wait, bool in_task) {
    handled.calls.store(0);
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int value = 0;
    MPI_Irecv(&value, 1, MPI_INT, ring_.previous(), 1, ring_.comm, &requests[1]);
    if (in_task) {
      const Bustle bustle;
      auto waits = task("wait").spawn([&] { wait(requests); });
      meet();
      send_too_much(ring_, 1);
      waits.get();
    } else {
      MPI_Barrier(ring_.comm);
      send_too_much(ring_, 1);
      on_unknown_thread([&] { wait(requests); });
    }
    return Told{handled.calls.load(), class_of(handled.code.load()), handled.comm.load()};
  };
  for (const WaitForMany wait : {&wait_for_all, &wait_for_any, &wait_for_some}) {
    const Told by_mpi = told_by(wait, false);
    const Told here = told_by(wait, true);
    EXPECT_EQ(here.calls, 1);
    EXPECT_EQ(here.calls, by_mpi.calls);
    EXPECT_EQ(here.error_class, by_mpi.error_class);
    EXPECT_EQ(here.comm, by_mpi.comm);
  }
}

TEST_F(Handlers, a_handler_is_called_once_for_sendrecv_in_a_task_and_elsewhere) {
  const auto exchange = [this] {
    const int values[2] = {1, 2};
    int value = 0;
    const int code = MPI_Sendrecv(values, 2, MPI_INT, ring_.next(), 1, &value, 1, MPI_INT,
                                  ring_.previous(), 1, ring_.comm, MPI_STATUS_IGNORE);
    EXPECT_EQ(class_of(code), MPI_ERR_TRUNCATE);
  };
  task("sendrecv").spawn(exchange).get();
  EXPECT_EQ(handled.calls.load(), 1);
  EXPECT_EQ(handled.comm.load(), ring_.comm);
  on_unknown_thread(exchange);
  EXPECT_EQ(handled.calls.load(), 2);
  EXPECT_EQ(handled.comm.load(), ring_.comm);
}

// The handler runs where the failed call was made: in a task it may itself wait.
const Ring* ring_of_handler = nullptr;
std::atomic<int> handler_received{0};

void receive_in_handler(MPI_Comm*, int*, ...) {
  int value = 0;
  receive_one(*ring_of_handler, 2, &value);
  handler_received.store(value);
}

TEST_F(Handlers, a_handler_may_call_blocking_mpi) {
  ring_of_handler = &ring_;
  handler_received.store(0);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(&receive_in_handler, &handler);
  MPI_Comm_set_errhandler(ring_.comm, handler);
  {
    const Bustle bustle;
    auto code = task("receive").spawn([this] {
      int value = 0;
      return receive_one(ring_, 1, &value);
    });
    meet();
    send_too_much(ring_, 1);
    for (int round = 0; round < 1000; ++round) yield();
    send_one(ring_, 2, 42);
    EXPECT_NE(code.get(), MPI_SUCCESS);
    EXPECT_EQ(handler_received.load(), 42);
  }
  MPI_Errhandler_free(&handler);
}

// Programs may compare the handler that they find, and give it back any number of times.
TEST(FatalHandler, is_what_a_program_finds_and_what_communicators_inherit) {
  const auto handler_of = [](MPI_Comm comm) {
    MPI_Errhandler there;
    MPI_Comm_get_errhandler(comm, &there);
    const MPI_Errhandler result = there;
    MPI_Errhandler_free(&there);
    EXPECT_EQ(there, MPI_ERRHANDLER_NULL);
    return result;
  };
  for (int round = 0; round < 10; ++round) {
    EXPECT_EQ(handler_of(MPI_COMM_WORLD), MPI_ERRORS_ARE_FATAL);
  }
  EXPECT_EQ(handler_of(MPI_COMM_SELF), MPI_ERRORS_ARE_FATAL);
  const Ring ring;
  EXPECT_EQ(handler_of(ring.comm), MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(ring.comm, MPI_ERRORS_RETURN);
  MPI_Comm child;
  MPI_Comm_split(ring.comm, 0, 0, &child);
  EXPECT_EQ(handler_of(child), MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(child, MPI_ERRORS_ARE_FATAL);
  EXPECT_EQ(handler_of(child), MPI_ERRORS_ARE_FATAL);
  EXPECT_EQ(handler_of(ring.comm), MPI_ERRORS_RETURN);
  MPI_Comm_free(&child);
}

TEST_F(Handlers, get_errhandler_gives_what_was_set) {
  MPI_Errhandler there;
  MPI_Comm_get_errhandler(ring_.comm, &there);
  EXPECT_EQ(there, handler_);
  MPI_Errhandler_free(&there);
}

// ---- handlers that throw -----------------------------------------------------------------------

struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Handlers may do what the code may that they are called for: spawn, wait, call MPI.
int look_around() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return task("from a handler").spawn([size] { return size; }).get();
}
void throw_from_comm(MPI_Comm*, int* code, ...) {
  (void)look_around();
  throw Refused(std::to_string(class_of(*code)));
}
void throw_from_window(MPI_Win*, int* code, ...) {
  (void)look_around();
  throw Refused(std::to_string(class_of(*code)));
}
void throw_from_file(MPI_File*, int* code, ...) {
  (void)look_around();
  throw Refused(std::to_string(class_of(*code)));
}

// Methodology: each call fails in tasks that run in place, in suspended ones, and in main; the
// exception arrives there, and afterwards everything works that has worked before.
class ThrowingHandlers : public Errors {
 protected:
  ThrowingHandlers() {
    MPI_Comm_create_errhandler(&throw_from_comm, &handler_);
    set_for_all(handler_);
  }
  ~ThrowingHandlers() override { MPI_Errhandler_free(&handler_); }

  template <class F>
  void expect_refusal(const F& fail) const {
    bool refused = false;
    try {
      fail();
    } catch (const Refused&) {
      refused = true;
    }
    EXPECT_TRUE(refused);
    int in = -1;
    MPI_Sendrecv(&ring_.rank, 1, MPI_INT, ring_.next(), 60, &in, 1, MPI_INT, ring_.previous(), 60,
                 ring_.comm, MPI_STATUS_IGNORE);
    EXPECT_EQ(in, ring_.previous());
    EXPECT_EQ(task("afterwards").spawn([] { return 1; }).get(), 1);
  }
  // `prepare()` comes before, on all ranks; `provoke()` while `fail` is suspended.
  template <class Prepare, class F, class Provoke>
  void expect_refusals(const Prepare& prepare, const F& fail, const Provoke& provoke) const {
    const auto in_all = [&](const auto& run) {
      prepare();
      MPI_Barrier(ring_.comm);
      run();
      MPI_Barrier(ring_.comm);
    };
    in_all([&] {
      provoke();
      expect_refusal(fail);
    });
    in_all([&] {
      provoke();
      task("fails").spawn([&] { expect_refusal(fail); }).get();
    });
    in_all([&] {
      const Bustle bustle;
      const auto failing = task("fails").spawn([&] { expect_refusal(fail); });
      meet();
      provoke();
      failing.get();
    });
  }
  template <class F>
  void expect_refusals(const F& fail) const {
    expect_refusals([] {}, fail, [] {});
  }

  MPI_Errhandler handler_ = MPI_ERRHANDLER_NULL;
};

TEST_F(ThrowingHandlers, leave_calls_with_wrong_arguments) {
  int value = 0;
  MPI_Status status;
  expect_refusals([&] { MPI_Send(&value, 1, MPI_INT, ring_.size + 3, 0, ring_.comm); });
  expect_refusals([&] { MPI_Recv(&value, -1, MPI_INT, 0, 0, ring_.comm, &status); });
  expect_refusals([&] { MPI_Probe(0, -77, ring_.comm, &status); });
  expect_refusals([&] { MPI_Bcast(&value, 1, MPI_INT, ring_.size, ring_.comm); });
  expect_refusals([&] {
    int there = 0;
    MPI_Iprobe(0, -77, ring_.comm, &there, &status);
  });
  expect_refusals([&] {
    MPI_Sendrecv(&value, 1, MPI_INT, ring_.size + 3, 61, &value, 1, MPI_INT, ring_.previous(), 61,
                 ring_.comm, &status);
  });
  expect_refusals([&] { MPI_Comm_call_errhandler(ring_.comm, MPI_ERR_OTHER); });
}

TEST_F(ThrowingHandlers, leave_calls_that_spare_threads_make) {
  expect_refusals([&] {
    MPI_Comm made;
    MPI_Comm_create(ring_.comm, MPI_GROUP_NULL, &made);
  });
}

TEST_F(ThrowingHandlers, leave_receives_of_messages_that_are_too_long) {
  const auto provoke = [&] { send_too_much(ring_, 62); };
  int value = 0;
  expect_refusals([] {}, [&] { receive_one(ring_, 62, &value); }, provoke);
}

TEST_F(ThrowingHandlers, leave_waits_and_tests_whose_receive_failed) {
  const auto provoke = [&] { send_too_much(ring_, 63); };
  int value = 0;
  const auto begin = [&](int tag) {
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, ring_.previous(), tag, ring_.comm, &request);
    return request;
  };
  const auto expect_each = [&](const auto& wait) {
    expect_refusals([] {}, [&] {
      MPI_Request request = begin(63);
      try {
        wait(request);
      } catch (...) {
        EXPECT_EQ(request, MPI_REQUEST_NULL);
        throw;
      }
    }, provoke);
  };
  expect_each([](MPI_Request& request) { MPI_Wait(&request, MPI_STATUS_IGNORE); });
  expect_each([](MPI_Request& request) {
    for (int done = 0; done == 0;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  });
  expect_each([](MPI_Request& request) { MPI_Waitall(1, &request, MPI_STATUSES_IGNORE); });
  expect_each([](MPI_Request& request) {
    int index = 0;
    MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
  });
  expect_each([](MPI_Request& request) {
    for (int done = 0; done == 0;) MPI_Testall(1, &request, &done, MPI_STATUSES_IGNORE);
  });
}

TEST_F(ThrowingHandlers, leave_calls_on_windows) {
  int memory = 0;
  MPI_Win window;
  MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, ring_.comm, &window);
  MPI_Errhandler handler;
  MPI_Win_create_errhandler(&throw_from_window, &handler);
  MPI_Win_set_errhandler(window, handler);
  MPI_Errhandler_free(&handler);
  expect_refusals([&] { MPI_Win_lock(MPI_LOCK_SHARED, ring_.size + 3, 0, window); });
  MPI_Win_free(&window);
}

TEST_F(ThrowingHandlers, leave_calls_on_files) {
  MPI_Errhandler handler;
  MPI_File_create_errhandler(&throw_from_file, &handler);
  MPI_Errhandler before;
  MPI_File_get_errhandler(MPI_FILE_NULL, &before);
  MPI_File_set_errhandler(MPI_FILE_NULL, handler);
  expect_refusals([&] {
    MPI_File file;
    MPI_File_open(MPI_COMM_SELF, "/nowhere/at/all", MPI_MODE_RDONLY, MPI_INFO_NULL, &file);
  });
  MPI_File_set_errhandler(MPI_FILE_NULL, before);
  MPI_Errhandler_free(&handler);
}

#ifdef OPEN_MPI  // others may crash
TEST_F(Errors, calls_that_lack_a_place_for_their_result_are_refused_by_MPI) {
  set_for_all(MPI_ERRORS_RETURN);
  MPI_Request null = MPI_REQUEST_NULL;
  int number = 0;
  MPI_Status status;
  EXPECT_NE(MPI_Wait(nullptr, &status), MPI_SUCCESS);
  EXPECT_NE(MPI_Test(nullptr, &number, &status), MPI_SUCCESS);
  EXPECT_NE(MPI_Test(&null, nullptr, &status), MPI_SUCCESS);
  EXPECT_NE(MPI_Waitall(-1, &null, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  EXPECT_NE(MPI_Waitall(2, nullptr, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  EXPECT_NE(MPI_Waitany(2, nullptr, &number, &status), MPI_SUCCESS);
  EXPECT_NE(MPI_Waitany(1, &null, nullptr, &status), MPI_SUCCESS);
  EXPECT_NE(MPI_Waitsome(2, nullptr, &number, &number, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  EXPECT_NE(MPI_Waitsome(1, &null, nullptr, &number, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  EXPECT_NE(MPI_Testall(1, &null, nullptr, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  EXPECT_NE(MPI_Testall(-1, &null, &number, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  EXPECT_NE(MPI_Testany(1, &null, nullptr, nullptr, &status), MPI_SUCCESS);
  EXPECT_NE(MPI_Cancel(nullptr), MPI_SUCCESS);
  EXPECT_NE(MPI_Request_free(nullptr), MPI_SUCCESS);
  EXPECT_NE(MPI_Start(nullptr), MPI_SUCCESS);
  EXPECT_NE(MPI_Irecv(&number, 1, MPI_INT, 0, 0, ring_.comm, nullptr), MPI_SUCCESS);
  EXPECT_NE(MPI_Mprobe(0, 0, ring_.comm, nullptr, &status), MPI_SUCCESS);
}
#endif

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
void throw_from_session(MPI_Session*, int* code, ...) {
  (void)look_around();
  throw Refused(std::to_string(class_of(*code)));
}

TEST_F(ThrowingHandlers, leave_calls_on_sessions) {
  MPI_Errhandler handler;
  MPI_Session_create_errhandler(&throw_from_session, &handler);
  MPI_Session session;
  MPI_Session_init(MPI_INFO_NULL, handler, &session);
  MPI_Errhandler_free(&handler);
  expect_refusals([&] {
    MPI_Group group;
    MPI_Group_from_session_pset(session, "imbrex://no such set", &group);
  });
  MPI_Session_finalize(&session);
}
#endif

}  // namespace
}  // namespace imbrex::test
