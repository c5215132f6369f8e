// SPDX-License-Identifier: BSD-3-Clause
// Long messages that wait for their turn behind others to the same rank: MPI's order, every call on
// requests, and programs that MPI alone brings to their end. Each rank sends to the next one.
#include <algorithm>
#include <numeric>
#include <thread>
#include <vector>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

constexpr int long_count = 1 << 17;  // of ints: half a MiB, so the third of a rank waits
constexpr int short_count = 1;

// A message that a rank sends, and the buffer in which the next rank gets it.
struct Message {
  Message(const Ring& ring, int number, int its_count = long_count)
      : count(its_count), out(static_cast<std::size_t>(count), ring.rank * 1000 + number),
        in(static_cast<std::size_t>(count), -1), expected(ring.previous() * 1000 + number) {}

  void isend(const Ring& ring, int tag) {
    MPI_Isend(out.data(), count, MPI_INT, ring.next(), tag, ring.comm, &request);
  }
  int recv(const Ring& ring, int tag) {
    MPI_Status status;
    MPI_Recv(in.data(), count, MPI_INT, ring.previous(), tag, ring.comm, &status);
    return status.MPI_TAG;
  }
  void irecv(const Ring& ring, int tag, MPI_Request* received) {
    MPI_Irecv(in.data(), count, MPI_INT, ring.previous(), tag, ring.comm, received);
  }
  [[nodiscard]] bool is_right() const {
    return std::all_of(in.begin(), in.end(), [&](const int word) { return word == expected; });
  }

  int count;
  std::vector<int> out;
  std::vector<int> in;
  int expected;
  MPI_Request request = MPI_REQUEST_NULL;
};

std::vector<Message> make(const Ring& ring, int messages) {
  std::vector<Message> all;
  for (int i = 0; i < messages; ++i) all.emplace_back(ring, i);
  return all;
}

void wait_for(std::vector<Message>& all) {
  std::vector<MPI_Request> requests;
  for (const Message& message : all) requests.push_back(message.request);
  std::vector<MPI_Status> statuses(requests.size());
  EXPECT_EQ(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), statuses.data()),
            MPI_SUCCESS);
  for (const MPI_Request request : requests) EXPECT_EQ(request, MPI_REQUEST_NULL);
}

void receive_all(const Ring& ring, std::vector<Message>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].recv(ring, static_cast<int>(i));
    EXPECT_TRUE(all[i].is_right()) << i;
  }
}

TEST(SendsInTurn, a_receive_of_any_tag_gets_them_in_order_short_ones_between_long_ones) {
  const Ring ring;
  std::vector<Message> all;
  for (int i = 0; i < 24; ++i) all.emplace_back(ring, i, i % 3 == 2 ? short_count : long_count);
  for (int i = 0; i < 24; ++i) all[static_cast<std::size_t>(i)].isend(ring, i);
  for (int i = 0; i < 24; ++i) {
    EXPECT_EQ(all[static_cast<std::size_t>(i)].recv(ring, MPI_ANY_TAG), i);
    EXPECT_TRUE(all[static_cast<std::size_t>(i)].is_right()) << i;
  }
  wait_for(all);
}

TEST(SendsInTurn, a_short_blocking_send_behind_long_ones_comes_back) {
  const Ring ring;
  std::vector<Message> all = make(ring, 6);
  for (int i = 0; i < 6; ++i) all[static_cast<std::size_t>(i)].isend(ring, i);
  Message last(ring, 99, short_count);
  MPI_Send(last.out.data(), 1, MPI_INT, ring.next(), 99, ring.comm);  // before any receive
  receive_all(ring, all);
  last.recv(ring, 99);
  EXPECT_TRUE(last.is_right());
  wait_for(all);
}

TEST(SendsInTurn, a_receiver_that_takes_the_last_first_gets_it) {
  const Ring ring;
  for (int round = 0; round < 4; ++round) {
    std::vector<Message> all = make(ring, 6);
    for (int i = 0; i < 6; ++i) all[static_cast<std::size_t>(i)].isend(ring, i);
    for (int i = 5; i >= 0; --i) all[static_cast<std::size_t>(i)].recv(ring, i);
    for (const Message& message : all) EXPECT_TRUE(message.is_right());
    wait_for(all);
  }
}

TEST(SendsInTurn, tasks_that_block_in_sends_and_receives) {
  const Ring ring;
  std::vector<Message> all = make(ring, 16);
  finish([&] {
    for (int i = 0; i < 16; ++i) {
      Message& message = all[static_cast<std::size_t>(i)];
      task("send").launch([&message, &ring, i] {
        const auto send = i % 4 == 3 ? &MPI_Ssend : &MPI_Send;
        send(message.out.data(), message.count, MPI_INT, ring.next(), i, ring.comm);
      });
      task("receive").launch([&message, &ring, i] { message.recv(ring, i); });
    }
  });
  for (const Message& message : all) EXPECT_TRUE(message.is_right());
}

TEST(SendsInTurn, an_exchange_behind_long_ones) {
  const Ring ring;
  std::vector<Message> all = make(ring, 4);
  for (int i = 0; i < 4; ++i) all[static_cast<std::size_t>(i)].isend(ring, i);
  std::vector<MPI_Request> received(4);
  for (std::size_t i = 0; i < 4; ++i) all[i].irecv(ring, static_cast<int>(i), &received[i]);
  Message exchanged(ring, 7);
  MPI_Sendrecv(exchanged.out.data(), exchanged.count, MPI_INT, ring.next(), 7, exchanged.in.data(),
               exchanged.count, MPI_INT, ring.previous(), 7, ring.comm, MPI_STATUS_IGNORE);
  EXPECT_TRUE(exchanged.is_right());
  std::vector<int> both(long_count, ring.rank);
  MPI_Sendrecv_replace(both.data(), long_count, MPI_INT, ring.next(), 8, ring.previous(), 8,
                       ring.comm, MPI_STATUS_IGNORE);
  EXPECT_EQ(both.back(), ring.previous());
  MPI_Waitall(4, received.data(), MPI_STATUSES_IGNORE);
  wait_for(all);
}

TEST(SendsInTurn, futures_and_release_after) {
  const Ring ring;
  std::vector<Message> all = make(ring, 8);
  std::vector<Future<MPI_Status>> sent;
  for (int i = 0; i < 8; ++i) {
    all[static_cast<std::size_t>(i)].isend(ring, i);
    sent.push_back(when(all[static_cast<std::size_t>(i)].request));
  }
  receive_all(ring, all);
  for (const Future<MPI_Status>& one : sent) (void)one.get();
  finish([&] {
    for (int i = 0; i < 8; ++i) {
      Message& message = all[static_cast<std::size_t>(i)];
      task("send").out(message.out[0]).launch([&message, &ring, i] {
        message.isend(ring, i);
        release_after(message.request);
      });
      task("receive").launch([&message, &ring, i] { message.recv(ring, i); });
    }
  });
}

TEST(SendsInTurn, a_type_that_is_freed_at_once_lives_as_long_as_its_message) {
  const Ring ring;
  std::vector<Message> all = make(ring, 6);
  for (int i = 0; i < 6; ++i) {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Type_contiguous(long_count, MPI_INT, &type);
    MPI_Type_commit(&type);
    Message& message = all[static_cast<std::size_t>(i)];
    MPI_Isend(message.out.data(), 1, type, ring.next(), i, ring.comm, &message.request);
    MPI_Type_free(&type);
  }
  receive_all(ring, all);
  wait_for(all);
}

TEST(SendsInTurn, a_communicator_is_freed_and_a_request_let_go_of) {
  std::vector<Message> all;
  std::vector<MPI_Request> received(6);
  {
    const Ring ring;
    all = make(ring, 6);
    for (int i = 0; i < 6; ++i) {
      Message& message = all[static_cast<std::size_t>(i)];
      message.irecv(ring, i, &received[static_cast<std::size_t>(i)]);
      message.isend(ring, i);
      if (i % 2 == 1) MPI_Request_free(&message.request);
    }
  }
  MPI_Waitall(6, received.data(), MPI_STATUSES_IGNORE);
  for (const Message& message : all) EXPECT_TRUE(message.is_right());
  wait_for(all);
  MPI_Barrier(MPI_COMM_WORLD);  // messages whose requests were freed have been received
}

TEST(SendsInTurn, a_thread_that_blocks_in_a_receive_while_its_sends_wait) {
  const Ring ring;
  std::vector<Message> all = make(ring, 8);
  std::thread thread([&] {
    for (int i = 0; i < 8; ++i) all[static_cast<std::size_t>(i)].isend(ring, i);
    for (int i = 0; i < 8; ++i) all[static_cast<std::size_t>(i)].recv(ring, i);
    for (Message& message : all) MPI_Wait(&message.request, MPI_STATUS_IGNORE);
  });
  thread.join();
  for (const Message& message : all) EXPECT_TRUE(message.is_right());
}

TEST(SendsInTurn, a_task_receives_them_while_main_waits_for_it) {
  const Ring ring;
  std::vector<Message> all = make(ring, 8);
  std::vector<MPI_Request> received(8);
  for (std::size_t i = 0; i < 8; ++i) all[i].irecv(ring, static_cast<int>(i), &received[i]);
  for (int i = 0; i < 8; ++i) all[static_cast<std::size_t>(i)].isend(ring, i);
  finish([&] {
    task("receive").launch([&] { MPI_Waitall(8, received.data(), MPI_STATUSES_IGNORE); });
  });
  for (const Message& message : all) EXPECT_TRUE(message.is_right());
  wait_for(all);
}

// Its messages go, and are received, after the last test: in MPI_Finalize.
TEST(SendsInTurn, zz_what_the_program_has_let_go_of_is_sent_in_the_end) {
  static Ring& ring = *new Ring;
  static std::vector<Message>& all = *new std::vector<Message>(make(ring, 6));
  for (int i = 0; i < 6; ++i) {
    Message& message = all[static_cast<std::size_t>(i)];
    MPI_Request received = MPI_REQUEST_NULL;
    message.isend(ring, i);
    MPI_Request_free(&message.request);
    message.irecv(ring, i, &received);
    task("receive").launch([&message, received]() mutable {
      sleep_ms(20);
      MPI_Wait(&received, MPI_STATUS_IGNORE);
      EXPECT_TRUE(message.is_right());
    });
  }
}

}  // namespace
}  // namespace imbrex::test
