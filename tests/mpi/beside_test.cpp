// SPDX-License-Identifier: BSD-3-Clause
// Calls beside receives that wait: probes, arrays of requests, persistent receives, threads that
// stand in no task, when_arrived. Methodology: see receives.hpp.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "receives.hpp"

namespace imbrex::test {
namespace {

// ---- probes ----------------------------------------------------------------------------------

TEST(Probes, find_what_no_earlier_receive_gets) {
  const Ring ring;
  const Crowd crowd(ring);
  int first = -1;
  MPI_Request request = irecv(ring, MPI_ANY_SOURCE, 1, &first);
  send(ring, 1, 10);
  send(ring, 1, 11);
  send(ring, 2, 12);
  MPI_Status status;
  MPI_Probe(ring.previous(), 2, ring.comm, &status);
  EXPECT_EQ(status.MPI_TAG, 2);
  MPI_Message message;
  MPI_Mprobe(MPI_ANY_SOURCE, 1, ring.comm, &message, &status);
  EXPECT_EQ(status.MPI_TAG, 1);
  int value = -1;
  MPI_Mrecv(&value, 1, MPI_INT, &message, &status);
  EXPECT_EQ(value, 11);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(first, 10);
  int flag = 0;
  while (flag == 0) MPI_Improbe(ring.previous(), MPI_ANY_TAG, ring.comm, &flag, &message, &status);
  MPI_Imrecv(&value, 1, MPI_INT, &message, &request);
  MPI_Wait(&request, &status);
  EXPECT_EQ(value, 12);
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, ring.comm, &flag, MPI_STATUS_IGNORE);
  EXPECT_EQ(flag, 0);
}

TEST(Probes, any_number_of_probes_in_tasks_are_woken) {
  const Ring ring;
  constexpr int count = 60;
  const Bustle bustle;
  std::vector<int> in(count, -1);
  finish([&] {
    for (int tag = 0; tag < count; ++tag) {
      task("probe").launch([&, tag] {
        MPI_Status status;
        if (tag % 2 == 0) {
          MPI_Probe(MPI_ANY_SOURCE, tag, ring.comm, &status);
          MPI_Recv(&in[tag], 1, MPI_INT, status.MPI_SOURCE, tag, ring.comm, MPI_STATUS_IGNORE);
        } else {
          MPI_Message message;
          MPI_Mprobe(ring.previous(), tag, ring.comm, &message, &status);
          MPI_Mrecv(&in[tag], 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        }
      });
    }
    yield();
    MPI_Barrier(ring.comm);
    for (int tag = count - 1; tag >= 0; --tag) send(ring, tag, tag);
  });
  for (int tag = 0; tag < count; ++tag) EXPECT_EQ(in[tag], tag);
}

// ---- arrays of requests ------------------------------------------------------------------------

TEST(Arrays, may_mix_requests_of_all_kinds) {
  const Ring ring;
  for (int round = 0; round < 30; ++round) {
    const Crowd crowd(ring);
    int in[3] = {-1, -1, -1};
    int unused = 0;
    MPI_Request requests[6] = {};
    requests[0] = irecv(ring, ring.previous(), 1, &in[0]);
    requests[1] = MPI_REQUEST_NULL;
    MPI_Isend(&round, 1, MPI_INT, ring.next(), 1, ring.comm, &requests[2]);
    MPI_Recv_init(&in[1], 1, MPI_INT, MPI_ANY_SOURCE, 2, ring.comm, &requests[3]);
    MPI_Recv_init(&unused, 1, MPI_INT, ring.previous(), 3, ring.comm, &requests[4]);
    MPI_Start(&requests[3]);
    requests[5] = irecv(ring, MPI_ANY_SOURCE, 4, &in[2]);
    send(ring, 2, 100 + round);
    send(ring, 4, 200 + round);
    const MPI_Request persistent[2] = {requests[3], requests[4]};

    MPI_Status statuses[6];
    int done = 0;
    if (round % 3 == 0) {
      EXPECT_EQ(MPI_Waitall(6, requests, statuses), MPI_SUCCESS);
      EXPECT_EQ(statuses[0].MPI_TAG, 1);
      EXPECT_EQ(statuses[1].MPI_SOURCE, MPI_ANY_SOURCE);
      EXPECT_EQ(statuses[3].MPI_TAG, 2);
      EXPECT_EQ(statuses[4].MPI_TAG, MPI_ANY_TAG);
      EXPECT_EQ(statuses[5].MPI_SOURCE, ring.previous());
    } else if (round % 3 == 1) {
      for (; done < 4; ++done) {
        int index = -1;
        MPI_Status status;
        EXPECT_EQ(MPI_Waitany(6, requests, &index, &status), MPI_SUCCESS);
        ASSERT_TRUE(index == 0 || index == 2 || index == 3 || index == 5) << index;
        EXPECT_TRUE(index != 5 || status.MPI_TAG == 4);
      }
    } else {
      while (done < 4) {
        int found = 0;
        int indices[6];
        EXPECT_EQ(MPI_Testsome(6, requests, &found, indices, statuses), MPI_SUCCESS);
        for (int i = 0; i < found; ++i) {
          EXPECT_TRUE(indices[i] != 0 || statuses[i].MPI_TAG == 1);
        }
        done += found;
      }
    }
    EXPECT_EQ(in[0], round);
    EXPECT_EQ(in[1], 100 + round);
    EXPECT_EQ(in[2], 200 + round);
    for (const int place : {0, 1, 2, 5}) EXPECT_EQ(requests[place], MPI_REQUEST_NULL);
    EXPECT_EQ(requests[3], persistent[0]);
    EXPECT_EQ(requests[4], persistent[1]);
    int flag = 0;
    EXPECT_EQ(MPI_Testall(6, requests, &flag, statuses), MPI_SUCCESS);
    EXPECT_NE(flag, 0);
    int index = 0;
    EXPECT_EQ(MPI_Testany(6, requests, &index, &flag, statuses), MPI_SUCCESS);
    EXPECT_EQ(index, MPI_UNDEFINED);
    EXPECT_NE(flag, 0);
    MPI_Request_free(&requests[3]);
    MPI_Request_free(&requests[4]);
  }
}

TEST(Persistent, receives_start_again_in_either_state_and_may_be_freed_while_open) {
  const Ring ring;
  int in[40];
  MPI_Request requests[40];
  for (int i = 0; i < 40; ++i) {
    MPI_Recv_init(&in[i], 1, MPI_INT, i % 2 == 0 ? MPI_ANY_SOURCE : ring.previous(), i, ring.comm,
                  &requests[i]);
  }
  for (int round = 0; round < 10; ++round) {
    std::fill(std::begin(in), std::end(in), -1);
    if (round % 2 == 1) {
      for (int i = 0; i < 40; ++i) send(ring, i, 1000 * round + i);  // it may be there already
    }
    MPI_Startall(40, requests);
    if (round % 2 == 0) {
      for (int i = 39; i >= 0; --i) send(ring, i, 1000 * round + i);
    }
    if (round % 3 == 0) {
      for (MPI_Request& request : requests) MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      MPI_Waitall(40, requests, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < 40; ++i) ASSERT_EQ(in[i], 1000 * round + i);
  }
  MPI_Startall(40, requests);
  for (MPI_Request& request : requests) MPI_Request_free(&request);
  for (int i = 0; i < 40; ++i) send(ring, i, i);
  volatile int* const last = in;
  for (int i = 0; i < 40; ++i) {
    while (last[i] != i) {
      int flag = 0;
      MPI_Iprobe(ring.previous(), 99, ring.comm, &flag, MPI_STATUS_IGNORE);
    }
  }
}

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
TEST(Isendrecv, is_one_request_for_both) {
  const Ring ring;
  for (const bool beside : {false, true}) {
    const std::unique_ptr<Crowd> crowd = beside ? std::make_unique<Crowd>(ring) : nullptr;
    int in = -1;
    int both = ring.rank;
    MPI_Request requests[2];
    MPI_Isendrecv(&ring.rank, 1, MPI_INT, ring.next(), 1, &in, 1, MPI_INT, ring.previous(), 1,
                  ring.comm, &requests[0]);
    MPI_Isendrecv_replace(&both, 1, MPI_INT, ring.next(), 2, MPI_ANY_SOURCE, 2, ring.comm,
                          &requests[1]);
    MPI_Status statuses[2];
    EXPECT_EQ(MPI_Waitall(2, requests, statuses), MPI_SUCCESS);
    EXPECT_EQ(in, ring.previous());
    EXPECT_EQ(both, ring.previous());
#ifdef OPEN_MPI  // MPICH's own gives an empty status
    EXPECT_EQ(statuses[1].MPI_SOURCE, ring.previous());
    EXPECT_EQ(statuses[1].MPI_TAG, 2);
#endif
    EXPECT_EQ(requests[0], MPI_REQUEST_NULL);
  }
}
#endif

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
TEST(Arrays, can_be_asked_for_their_statuses_without_an_end) {
  const Ring ring;
  const Crowd crowd(ring);
  int in[2] = {-1, -1};
  MPI_Request requests[3] = {irecv(ring, ring.previous(), 1, &in[0]), MPI_REQUEST_NULL,
                             irecv(ring, MPI_ANY_SOURCE, 2, &in[1])};
  int flag = 1;
  EXPECT_EQ(MPI_Request_get_status_all(3, requests, &flag, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(flag, 0);
  MPI_Barrier(ring.comm);
  send(ring, 2, 12);
  int index = -1;
  MPI_Status status;
  for (flag = 0; flag == 0;) MPI_Request_get_status_any(3, requests, &index, &flag, &status);
  EXPECT_EQ(index, 2);
  EXPECT_EQ(status.MPI_TAG, 2);
  MPI_Barrier(ring.comm);  // all have looked: else another rank's next message may be there too
  send(ring, 1, 11);
  for (flag = 0; flag == 0;) {
    MPI_Request_get_status_all(3, requests, &flag, MPI_STATUSES_IGNORE);
  }
  int indices[3];
  int found = 0;
  MPI_Request_get_status_some(3, requests, &found, indices, MPI_STATUSES_IGNORE);
  EXPECT_EQ(found, 2);
  EXPECT_NE(requests[0], MPI_REQUEST_NULL);
  EXPECT_EQ(MPI_Waitall(3, requests, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(in[0], 11);
  EXPECT_EQ(in[1], 12);
}

TEST(Arrays, in_which_none_is_active_have_the_empty_status_while_others_are_matched) {
  const Ring ring;
  const Crowd crowd(ring);
  int in = -1;
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Recv_init(&in, 1, MPI_INT, ring.previous(), 1, ring.comm, &requests[1]);
  MPI_Status status;
  status.MPI_SOURCE = status.MPI_TAG = 77;
  status.MPI_ERROR = MPI_ERR_OTHER;
  int index = -1;
  int flag = 0;
  MPI_Request_get_status_any(2, requests, &index, &flag, &status);
  EXPECT_EQ(flag, 1);
  EXPECT_EQ(index, MPI_UNDEFINED);
  EXPECT_EQ(status.MPI_SOURCE, MPI_ANY_SOURCE);
  EXPECT_EQ(status.MPI_TAG, MPI_ANY_TAG);
  EXPECT_EQ(status.MPI_ERROR, MPI_SUCCESS);
  int indices[2];
  int found = 0;
  MPI_Request_get_status_some(2, requests, &found, indices, MPI_STATUSES_IGNORE);
  EXPECT_EQ(found, MPI_UNDEFINED);
  MPI_Request_free(&requests[1]);
}
#endif

// ---- threads that stand in no task ---------------------------------------------------------

TEST(Threads, receive_probe_and_wait_beside_open_receives) {
  const Ring ring;
  const Crowd crowd(ring);
  on_unknown_thread([&] {
    int in[4] = {-1, -1, -1, -1};
    MPI_Request requests[2] = {irecv(ring, ring.previous(), 1, &in[0]),
                               irecv(ring, MPI_ANY_SOURCE, 2, &in[1])};
    send(ring, 2, 2);
    send(ring, 1, 1);
    send(ring, 3, 3);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Probe(ring.previous(), 3, ring.comm, MPI_STATUS_IGNORE);
    MPI_Recv(&in[2], 1, MPI_INT, ring.previous(), 3, ring.comm, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&ring.rank, 1, MPI_INT, ring.next(), 4, &in[3], 1, MPI_INT, ring.previous(), 4,
                 ring.comm, MPI_STATUS_IGNORE);
    MPI_Barrier(ring.comm);
    EXPECT_EQ(in[0], 1);
    EXPECT_EQ(in[1], 2);
    EXPECT_EQ(in[2], 3);
    EXPECT_EQ(in[3], ring.previous());
  });
}

// The sender waits until its message is matched; the receiver is in another call meanwhile.
TEST(Threads, make_progress_for_a_receive_while_they_wait_for_something_else) {
  const Ring ring;
  on_unknown_thread([&] {
    const Crowd crowd(ring);
    int value = -1;
    MPI_Request request = irecv(ring, ring.previous(), 1, &value);
    if (ring.size > 1 && ring.rank % 2 == 0) {
      MPI_Ssend(&ring.rank, 1, MPI_INT, ring.next(), 1, ring.comm);
    } else {
      MPI_Request out;
      MPI_Issend(&ring.rank, 1, MPI_INT, ring.next(), 1, ring.comm, &out);
      MPI_Wait(&out, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(ring.comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(value, ring.previous());
  });
}

// ---- when_arrived ------------------------------------------------------------------------------

TEST(WhenArrived, starts_a_task_with_its_message) {
  const Ring ring;
  constexpr int count = 100;
  std::vector<int> in(count, -1);
  const auto before = statistics().suspensions;
  for (int tag = 0; tag < count; ++tag) {
    auto message = when_arrived(tag % 2 == 0 ? MPI_ANY_SOURCE : ring.previous(), tag, ring.comm);
    task("receive").in(message).launch([&in, message, tag] {
      const ArrivedMessage& it = message.get();
      EXPECT_EQ(it.tag(), tag);
      EXPECT_EQ(it.count(MPI_INT), 1);
      it.receive(&in[tag], 1, MPI_INT);
    });
  }
  const auto waiting = statistics();
  EXPECT_EQ(waiting.suspended_tasks, 0u);
  for (int tag = count - 1; tag >= 0; --tag) send(ring, tag, tag);
  taskwait();
  EXPECT_LE(statistics().suspensions - before, 110u);  // of main and of its sends; none of a task
  for (int tag = 0; tag < count; ++tag) EXPECT_EQ(in[tag], tag);
}

TEST(WhenArrived, takes_its_place_among_receives) {
  const char* const above = std::getenv("IMBREX_MATCH_ABOVE");
  if (above != nullptr && std::string(above) == "1000000000") {
    GTEST_SKIP() << "it gets what no receive of MPI's gets";
  }
  const Ring ring;
  int first = -1;
  int last = -1;
  MPI_Request one = irecv(ring, ring.previous(), 1, &first);
  auto second = when_arrived(MPI_ANY_SOURCE, 1, ring.comm);
  MPI_Request three = irecv(ring, MPI_ANY_SOURCE, MPI_ANY_TAG, &last);
  for (int value = 1; value <= 3; ++value) send(ring, 1, value);
  MPI_Wait(&one, MPI_STATUS_IGNORE);
  MPI_Wait(&three, MPI_STATUS_IGNORE);
  int middle = -1;
  const MPI_Status status = second.get().receive(&middle, 1, MPI_INT);
  EXPECT_EQ(status.MPI_SOURCE, ring.previous());
  EXPECT_EQ(first, 1);
  EXPECT_EQ(middle, 2);
  EXPECT_EQ(last, 3);
  EXPECT_THROW(second.get().receive(&middle, 1, MPI_INT), Error);
}

TEST(WhenArrived, proc_null_is_ready_at_once) {
  const Ring ring;
  auto message = when_arrived(MPI_PROC_NULL, 1, ring.comm);
  EXPECT_TRUE(message.ready());
  EXPECT_EQ(message.get().receive(nullptr, 0, MPI_INT).MPI_SOURCE, MPI_PROC_NULL);
}

}  // namespace
}  // namespace imbrex::test
