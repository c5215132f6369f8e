// SPDX-License-Identifier: BSD-3-Clause
// Spare threads: a call without a non-blocking twin keeps no worker, keeps no other such call from
// running, and gives codes and handlers as MPI does.
#include <filesystem>
#include <iterator>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

class Spare : public testing::Test {
 protected:
  // Returns once every rank has called it; another communicator than the tests use.
  void meet() const { MPI_Barrier(meeting_.comm); }

  const Ring ring_;
  const Ring meeting_;
};

int threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int>(std::distance(begin(tasks), end(tasks)));
}

TEST_F(Spare, a_call_that_waits_keeps_no_worker) {
  // Rank 0 joins only after its own message has come back from all others' workers.
  MPI_Comm copy = MPI_COMM_NULL;
  if (ring_.rank != 0) {
    auto split = task("split").spawn([&] { MPI_Comm_split(ring_.comm, 0, 0, &copy); });
    auto answer = task("answer").spawn([this] {
      int value = -1;
      MPI_Recv(&value, 1, MPI_INT, 0, 1, meeting_.comm, MPI_STATUS_IGNORE);
      MPI_Send(&value, 1, MPI_INT, 0, 2, meeting_.comm);
    });
    answer.get();
    split.get();
  } else {
    sleep_ms(5);
    for (int other = 1; other < ring_.size; ++other) {
      int value = other;
      MPI_Send(&value, 1, MPI_INT, other, 1, meeting_.comm);
      MPI_Recv(&value, 1, MPI_INT, other, 2, meeting_.comm, MPI_STATUS_IGNORE);
      EXPECT_EQ(value, other);
    }
    MPI_Comm_split(ring_.comm, 0, 0, &copy);
  }
  EXPECT_EQ(MPI_Barrier(copy), MPI_SUCCESS);
  MPI_Comm_free(&copy);
}

TEST_F(Spare, calls_that_wait_for_each_other_all_run) {
  // Each communicator is split by one task of each rank, in another order on each rank.
  constexpr int calls = 6;
  std::vector<Ring> comms(calls);
  std::vector<MPI_Comm> made(calls, MPI_COMM_NULL);
  std::vector<Future<void>> done;
  for (int i = 0; i < calls; ++i) {
    const auto which = static_cast<std::size_t>(ring_.rank % 2 == 0 ? i : calls - 1 - i);
    done.push_back(task("split").spawn(
        [&, which] { MPI_Comm_split(comms[which].comm, 0, 0, &made[which]); }));
  }
  for (Future<void>& one : done) one.get();
  for (MPI_Comm& comm : made) {
    EXPECT_EQ(MPI_Barrier(comm), MPI_SUCCESS);
    MPI_Comm_free(&comm);
  }
}

TEST_F(Spare, calls_one_after_the_other_need_one_thread) {
  const auto split = [this] {
    task("split").spawn([this] {
      MPI_Comm copy;
      MPI_Comm_split(ring_.comm, 0, 0, &copy);
      MPI_Comm_free(&copy);
    }).get();
  };
  split();
  const int before = threads_of_this_process();
  for (int i = 0; i < 20; ++i) split();
  EXPECT_EQ(threads_of_this_process(), before);
}

// A grid that is larger than the communicator.
int make_too_large(const Ring& ring) {
  const int sizes[1] = {ring.size + 1};
  const int periods[1] = {0};
  MPI_Comm made = MPI_COMM_NULL;
  return MPI_Cart_create(ring.comm, 1, sizes, periods, 0, &made);
}

TEST_F(Spare, an_error_gives_its_code_and_the_task_goes_on) {
  MPI_Comm_set_errhandler(ring_.comm, MPI_ERRORS_RETURN);
  const int plain = [this] {
    int code = MPI_SUCCESS;
    on_unknown_thread([&] { code = make_too_large(ring_); });
    return code;
  }();
  const int code = task("bad").spawn([this] { return make_too_large(ring_); }).get();
  int plain_class = -1;
  int code_class = -2;
  MPI_Error_class(plain, &plain_class);
  MPI_Error_class(code, &code_class);
  EXPECT_NE(code, MPI_SUCCESS);
  EXPECT_EQ(code_class, plain_class);
}

std::atomic<int> handler_calls{0};
void count_call(MPI_Comm*, int*, ...) { handler_calls.fetch_add(1); }

TEST_F(Spare, the_error_handler_is_called_once) {
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(&count_call, &handler);
  MPI_Comm_set_errhandler(ring_.comm, handler);
  int plain = -1;  // MPICH gives no error when a handler has had it
  on_unknown_thread([&] { plain = make_too_large(ring_); });
  handler_calls.store(0);
  const int code = task("bad").spawn([this] { return make_too_large(ring_); }).get();
  EXPECT_EQ(code == MPI_SUCCESS, plain == MPI_SUCCESS);
  EXPECT_EQ(handler_calls.load(), 1);
  MPI_Errhandler_free(&handler);
}

// Attribute functions run where the call runs.
std::atomic<int> deletions{0};
std::atomic<bool> deletion_in_task{false};
int note_deletion(MPI_Win, int, void*, void*) {
  deletions.fetch_add(1);
  deletion_in_task.store(detail::in_task());
  // Blocking calls here are MPI's own.
  const int sent = 1;
  int received = 0;
  MPI_Sendrecv(&sent, 1, MPI_INT, 0, 0, &received, 1, MPI_INT, 0, 0, MPI_COMM_SELF,
               MPI_STATUS_IGNORE);
  return MPI_SUCCESS;
}

TEST_F(Spare, callbacks_of_mpi_run_in_no_task) {
  int key = MPI_KEYVAL_INVALID;
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, &note_deletion, &key, nullptr);
  deletions.store(0);
  deletion_in_task.store(true);
  task("window").spawn([&] {
    int* memory = nullptr;
    MPI_Win window;
    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, ring_.comm, &memory, &window);
    MPI_Win_set_attr(window, key, nullptr);
    MPI_Win_free(&window);
  }).get();
  EXPECT_EQ(deletions.load(), 1);
  EXPECT_FALSE(deletion_in_task.load());
  MPI_Win_free_keyval(&key);
}

TEST_F(Spare, many_tasks_make_many_calls) {
  constexpr int tasks = 20;
  std::vector<Ring> comms(tasks);
  std::vector<Future<int>> sums;
  for (const Ring& ring : comms) {
    sums.push_back(task("split and sum").spawn([&ring] {
      MPI_Comm copy;
      MPI_Comm_split(ring.comm, 0, -ring.rank, &copy);
      int sum = ring.rank;
      MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, copy);
      MPI_Comm_free(&copy);
      return sum;
    }));
  }
  for (Future<int>& sum : sums) EXPECT_EQ(sum.get(), ring_.size * (ring_.size - 1) / 2);
  meet();
}

}  // namespace
}  // namespace imbrex::test
