// SPDX-License-Identifier: BSD-3-Clause
// The kinds of requests that no other file here has: persistent sends and receives, partitioned
// ones, generalised ones; and the buffers of MPI_Bsend.
#include <string>
#include <vector>

#include "either_count.hpp"
#include "every_caller.hpp"

namespace imbrex::test {
namespace {

class Kinds : public EveryCaller {};

TEST_P(Kinds, persistent_sends_and_receives) {
  call([this] {
    int in = -1;
    int out = -1;
    MPI_Request both[2];
    MPI_Recv_init(&in, 1, MPI_INT, ring_.previous(), 4, ring_.comm, &both[0]);
    MPI_Send_init(&out, 1, MPI_INT, ring_.next(), 4, ring_.comm, &both[1]);
    for (int round = 0; round < 3; ++round) {
      out = 10 * ring_.rank + round;
      come_late();
      MPI_Startall(2, both);
      EXPECT_EQ(MPI_Waitall(2, both, MPI_STATUSES_IGNORE), MPI_SUCCESS);
      EXPECT_EQ(in, 10 * ring_.previous() + round);
    }
    for (MPI_Request& request : both) MPI_Request_free(&request);
  });
}

// The data that one rank gives to each other one, or takes: no element of some bytes, or one of
// none.
struct Nothing {
  std::vector<int> counts, places;
  std::vector<MPI_Datatype> types;
  Nothing(const Ring& ring, const int count, MPI_Datatype type)
      : counts(static_cast<std::size_t>(ring.size), count),
        places(static_cast<std::size_t>(ring.size), 0),
        types(static_cast<std::size_t>(ring.size), type) {}
};

void exchange(const Ring& ring, const Nothing& out, const Nothing& in, const bool in_place) {
  int data = 7;
  const int other = 8;
  const void* const from = in_place ? MPI_IN_PLACE : &other;
  EXPECT_EQ(MPI_Alltoallv(from, out.counts.data(), out.places.data(), out.types[0], &data,
                          in.counts.data(), in.places.data(), in.types[0], ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(MPI_Alltoallw(from, out.counts.data(), out.places.data(), out.types.data(), &data,
                          in.counts.data(), in.places.data(), in.types.data(), ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(data, 7);
}

// No message is exchanged, whichever of the two sides says which of the two.
TEST_P(Kinds, exchanges_of_no_bytes) {
  call([this] {
    MPI_Datatype empty;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_commit(&empty);
    const Nothing none(ring_, 0, MPI_INT);
    const Nothing hollow(ring_, 1, empty);
    const Nothing& mine = ring_.rank % 2 == 0 ? hollow : none;
    for (int round = 0; round < 2; ++round) {  // a message too many meets the next ones
      come_late();
      exchange(ring_, mine, mine, true);
      exchange(ring_, hollow, none, false);
      exchange(ring_, none, hollow, false);
    }
    MPI_Type_free(&empty);
  });
}

#if IMBREX_MPI_4
TEST_P(Kinds, persistent_barriers) {
  call([this] {
    MPI_Request request;
    EXPECT_EQ(MPI_Barrier_init(ring_.comm, MPI_INFO_NULL, &request), MPI_SUCCESS);
    for (int round = 0; round < 3; ++round) {
      come_late();
      MPI_Start(&request);
      EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    }
    MPI_Request_free(&request);
  });
}

TEST_P(Kinds, partitioned_messages) {
  if (ring_.size == 1) GTEST_SKIP() << "some MPIs cannot send partitions to themselves";
  call([this] {
    constexpr int parts = 4;
    int out[parts];
    int in[parts] = {};
    for (int part = 0; part < parts; ++part) out[part] = 10 * ring_.rank + part;
    MPI_Request both[2];
    MPI_Precv_init(in, parts, 1, MPI_INT, ring_.previous(), 6, ring_.comm, MPI_INFO_NULL,
                   &both[0]);
    MPI_Psend_init(out, parts, 1, MPI_INT, ring_.next(), 6, ring_.comm, MPI_INFO_NULL, &both[1]);
    for (int round = 0; round < 2; ++round) {
      MPI_Startall(2, both);
      come_late();
      for (int part = 0; part < parts; ++part) MPI_Pready(part, both[1]);
      // One by one: MPI_Testall of MPICH 5 takes such a request that is pending for a failure.
      EXPECT_EQ(MPI_Wait(&both[0], MPI_STATUS_IGNORE), MPI_SUCCESS);
      EXPECT_EQ(MPI_Wait(&both[1], MPI_STATUS_IGNORE), MPI_SUCCESS);
      for (int part = 0; part < parts; ++part) EXPECT_EQ(in[part], 10 * ring_.previous() + part);
    }
    for (MPI_Request& request : both) MPI_Request_free(&request);
  });
}
#endif

int fill_status(void*, MPI_Status* status) {
  MPI_Status_set_elements(status, MPI_INT, 7);
  MPI_Status_set_cancelled(status, 0);
  status->MPI_SOURCE = 5;
  status->MPI_TAG = 6;
  return MPI_SUCCESS;
}
int free_nothing(void*) { return MPI_SUCCESS; }
int cancel_nothing(void*, int) { return MPI_SUCCESS; }

TEST_P(Kinds, generalised_requests) {
  call([] {
    MPI_Request request;
    MPI_Grequest_start(&fill_status, &free_nothing, &cancel_nothing, nullptr, &request);
    std::thread worker([request] {
      sleep_ms(3);
      MPI_Grequest_complete(request);
    });
    MPI_Status status;
    EXPECT_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
    EXPECT_EQ(request, MPI_REQUEST_NULL);
    int count = -1;
    MPI_Get_count(&status, MPI_INT, &count);
    EXPECT_EQ(count, 7);
    EXPECT_EQ(status.MPI_SOURCE, 5);
    worker.join();
  });
}

template <class Count>
void check_detach(const Ring& ring) {
  static char memory[10000];
  MPI_Buffer_attach(memory, sizeof memory);
  int in = -1;
  MPI_Request request;
  MPI_Irecv(&in, 1, MPI_INT, ring.previous(), 3, ring.comm, &request);
  MPI_Bsend(&ring.rank, 1, MPI_INT, ring.next(), 3, ring.comm);
  void* detached = nullptr;
  Count bytes = 0;
  EXPECT_EQ(either::Buffer_detach(static_cast<void*>(&detached), &bytes), MPI_SUCCESS);
  EXPECT_EQ(detached, memory);
  EXPECT_EQ(bytes, static_cast<Count>(sizeof memory));
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_EQ(in, ring.previous());
}

TEST_P(Kinds, buffers) {
  call([this] {
    check_detach<int>(ring_);
#if MPI_VERSION >= 4
    check_detach<MPI_Count>(ring_);
#endif
  });
}

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
TEST_P(Kinds, buffers_are_flushed) {
  call([this] {
    static char memory[10000];
    const auto send = [this] {
      int in = -1;
      MPI_Request request;
      MPI_Irecv(&in, 1, MPI_INT, ring_.previous(), 3, ring_.comm, &request);
      MPI_Bsend(&ring_.rank, 1, MPI_INT, ring_.next(), 3, ring_.comm);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      EXPECT_EQ(in, ring_.previous());
    };
    void* detached = nullptr;
    int bytes = 0;
    MPI_Buffer_attach(memory, sizeof memory);
    send();
    EXPECT_EQ(MPI_Buffer_flush(), MPI_SUCCESS);
    MPI_Buffer_detach(static_cast<void*>(&detached), &bytes);

    MPI_Comm_attach_buffer(ring_.comm, memory, sizeof memory);
    send();
    EXPECT_EQ(MPI_Comm_flush_buffer(ring_.comm), MPI_SUCCESS);
    EXPECT_EQ(either::Comm_detach_buffer(ring_.comm, static_cast<void*>(&detached), &bytes),
              MPI_SUCCESS);
    EXPECT_EQ(detached, memory);
  });
}
#endif

EVERY_CALLER(Kinds);

}  // namespace
}  // namespace imbrex::test
