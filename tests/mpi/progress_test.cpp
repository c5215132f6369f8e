// SPDX-License-Identifier: BSD-3-Clause
// Who makes MPI progress: what each mode of IMBREX_PROGRESS promises. CMakeLists.txt runs this in
// every mode; a test that is about others skips itself.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

using Clock = std::chrono::steady_clock;

constexpr bool sanitized = IMBREX_TEST_SCALE > 1;

std::string running_mode() { return progress_report().runs; }

bool is_one_of(const std::string& mode, const std::vector<std::string>& modes) {
  return std::find(modes.begin(), modes.end(), mode) != modes.end();
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double processor_seconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST(Mode, the_running_mode_is_the_requested_one_or_says_why_not) {
  const char* const option = std::getenv("IMBREX_PROGRESS");
  const ProgressReport report = progress_report();
  EXPECT_EQ(report.asked, option == nullptr ? "auto" : option);
  if (report.runs == report.asked) {
    EXPECT_EQ(report.mode, report.runs);
  } else {
    EXPECT_NE(report.mode.find(report.asked + " was asked for, but "), std::string::npos);
  }
}

// Yields until `enough()`, while a receive is open that this rank then sends to.
template <class Enough>
void receive_late(const Ring& ring, Enough&& enough) {
  int value = -1;
  auto receive = task("receive").spawn([&] {
    MPI_Recv(&value, 1, MPI_INT, ring.rank, 4, ring.comm, MPI_STATUS_IGNORE);
  });
  while (!enough()) yield();
  MPI_Send(&ring.rank, 1, MPI_INT, ring.rank, 4, ring.comm);
  receive.get();
  EXPECT_EQ(value, ring.rank);
}

TEST(Mode, counts_polls_and_their_time_once_somebody_wants_to_know) {
  const Ring ring;
  receive_late(ring, [yields = 0]() mutable { return ++yields > 100; });
  EXPECT_EQ(progress_report().timed_polls, 0u);
  EXPECT_EQ(progress_report().timed_polls_s, 0.0);
  EXPECT_EQ(progress_report().timed_callbacks, 0u);
  time_progress();
  const Clock::time_point begin = Clock::now();
  receive_late(ring, [&] {
    return progress_report().timed_polls != 0 || seconds_since(begin) > 10;
  });
  const double threads = worker_count() + 1;  // with one of progress
  const ProgressReport report = progress_report();
  EXPECT_GT(report.timed_polls, 0u);
  EXPECT_GT(report.timed_polls_s, 0.0);
  EXPECT_LE(report.timed_polls_s, 1.01 * threads * seconds_since(begin));
  if (!is_one_of(running_mode(), {"callback", "monitor-thread"})) {
    EXPECT_EQ(report.timed_callbacks, 0u);
    EXPECT_EQ(report.timed_callbacks_s, 0.0);
  }
}

TEST(Mode, completes_messages_of_many_tasks) {
  const Ring ring;
  constexpr int tasks = 200;
  std::vector<int> in(tasks, -1);
  finish([&] {
    for (int i = 0; i < tasks; ++i) {
      task("receive").launch([&, i] {
        MPI_Recv(&in[i], 1, MPI_INT, ring.previous(), i, ring.comm, MPI_STATUS_IGNORE);
      });
    }
    for (int i = 0; i < tasks; ++i) {
      task("send").launch([&, i] { MPI_Ssend(&i, 1, MPI_INT, ring.next(), i, ring.comm); });
    }
  });
  for (int i = 0; i < tasks; ++i) EXPECT_EQ(in[i], i);
}

// A number that the ranks of this machine share, which no call of MPI brings.
class Shared {
 public:
  explicit Shared(const Ring& ring) {
    std::array<char, 64> name{"/tmp/imbrex_progress_XXXXXX"};
    int file = -1;
    if (ring.rank == 0) {
      file = mkstemp(name.data());
      if (file >= 0 && ftruncate(file, sizeof(std::atomic<int>)) != 0) std::abort();
    }
    MPI_Bcast(name.data(), static_cast<int>(name.size()), MPI_CHAR, 0, ring.comm);
    if (ring.rank != 0) file = open(name.data(), O_RDWR);
    memory_ = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory_ == MAP_FAILED) std::abort();
    close(file);
    MPI_Barrier(ring.comm);
    if (ring.rank == 0) unlink(name.data());
  }
  ~Shared() { munmap(memory_, sizeof(std::atomic<int>)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  [[nodiscard]] std::atomic<int>& number() const {
    return *static_cast<std::atomic<int>*>(memory_);
  }

 private:
  void* memory_ = nullptr;
};

bool workers_alone_poll() { return is_one_of(running_mode(), {"poll", "callback"}); }

std::uint64_t polls() {
  const ProgressReport report = progress_report();
  return report.polls + report.timed_polls;
}

// Asks rank 1 for its message and computes until `is_over`; where a thread polls, until it has
// polled: the receive needs a poll to end. Returns the number of polls meanwhile.
std::uint64_t polls_beside_a_computation(const Ring& ring, const std::atomic<int>& is_over) {
  const std::uint64_t before_send = polls();
  MPI_Send(nullptr, 0, MPI_CHAR, 1, 2, ring.comm);
  const std::uint64_t before = workers_alone_poll() ? polls() : before_send;
  const Clock::time_point begin = Clock::now();
  std::uint64_t now = before;
  do {
    now = polls();
  } while ((is_over.load() == 0 || (now == before && !workers_alone_poll())) &&
           seconds_since(begin) < 60);
  return now - before;
}

// Sends 1 MiB, which needs the other's help; sets `is_over` when it has gone. Open MPI's progress
// is made by any call, so the thread that looks for stalls helps, too, ten times a second.
void send_and_tell(const Ring& ring, std::atomic<int>& is_over) {
  const std::vector<char> data(1 << 20, 'x');
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(data.data(), static_cast<int>(data.size()), MPI_CHAR, 0, 1, ring.comm, &request);
  int gone = 0;
  for (int test = 0; gone == 0 && test < 1'000'000; ++test) {
    MPI_Test(&request, &gone, MPI_STATUS_IGNORE);
  }
  is_over.store(1);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

TEST(LongTasks, stop_progress_only_where_workers_alone_make_it) {
  const Ring ring;
  if (ring.size < 2) GTEST_SKIP() << "needs two ranks";
  const Shared shared(ring);
  time_progress();  // counts the polls of workers, too
  if (ring.rank == 1) {
    MPI_Recv(nullptr, 0, MPI_CHAR, 0, 2, ring.comm, MPI_STATUS_IGNORE);
    send_and_tell(ring, shared.number());
  }
  if (ring.rank != 0) return;
  std::vector<char> data(1 << 20);
  finish([&] {
    task("receive").launch([&] {
      MPI_Recv(data.data(), 1 << 20, MPI_CHAR, 1, 1, ring.comm, MPI_STATUS_IGNORE);
    });
    for (int i = 0; i < 20; ++i) yield();  // it suspends
    for (int i = 0; i < worker_count(); ++i) {
      task("compute").launch([&, i] {
        while (i != 0 && shared.number().load() == 0) {
        }
        if (i != 0) return;
        const std::uint64_t count = polls_beside_a_computation(ring, shared.number());
        if (!workers_alone_poll()) {
          EXPECT_GT(count, 0u);
        } else if (worker_count() == 1) {  // of several one may be idle
          EXPECT_EQ(count, 0u);
        }
      });
    }
  });
}

// All other ranks sleep outside MPI meanwhile.
TEST(Waiting, rank_uses_one_core_at_most_whatever_its_workers) {
  const Ring ring;
  if (sanitized) GTEST_SKIP() << "measures time, which is not the same with a sanitizer";
  constexpr int tasks = 20;
  MPI_Barrier(ring.comm);
  if (ring.rank != 0) {
    sleep_ms(450);
    return;
  }
  std::thread sender([&] {
    sleep_ms(400);
    for (int tag = 0; tag <= tasks; ++tag) MPI_Send(nullptr, 0, MPI_CHAR, 0, tag, ring.comm);
  });
  finish([&] {
    for (int tag = 1; tag <= tasks; ++tag) {
      task("waits").launch([&, tag] {
        MPI_Recv(nullptr, 0, MPI_CHAR, 0, tag, ring.comm, MPI_STATUS_IGNORE);
      });
    }
    const double before = processor_seconds();
    const Clock::time_point begin = Clock::now();
    MPI_Recv(nullptr, 0, MPI_CHAR, 0, 0, ring.comm, MPI_STATUS_IGNORE);
    EXPECT_LE(processor_seconds() - before, 1.1 * seconds_since(begin));
  });
  sender.join();
}

// One worker computes; calls of MPI that it makes meanwhile notice what has come for another task.
TEST(Callbacks, notice_completions_inside_any_call_of_mpi) {
  const Ring ring;
  if (running_mode() != "callback" || worker_count() != 1 || ring.size == 1) {
    GTEST_SKIP() << "for one worker in mode callback: an idle one would be first, and MPICH makes "
                    "no progress for a rank that is alone";
  }
  int value = -1;
  auto receive = task("receive").spawn([&] {
    MPI_Recv(&value, 1, MPI_INT, ring.rank, 3, ring.comm, MPI_STATUS_IGNORE);
  });
  {
    const Bustle bustle;  // so that the receive suspends
    for (int i = 0; i < 100; ++i) yield();
  }
  time_progress();
  const ProgressReport start = progress_report();
  const std::uint64_t before = start.notices;
  MPI_Send(&ring.rank, 1, MPI_INT, ring.rank, 3, ring.comm);
  const Clock::time_point begin = Clock::now();
  while (progress_report().notices == before && seconds_since(begin) < 10) {
    int flag = 0;
    PMPI_Iprobe(ring.previous(), 99, ring.comm, &flag, MPI_STATUS_IGNORE);  // past the engine
  }
  const ProgressReport end = progress_report();
  EXPECT_GT(end.notices, before);
  EXPECT_GE(end.timed_callbacks - start.timed_callbacks, end.notices - before);
  EXPECT_GT(end.timed_callbacks_s, start.timed_callbacks_s);
  EXPECT_LE(end.timed_callbacks_s - start.timed_callbacks_s, 2 * seconds_since(begin));
  receive.get();
  EXPECT_EQ(value, ring.rank);
}

TEST(Thread, a_progress_thread_polls) {
  const Ring ring;
  if (is_one_of(running_mode(), {"poll", "callback", "auto"})) GTEST_SKIP() << "no such mode";
  EXPECT_GT(progress_report().polls, 0u);
  EXPECT_GT(progress_report().seconds, 0.0);
}

// ---- one thread makes all calls ----------------------------------------------------------------

bool one_thread_calls_mpi() {
  int level = MPI_THREAD_MULTIPLE;
  PMPI_Query_thread(&level);
  return level < MPI_THREAD_MULTIPLE;
}

// The code that such a call returns, and what imbrex says of it.
struct Refusal {
  int code;
  std::string text;
};
template <class F>
Refusal refusal_of(F&& call) {
  testing::internal::CaptureStderr();
  const int code = call();
  return {code, testing::internal::GetCapturedStderr()};
}

class OneThread : public testing::Test {
 protected:
  void SetUp() override {
    if (!one_thread_calls_mpi()) GTEST_SKIP() << "for an MPI that may be called by one thread only";
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  void TearDown() override { MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL); }

  int split() {
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Comm_split(ring_.comm, 0, ring_.rank, &made);
    if (code == MPI_SUCCESS) MPI_Comm_free(&made);
    return code;
  }
  int create_group() {
    MPI_Group all;
    MPI_Comm_group(ring_.comm, &all);
    MPI_Comm made = MPI_COMM_NULL;
    const int code = MPI_Comm_create_group(ring_.comm, all, 5, &made);
    MPI_Group_free(&all);
    if (code == MPI_SUCCESS) MPI_Comm_free(&made);
    return code;
  }

  const Ring ring_;
};

TEST_F(OneThread, makes_calls_without_a_twin_for_main_while_there_is_no_task) {
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(split(), MPI_SUCCESS);
    EXPECT_EQ(create_group(), MPI_SUCCESS);
    int* memory = nullptr;
    MPI_Win window = MPI_WIN_NULL;
    EXPECT_EQ(MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, ring_.comm,
                               static_cast<void*>(&memory), &window), MPI_SUCCESS);
    EXPECT_EQ(MPI_Win_fence(0, window), MPI_SUCCESS);
    EXPECT_EQ(MPI_Put(&ring_.rank, 1, MPI_INT, ring_.next(), 0, 1, MPI_INT, window), MPI_SUCCESS);
    EXPECT_EQ(MPI_Win_fence(0, window), MPI_SUCCESS);
    EXPECT_EQ(*memory, ring_.previous());
    EXPECT_EQ(MPI_Win_free(&window), MPI_SUCCESS);
    // All is as before when a task has ended.
    EXPECT_EQ(task("before the next round").spawn([] { return 7; }).get(), 7);
  }
}

TEST_F(OneThread, refuses_calls_without_a_twin_in_tasks) {
  const Refusal refusal = refusal_of([&] {
    return task("splits").spawn([&] { return split(); }).get();
  });
  EXPECT_NE(refusal.code, MPI_SUCCESS);
  for (const char* const part : {"MPI_Comm_split in task \"splits\" (", "progress_test.cpp:",
                                 "is refused", "no non-blocking form", "Call it in main"}) {
    EXPECT_NE(refusal.text.find(part), std::string::npos) << part << " in " << refusal.text;
  }
}

TEST_F(OneThread, refuses_before_it_has_told_anybody) {
  const Refusal refusal = refusal_of([&] {
    return task("creates").spawn([&] { return create_group(); }).get();
  });
  EXPECT_NE(refusal.code, MPI_SUCCESS);
  EXPECT_NE(refusal.text.find("MPI_Comm_create_group in task \"creates\""), std::string::npos);
  MPI_Barrier(ring_.comm);
  int flag = 1;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, ring_.comm, &flag, MPI_STATUS_IGNORE);
  EXPECT_EQ(flag, 0);
  MPI_Barrier(ring_.comm);  // all ranks have looked before any tells a number
  EXPECT_EQ(create_group(), MPI_SUCCESS);
}

TEST_F(OneThread, refuses_calls_without_a_twin_in_main_while_a_task_waits) {
  int value = -1;
  const auto receive = task("receive").spawn([&] {
    MPI_Recv(&value, 1, MPI_INT, ring_.previous(), 3, ring_.comm, MPI_STATUS_IGNORE);
  });
  const Refusal refusal = refusal_of([&] { return split(); });
  EXPECT_NE(refusal.code, MPI_SUCCESS);
  EXPECT_NE(refusal.text.find("MPI_Comm_split in task \"main\""), std::string::npos)
      << refusal.text;
  MPI_Barrier(ring_.comm);  // all are refused before the first message comes
  MPI_Send(&ring_.rank, 1, MPI_INT, ring_.next(), 3, ring_.comm);
  receive.get();
  EXPECT_EQ(value, ring_.previous());
  EXPECT_EQ(split(), MPI_SUCCESS);
}

TEST_F(OneThread, refuses_calls_without_a_twin_in_main_while_a_future_waits) {
  int value = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&value, 1, MPI_INT, ring_.previous(), 3, ring_.comm, &request);
  const Future<MPI_Status> status = when(request);
  EXPECT_NE(refusal_of([&] { return split(); }).code, MPI_SUCCESS);
  MPI_Barrier(ring_.comm);  // all are refused before the first message comes
  MPI_Send(&ring_.rank, 1, MPI_INT, ring_.next(), 3, ring_.comm);
  status.wait();
  EXPECT_EQ(value, ring_.previous());
}

TEST_F(OneThread, refuses_calls_without_a_twin_on_other_threads) {
  Refusal refusal{};
  std::thread([&] { refusal = refusal_of([&] { return split(); }); }).join();
  EXPECT_NE(refusal.code, MPI_SUCCESS);
  EXPECT_NE(refusal.text.find("MPI_Comm_split outside of tasks is refused"), std::string::npos)
      << refusal.text;
}

// ---- threads of the program's ------------------------------------------------------------------

// The program's own thread waits in a task's manner, since it has opened a scope; all workers but a
// busy one sleep by then, or there is no other.
TEST(Threads, threads_that_wait_as_tasks_are_served_though_no_worker_is_awake) {
  const Ring ring;
  if (ring.rank == 0) {
    std::atomic<bool> done{false};
    std::thread waiter([&] {
      finish([] {});  // now imbrex knows the thread
      sleep_ms(5);
      MPI_Recv(nullptr, 0, MPI_CHAR, 0, 4, ring.comm, MPI_STATUS_IGNORE);
      done.store(true);
    });
    std::thread sender([&] {
      sleep_ms(30);
      MPI_Send(nullptr, 0, MPI_CHAR, 0, 4, ring.comm);
    });
    const Clock::time_point begin = Clock::now();
    while (!done.load() && seconds_since(begin) < 10) {  // this worker is busy
    }
    EXPECT_TRUE(done.load());
    while (!done.load()) yield();
    waiter.join();
    sender.join();
  }
  MPI_Barrier(ring.comm);
}

// A thread's calls of MPI may complete requests for which tasks wait; its own calls stay as they
// were, and need no other thread. join() occupies the only worker.
TEST(Threads, threads_that_complete_requests_of_tasks_stay_unknown) {
  const Ring ring;
  MPI_Comm other;  // the threads'
  MPI_Comm_dup(ring.comm, &other);
  constexpr int tasks = 64;
  constexpr int rounds = 1000;
  std::vector<int> in(tasks, -1);
  for (int tag = 0; tag < tasks; ++tag) {
    task("receive").launch([&, tag] {
      MPI_Recv(&in[tag], 1, MPI_INT, ring.rank, tag, ring.comm, MPI_STATUS_IGNORE);
    });
  }
  for (int i = 0; i < 5; ++i) yield();
  const auto play = [&](const int out, const int back) {
    for (int tag = out; tag < tasks; tag += 2) {
      MPI_Send(&tag, 1, MPI_INT, ring.rank, tag, ring.comm);
    }
    for (int round = 0; round < rounds; ++round) {
      MPI_Sendrecv(&round, 1, MPI_INT, ring.rank, out, nullptr, 0, MPI_INT, MPI_PROC_NULL, 0, other,
                   MPI_STATUS_IGNORE);
      int value = -1;
      MPI_Recv(&value, 1, MPI_INT, ring.rank, back, other, MPI_STATUS_IGNORE);
      EXPECT_EQ(value, round);
    }
    EXPECT_FALSE(detail::in_task());
  };
  std::thread one(play, 0, 1);
  std::thread two(play, 1, 0);
  one.join();
  two.join();
  taskwait();
  for (int tag = 0; tag < tasks; ++tag) EXPECT_EQ(in[tag], tag);
  MPI_Comm_free(&other);
}

}  // namespace
}  // namespace imbrex::test
