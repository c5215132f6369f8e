// SPDX-License-Identifier: BSD-3-Clause
// Completion queues of imbrex/continue.h: with poll(), from several threads, cancelled, closed.
#include <fcntl.h>
#include <poll.h>

#include <array>

#include "imbrex/continue.h"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

struct Queue {
  imbrex_queue* queue = nullptr;
  int fd = -1;

  Queue() { EXPECT_EQ(imbrex_queue_open(&queue, &fd), IMBREX_SUCCESS); }
  ~Queue() { EXPECT_EQ(imbrex_queue_close(queue), IMBREX_SUCCESS); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  [[nodiscard]] bool readable() const {
    pollfd it{.fd = fd, .events = POLLIN, .revents = 0};
    return ::poll(&it, 1, 0) == 1;
  }
  // Makes progress until `count` completions have arrived, which it takes as the descriptor says.
  std::vector<imbrex_completion> take(std::size_t count) const {
    std::vector<imbrex_completion> all;
    while (all.size() < count) {
      (void)imbrex_progress();
      if (!readable()) continue;
      std::array<imbrex_completion, 3> some;
      const int taken = imbrex_queue_take(queue, 3, some.data());
      all.insert(all.end(), some.begin(), some.begin() + taken);
    }
    return all;
  }
};

void send_now(const int& value, int to, int tag, MPI_Comm comm) {
  MPI_Send(&value, 1, MPI_INT, to, tag, comm);
}

TEST(Queue, a_completion_has_tag_code_and_status_and_makes_the_descriptor_readable) {
  const Ring ring;
  const Queue queue;
  int value = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&value, 1, MPI_INT, ring.previous(), 3, ring.comm, &request);
  EXPECT_EQ(imbrex_continue_to(queue.queue, &request, 77), IMBREX_SUCCESS);
  EXPECT_EQ(request, MPI_REQUEST_NULL);
  EXPECT_FALSE(queue.readable());
  MPI_Barrier(ring.comm);
  send_now(ring.rank, ring.next(), 3, ring.comm);
  const std::vector<imbrex_completion> all = queue.take(1);
  EXPECT_EQ(all[0].tag, 77u);
  EXPECT_EQ(all[0].code, MPI_SUCCESS);
  EXPECT_EQ(all[0].status.MPI_SOURCE, ring.previous());
  EXPECT_EQ(all[0].status.MPI_TAG, 3);
  EXPECT_EQ(value, ring.previous());
  EXPECT_FALSE(queue.readable());
  MPI_Barrier(ring.comm);
}

// Methodology: no thread makes progress but the one that polls the queue.
TEST(Queue, a_poll_of_the_queue_finds_completions_and_does_not_leave_the_descriptor_readable) {
  const Ring ring;
  const Queue queue;
  imbrex_completion done = {};
  EXPECT_EQ(imbrex_queue_poll(queue.queue, 100, 1, &done), 0);
  EXPECT_EQ(imbrex_queue_poll(queue.queue, 100, 0, &done), 0);
  EXPECT_EQ(imbrex_queue_poll(nullptr, 100, 1, &done), 0);
  for (int round = 0; round < 100; ++round) {
    int value = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(&value, 1, MPI_INT, ring.previous(), 3, ring.comm, &request);
    ASSERT_EQ(imbrex_continue_to(queue.queue, &request, 1), IMBREX_SUCCESS);
    send_now(round, ring.next(), 3, ring.comm);
    while (imbrex_queue_poll(queue.queue, 1000, 1, &done) == 0) {
    }
    ASSERT_EQ(value, round);
    ASSERT_EQ(imbrex_queue_take(queue.queue, 1, &done), 0);
    ASSERT_FALSE(queue.readable());
  }
  MPI_Barrier(ring.comm);
}

TEST(Queue, each_of_many_requests_arrives_once_and_matched_messages_in_their_order) {
  const Ring ring;
  const Queue queue;
  constexpr int count = 300;
  std::vector<int> got(count, -1);
  std::vector<int> sent(count);
  for (int i = 0; i < count; ++i) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(&got[i], 1, MPI_INT, ring.previous(), i, ring.comm, &request);
    ASSERT_EQ(imbrex_continue_to(queue.queue, &request, static_cast<std::uint64_t>(i)),
              IMBREX_SUCCESS);
    sent[i] = i * i;
    MPI_Isend(&sent[i], 1, MPI_INT, ring.next(), i, ring.comm, &request);
    ASSERT_EQ(imbrex_continue_to(queue.queue, &request, static_cast<std::uint64_t>(count + i)),
              IMBREX_SUCCESS);
  }
  std::vector<int> times(2 * count);
  for (const imbrex_completion& it : queue.take(2 * count)) {
    EXPECT_EQ(it.code, MPI_SUCCESS);
    ++times[it.tag];
  }
  for (const int n : times) EXPECT_EQ(n, 1);
  for (int i = 0; i < count; ++i) EXPECT_EQ(got[i], i * i);
  std::array<imbrex_completion, 1> none;
  EXPECT_EQ(imbrex_queue_take(queue.queue, 1, none.data()), 0);
  MPI_Barrier(ring.comm);
}

TEST(Queue, a_null_request_is_complete) {
  const Queue queue;
  MPI_Request none = MPI_REQUEST_NULL;
  EXPECT_EQ(imbrex_continue_to(queue.queue, &none, 1), IMBREX_SUCCESS);
  EXPECT_EQ(queue.take(1)[0].status.MPI_SOURCE, MPI_ANY_SOURCE);
}

TEST(Queue, a_cancelled_receive_arrives_as_cancelled_and_the_next_gets_the_late_message) {
  const Ring ring;
  const Queue queue;
  std::array<int, 3> values{-1, -1, -1};
  for (int i = 0; i < 3; ++i) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(&values[i], 1, MPI_INT, ring.previous(), 5, ring.comm, &request);
    EXPECT_EQ(imbrex_continue_to(queue.queue, &request, static_cast<std::uint64_t>(i)),
              IMBREX_SUCCESS);
  }
  for (const std::uint64_t tag : {1u, 0u, 1u, 99u}) {
    EXPECT_EQ(imbrex_queue_cancel(queue.queue, tag), IMBREX_SUCCESS);
  }
  std::uint64_t tags = 0;
  for (const imbrex_completion& it : queue.take(2)) {
    int cancelled = 0;
    MPI_Test_cancelled(&it.status, &cancelled);
    EXPECT_EQ(cancelled, 1);
    EXPECT_EQ(it.code, MPI_SUCCESS);
    tags |= std::uint64_t{1} << it.tag;
  }
  EXPECT_EQ(tags, 3u);
  MPI_Barrier(ring.comm);
  send_now(ring.rank, ring.next(), 5, ring.comm);
  EXPECT_EQ(queue.take(1)[0].tag, 2u);
  EXPECT_EQ(values[2], ring.previous());
  EXPECT_EQ(values[0], -1);
  EXPECT_EQ(imbrex_queue_cancel(queue.queue, 2), IMBREX_SUCCESS);  // too late is no error
  MPI_Barrier(ring.comm);
}

TEST(Queue, a_probe_gives_the_matched_message) {
  const Ring ring;
  const Queue queue;
  EXPECT_EQ(imbrex_mprobe_to(queue.queue, MPI_ANY_SOURCE, 4, ring.comm, 10), IMBREX_SUCCESS);
  EXPECT_EQ(imbrex_mprobe_to(queue.queue, MPI_PROC_NULL, 4, ring.comm, 11), IMBREX_SUCCESS);
  EXPECT_EQ(queue.take(1)[0].status.MPI_SOURCE, MPI_PROC_NULL);
  MPI_Barrier(ring.comm);
  send_now(ring.rank, ring.next(), 4, ring.comm);
  imbrex_completion it = queue.take(1)[0];
  EXPECT_EQ(it.tag, 10u);
  EXPECT_EQ(it.status.MPI_SOURCE, ring.previous());
  int value = -1;
  MPI_Mrecv(&value, 1, MPI_INT, &it.message, MPI_STATUS_IGNORE);
  EXPECT_EQ(value, ring.previous());
  MPI_Barrier(ring.comm);
}

TEST(Queue, a_cancelled_probe_leaves_the_message) {
  const Ring ring;
  const Queue queue;
  EXPECT_EQ(imbrex_mprobe_to(queue.queue, ring.previous(), 4, ring.comm, 1), IMBREX_SUCCESS);
  EXPECT_EQ(imbrex_queue_cancel(queue.queue, 1), IMBREX_SUCCESS);
  const imbrex_completion it = queue.take(1)[0];
  int cancelled = 0;
  MPI_Test_cancelled(&it.status, &cancelled);
  EXPECT_EQ(cancelled, 1);
  EXPECT_EQ(it.message, MPI_MESSAGE_NULL);
  MPI_Barrier(ring.comm);
  send_now(ring.rank, ring.next(), 4, ring.comm);
  int value = -1;
  MPI_Recv(&value, 1, MPI_INT, ring.previous(), 4, ring.comm, MPI_STATUS_IGNORE);
  EXPECT_EQ(value, ring.previous());
  MPI_Comm_set_errhandler(ring.comm, MPI_ERRORS_RETURN);
  EXPECT_EQ(imbrex_mprobe_to(queue.queue, ring.size, 4, ring.comm, 1), IMBREX_SUCCESS);
  EXPECT_NE(queue.take(1)[0].code, MPI_SUCCESS);
  MPI_Barrier(ring.comm);
}

TEST(Queue, a_failed_receive_has_its_code) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP() << "Open MPI 4.1 does not tell of a message to oneself";
  MPI_Comm_set_errhandler(ring.comm, MPI_ERRORS_RETURN);
  const Queue queue;
  int value = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&value, 1, MPI_INT, ring.previous(), 8, ring.comm, &request);
  EXPECT_EQ(imbrex_continue_to(queue.queue, &request, 0), IMBREX_SUCCESS);
  const std::array<int, 2> two{7, 7};
  MPI_Send(two.data(), 2, MPI_INT, ring.next(), 8, ring.comm);
  int error_class = MPI_SUCCESS;
  MPI_Error_class(queue.take(1)[0].code, &error_class);
  EXPECT_EQ(error_class, MPI_ERR_TRUNCATE);
  MPI_Barrier(ring.comm);
}

TEST(Queue, refuses_what_it_cannot_do_and_stays_as_it_was) {
  const Ring ring;
  const Queue queue;
  int value = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_EQ(imbrex_queue_open(nullptr, nullptr), IMBREX_ERR_USE);
  EXPECT_EQ(imbrex_continue_to(nullptr, &request, 0), IMBREX_ERR_USE);
  EXPECT_EQ(imbrex_continue_to(queue.queue, nullptr, 0), IMBREX_ERR_USE);
  EXPECT_EQ(imbrex_queue_cancel(nullptr, 0), IMBREX_ERR_USE);
  EXPECT_EQ(imbrex_queue_take(queue.queue, -1, nullptr), 0);
  EXPECT_EQ(imbrex_queue_close(nullptr), IMBREX_SUCCESS);
  MPI_Recv_init(&value, 1, MPI_INT, ring.previous(), 2, ring.comm, &request);
  EXPECT_EQ(imbrex_continue_to(queue.queue, &request, 0), IMBREX_ERR_USE);
  MPI_Request_free(&request);
  for (int i = 0; i < 100; ++i) (void)imbrex_progress();
  EXPECT_FALSE(queue.readable());
}

TEST(Queue, closed_with_open_requests_it_lives_until_the_last_is_complete) {
  const Ring ring;
  int value = -1;
  int fd = -1;
  MPI_Request none = MPI_REQUEST_NULL;
  {
    const Queue queue;
    fd = queue.fd;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(&value, 1, MPI_INT, ring.previous(), 9, ring.comm, &request);
    EXPECT_EQ(imbrex_continue_to(queue.queue, &request, 0), IMBREX_SUCCESS);
    EXPECT_EQ(imbrex_continue_to(queue.queue, &none, 1), IMBREX_SUCCESS);
    while (!queue.readable()) (void)imbrex_progress();  // a completion that no call takes
  }
  EXPECT_NE(fcntl(fd, F_GETFD), -1);
  MPI_Barrier(ring.comm);
  send_now(ring.rank, ring.next(), 9, ring.comm);
  while (fcntl(fd, F_GETFD) != -1) (void)imbrex_progress();
  EXPECT_EQ(value, ring.previous());
  MPI_Barrier(ring.comm);
}

// Methodology: threads hand requests over, take completions and make progress at the same time.
TEST(Queue, threads_share_a_queue) {
  const Ring ring;
  const Queue queue;
  constexpr int each = 200;
  constexpr int threads = 3;
  constexpr int all = 2 * each * threads;
  std::vector<int> got(each * threads, -1);
  std::vector<int> sent(each * threads);
  std::vector<std::atomic<int>> times(all);
  std::atomic<int> taken{0};
  const auto work = [&](int first) {
    for (int i = first; i < first + each; ++i) {
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Irecv(&got[i], 1, MPI_INT, ring.previous(), i, ring.comm, &request);
      EXPECT_EQ(imbrex_continue_to(queue.queue, &request, 2 * static_cast<std::uint64_t>(i)),
                IMBREX_SUCCESS);
      sent[i] = i;
      MPI_Isend(&sent[i], 1, MPI_INT, ring.next(), i, ring.comm, &request);
      EXPECT_EQ(imbrex_continue_to(queue.queue, &request, 2 * static_cast<std::uint64_t>(i) + 1),
                IMBREX_SUCCESS);
    }
    while (taken.load() < all) {
      (void)imbrex_progress();
      std::array<imbrex_completion, 5> some;
      const int count = imbrex_queue_take(queue.queue, 5, some.data());
      for (int i = 0; i < count; ++i) ++times[some[i].tag];
      taken += count;
    }
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) workers.emplace_back(work, i * each);
  for (std::thread& worker : workers) worker.join();
  for (const std::atomic<int>& n : times) EXPECT_EQ(n.load(), 1);
  for (int i = 0; i < each * threads; ++i) EXPECT_EQ(got[i], i);
  MPI_Barrier(ring.comm);
}

}  // namespace
}  // namespace imbrex::test
