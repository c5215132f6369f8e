// SPDX-License-Identifier: BSD-3-Clause
// Methodology: every call of calls.def is made by four kinds of callers: a task that may poll in
// place, a task that suspends since another is always ready, main, and a thread that imbrex does
// not know. In each, one rank comes late, so that the others wait. Results are compared with what
// the standard says.
#include <functional>
#include <map>
#include <numeric>
#include <string>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

using Ints = std::vector<int>;

// The one rank that comes late: what the others wait for has not happened when they ask.
void come_late(const Ring& ring) {
  if (ring.rank == 0) sleep_ms(2);
}

// ---- point to point: every rank sends to the next --------------------------------------------

using SendCall = int (*)(const void*, int, MPI_Datatype, int, int, MPI_Comm);

void check_send(const Ring& ring, SendCall send) {
  int received = -1;
  MPI_Request request;
  MPI_Irecv(&received, 1, MPI_INT, ring.previous(), 5, ring.comm, &request);
  MPI_Barrier(ring.comm);  // MPI_Rsend wants every receive posted
  come_late(ring);
  EXPECT_EQ(send(&ring.rank, 1, MPI_INT, ring.next(), 5, ring.comm), MPI_SUCCESS);
  MPI_Status status;
  EXPECT_EQ(MPI_Wait(&request, &status), MPI_SUCCESS);
  EXPECT_EQ(received, ring.previous());
}

void check_large_send(const Ring& ring, SendCall send) {
  Ints out(300000, ring.rank);
  Ints in(out.size(), -1);
  MPI_Request request;
  MPI_Irecv(in.data(), static_cast<int>(in.size()), MPI_INT, ring.previous(), 6, ring.comm,
            &request);
  MPI_Barrier(ring.comm);
  come_late(ring);
  EXPECT_EQ(send(out.data(), static_cast<int>(out.size()), MPI_INT, ring.next(), 6, ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(in, Ints(out.size(), ring.previous()));
}

void check_any_send(const Ring& ring, SendCall send) {
  check_send(ring, send);
  check_large_send(ring, send);
}

void check_buffered_send(const Ring& ring) {
  std::vector<char> buffer(4 << 20);
  if (MPI_Buffer_attach(buffer.data(), static_cast<int>(buffer.size())) != MPI_SUCCESS) {
    FAIL() << "MPI_Buffer_attach";
  }
  check_any_send(ring, &MPI_Bsend);
  void* detached = nullptr;
  int bytes = 0;
  MPI_Buffer_detach(&detached, &bytes);
}

// Sends to the next rank, late on rank 0; the caller receives it somehow.
class OneMessage {
 public:
  explicit OneMessage(const Ring& ring) {
    come_late(ring);
    MPI_Isend(&ring.rank, 1, MPI_INT, ring.next(), 8, ring.comm, &request_);
  }
  ~OneMessage() { MPI_Wait(&request_, MPI_STATUS_IGNORE); }

 private:
  MPI_Request request_;
};

void expect_message(const Ring& ring, const MPI_Status& status, int value) {
  int count = 0;
  MPI_Get_count(&status, MPI_INT, &count);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(status.MPI_SOURCE, ring.previous());
  EXPECT_EQ(status.MPI_TAG, 8);
  EXPECT_EQ(value, ring.previous());
}

void check_recv(const Ring& ring) {
  int value = -1;
  MPI_Status status;
  {
    const OneMessage message(ring);
    EXPECT_EQ(MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, ring.comm, &status),
              MPI_SUCCESS);
    expect_message(ring, status, value);
  }
  MPI_Barrier(ring.comm);
  const OneMessage message(ring);
  EXPECT_EQ(MPI_Recv(&value, 1, MPI_INT, ring.previous(), 8, ring.comm, MPI_STATUS_IGNORE),
            MPI_SUCCESS);
}

void check_probe(const Ring& ring) {
  const OneMessage message(ring);
  MPI_Status status;
  EXPECT_EQ(MPI_Probe(MPI_ANY_SOURCE, 8, ring.comm, &status), MPI_SUCCESS);
  int value = -1;
  MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, 8, ring.comm, MPI_STATUS_IGNORE);
  expect_message(ring, status, value);
}

void check_mprobe(const Ring& ring) {
  const OneMessage one(ring);
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  EXPECT_EQ(MPI_Mprobe(ring.previous(), MPI_ANY_TAG, ring.comm, &message, &status), MPI_SUCCESS);
  int value = -1;
  EXPECT_EQ(MPI_Mrecv(&value, 1, MPI_INT, &message, &status), MPI_SUCCESS);
  EXPECT_EQ(message, MPI_MESSAGE_NULL);
  expect_message(ring, status, value);
}

void check_sendrecv(const Ring& ring) {
  come_late(ring);
  int value = -1;
  MPI_Status status;
  EXPECT_EQ(MPI_Sendrecv(&ring.rank, 1, MPI_INT, ring.next(), 8, &value, 1, MPI_INT,
                         ring.previous(), 8, ring.comm, &status),
            MPI_SUCCESS);
  expect_message(ring, status, value);
}

void check_sendrecv_replace(const Ring& ring) {
  come_late(ring);
  // Every second integer travels, the others stay.
  MPI_Datatype strided;
  MPI_Type_vector(50000, 1, 2, MPI_INT, &strided);
  MPI_Type_commit(&strided);
  Ints values(100000, ring.rank);
  MPI_Status status;
  EXPECT_EQ(MPI_Sendrecv_replace(values.data(), 1, strided, ring.next(), 9, ring.previous(), 9,
                                 ring.comm, &status),
            MPI_SUCCESS);
  MPI_Type_free(&strided);
  for (std::size_t i = 0; i < values.size(); i += 2) {
    ASSERT_EQ(values[i], ring.previous());
    ASSERT_EQ(values[i + 1], ring.rank);
  }
  EXPECT_EQ(status.MPI_SOURCE, ring.previous());
}

// ---- completion of requests ------------------------------------------------------------------

// Four receives from the previous rank, tags 0 to 3, and their sends, late on rank 0.
struct FourMessages {
  MPI_Request requests[4];
  int values[4] = {-1, -1, -1, -1};

  explicit FourMessages(const Ring& ring) {
    for (int tag = 0; tag < 4; ++tag) {
      MPI_Irecv(&values[tag], 1, MPI_INT, ring.previous(), tag, ring.comm, &requests[tag]);
    }
    come_late(ring);
    for (int tag = 0; tag < 4; ++tag) {
      const int value = 10 * ring.rank + tag;
      MPI_Send(&value, 1, MPI_INT, ring.next(), tag, ring.comm);
    }
  }
  void expect(const Ring& ring) const {
    for (int tag = 0; tag < 4; ++tag) {
      EXPECT_EQ(values[tag], 10 * ring.previous() + tag);
      EXPECT_EQ(requests[tag], MPI_REQUEST_NULL);
    }
  }
};

void check_wait(const Ring& ring) {
  FourMessages four(ring);
  for (int tag = 3; tag >= 0; --tag) {
    MPI_Status status;
    EXPECT_EQ(MPI_Wait(&four.requests[tag], &status), MPI_SUCCESS);
    EXPECT_EQ(status.MPI_TAG, tag);
  }
  four.expect(ring);
}

void check_waitall(const Ring& ring) {
  FourMessages four(ring);
  MPI_Status statuses[4];
  EXPECT_EQ(MPI_Waitall(4, four.requests, statuses), MPI_SUCCESS);
  for (int tag = 0; tag < 4; ++tag) EXPECT_EQ(statuses[tag].MPI_TAG, tag);
  four.expect(ring);
}

void check_waitany(const Ring& ring) {
  FourMessages four(ring);
  unsigned seen = 0;
  for (int round = 0; round < 4; ++round) {
    int index = -1;
    MPI_Status status;
    EXPECT_EQ(MPI_Waitany(4, four.requests, &index, &status), MPI_SUCCESS);
    ASSERT_GE(index, 0);
    EXPECT_EQ(status.MPI_TAG, index);
    seen |= 1u << index;
  }
  EXPECT_EQ(seen, 15u);
  int index = -1;
  EXPECT_EQ(MPI_Waitany(4, four.requests, &index, MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(index, MPI_UNDEFINED);
  four.expect(ring);
}

void check_waitsome(const Ring& ring) {
  FourMessages four(ring);
  int total = 0;
  while (total < 4) {
    int found = -1;
    int indices[4];
    MPI_Status statuses[4];
    EXPECT_EQ(MPI_Waitsome(4, four.requests, &found, indices, statuses), MPI_SUCCESS);
    ASSERT_GE(found, 1);
    for (int i = 0; i < found; ++i) EXPECT_EQ(statuses[i].MPI_TAG, indices[i]);
    total += found;
  }
  EXPECT_EQ(total, 4);
  int found = -1;
  int indices[4];
  EXPECT_EQ(MPI_Waitsome(4, four.requests, &found, indices, MPI_STATUSES_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(found, MPI_UNDEFINED);
  four.expect(ring);
}

// ---- collectives -----------------------------------------------------------------------------

Ints ramp(int count, int first) {
  Ints values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}
Ints same(const Ring& ring, int value) { return Ints(static_cast<std::size_t>(ring.size), value); }
Ints places(const Ring& ring) { return ramp(ring.size, 0); }

// Nobody leaves before the last has come. All ranks are on one machine, so they share its clock.
void check_barrier(const Ring& ring) {
  const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
  come_late(ring);
  auto entered = now();
  EXPECT_EQ(MPI_Barrier(ring.comm), MPI_SUCCESS);
  const auto left = now();
  MPI_Bcast(&entered, sizeof entered, MPI_BYTE, 0, ring.comm);
  EXPECT_GE(left, entered);
}

void check_bcast(const Ring& ring) {
  const int root = ring.size - 1;
  Ints values = ring.rank == root ? ramp(1000, 7) : Ints(1000, -1);
  EXPECT_EQ(MPI_Bcast(values.data(), 1000, MPI_INT, root, ring.comm), MPI_SUCCESS);
  EXPECT_EQ(values, ramp(1000, 7));
}

void check_gather(const Ring& ring) {
  Ints to = same(ring, -1);
  EXPECT_EQ(MPI_Gather(&ring.rank, 1, MPI_INT, to.data(), 1, MPI_INT, 0, ring.comm), MPI_SUCCESS);
  EXPECT_EQ(to, ring.rank == 0 ? places(ring) : same(ring, -1));
}

void check_gatherv(const Ring& ring) {
  Ints to = same(ring, -1);
  EXPECT_EQ(MPI_Gatherv(&ring.rank, 1, MPI_INT, to.data(), same(ring, 1).data(),
                        places(ring).data(), MPI_INT, 0, ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, ring.rank == 0 ? places(ring) : same(ring, -1));
}

void check_scatter(const Ring& ring) {
  int value = -1;
  const Ints from = ramp(ring.size, 20);
  EXPECT_EQ(MPI_Scatter(from.data(), 1, MPI_INT, &value, 1, MPI_INT, 0, ring.comm), MPI_SUCCESS);
  EXPECT_EQ(value, 20 + ring.rank);
}

void check_scatterv(const Ring& ring) {
  int value = -1;
  const Ints from = ramp(ring.size, 20);
  EXPECT_EQ(MPI_Scatterv(from.data(), same(ring, 1).data(), places(ring).data(), MPI_INT, &value,
                         1, MPI_INT, 0, ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(value, 20 + ring.rank);
}

void check_allgather(const Ring& ring) {
  Ints to = same(ring, -1);
  EXPECT_EQ(MPI_Allgather(&ring.rank, 1, MPI_INT, to.data(), 1, MPI_INT, ring.comm), MPI_SUCCESS);
  EXPECT_EQ(to, places(ring));
}

void check_allgatherv(const Ring& ring) {
  Ints to = same(ring, -1);
  EXPECT_EQ(MPI_Allgatherv(&ring.rank, 1, MPI_INT, to.data(), same(ring, 1).data(),
                           places(ring).data(), MPI_INT, ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, places(ring));
}

// Rank r sends 100 r + s to rank s.
Ints for_each_rank(const Ring& ring) { return ramp(ring.size, 100 * ring.rank); }
Ints from_each_rank(const Ring& ring) {
  Ints values;
  for (int other = 0; other < ring.size; ++other) values.push_back(100 * other + ring.rank);
  return values;
}

void check_alltoall(const Ring& ring) {
  Ints to = same(ring, -1);
  EXPECT_EQ(MPI_Alltoall(for_each_rank(ring).data(), 1, MPI_INT, to.data(), 1, MPI_INT, ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, from_each_rank(ring));
}

void check_alltoallv(const Ring& ring) {
  Ints to = same(ring, -1);
  const Ints from = for_each_rank(ring);
  EXPECT_EQ(MPI_Alltoallv(from.data(), same(ring, 1).data(), places(ring).data(), MPI_INT,
                          to.data(), same(ring, 1).data(), places(ring).data(), MPI_INT, ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, from_each_rank(ring));
}

void check_alltoallw(const Ring& ring) {
  Ints to = same(ring, -1);
  const Ints from = for_each_rank(ring);
  Ints bytes = places(ring);
  for (int& place : bytes) place *= static_cast<int>(sizeof(int));
  const std::vector<MPI_Datatype> types(static_cast<std::size_t>(ring.size), MPI_INT);
  EXPECT_EQ(MPI_Alltoallw(from.data(), same(ring, 1).data(), bytes.data(), types.data(), to.data(),
                          same(ring, 1).data(), bytes.data(), types.data(), ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, from_each_rank(ring));
}

int sum_below(int count) { return count * (count - 1) / 2; }

void check_reduce(const Ring& ring) {
  int sum = -1;
  EXPECT_EQ(MPI_Reduce(&ring.rank, &sum, 1, MPI_INT, MPI_SUM, 0, ring.comm), MPI_SUCCESS);
  EXPECT_EQ(sum, ring.rank == 0 ? sum_below(ring.size) : -1);
}

void check_allreduce(const Ring& ring) {
  int sum = ring.rank;
  EXPECT_EQ(MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, ring.comm), MPI_SUCCESS);
  EXPECT_EQ(sum, sum_below(ring.size));
}

void check_reduce_scatter_block(const Ring& ring) {
  int sum = -1;
  EXPECT_EQ(MPI_Reduce_scatter_block(for_each_rank(ring).data(), &sum, 1, MPI_INT, MPI_SUM,
                                     ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(sum, 100 * sum_below(ring.size) + ring.size * ring.rank);
}

void check_reduce_scatter(const Ring& ring) {
  int sum = -1;
  EXPECT_EQ(MPI_Reduce_scatter(for_each_rank(ring).data(), &sum, same(ring, 1).data(), MPI_INT,
                               MPI_SUM, ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(sum, 100 * sum_below(ring.size) + ring.size * ring.rank);
}

void check_scan(const Ring& ring) {
  int sum = -1;
  EXPECT_EQ(MPI_Scan(&ring.rank, &sum, 1, MPI_INT, MPI_SUM, ring.comm), MPI_SUCCESS);
  EXPECT_EQ(sum, sum_below(ring.rank + 1));
}

void check_exscan(const Ring& ring) {
  int sum = -1;
  EXPECT_EQ(MPI_Exscan(&ring.rank, &sum, 1, MPI_INT, MPI_SUM, ring.comm), MPI_SUCCESS);
  // Undefined on rank 0.
  EXPECT_EQ(ring.rank > 0 ? sum : 0, sum_below(ring.rank));
}

// A directed ring: each rank has one source and one destination.
struct Neighbors {
  MPI_Comm comm;
  explicit Neighbors(const Ring& ring) {
    const int source = ring.previous();
    const int destination = ring.next();
    MPI_Dist_graph_create_adjacent(ring.comm, 1, &source, MPI_UNWEIGHTED, 1, &destination,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    come_late(ring);
  }
  ~Neighbors() { MPI_Comm_free(&comm); }
};

void check_neighbor_allgather(const Ring& ring) {
  const Neighbors neighbors(ring);
  int to = -1;
  EXPECT_EQ(MPI_Neighbor_allgather(&ring.rank, 1, MPI_INT, &to, 1, MPI_INT, neighbors.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, ring.previous());
}

void check_neighbor_allgatherv(const Ring& ring) {
  const Neighbors neighbors(ring);
  int to = -1;
  const int one = 1;
  const int zero = 0;
  EXPECT_EQ(MPI_Neighbor_allgatherv(&ring.rank, 1, MPI_INT, &to, &one, &zero, MPI_INT,
                                    neighbors.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, ring.previous());
}

void check_neighbor_alltoall(const Ring& ring) {
  const Neighbors neighbors(ring);
  int to = -1;
  EXPECT_EQ(MPI_Neighbor_alltoall(&ring.rank, 1, MPI_INT, &to, 1, MPI_INT, neighbors.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, ring.previous());
}

void check_neighbor_alltoallv(const Ring& ring) {
  const Neighbors neighbors(ring);
  int to = -1;
  const int one = 1;
  const int zero = 0;
  EXPECT_EQ(MPI_Neighbor_alltoallv(&ring.rank, &one, &zero, MPI_INT, &to, &one, &zero, MPI_INT,
                                   neighbors.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, ring.previous());
}

void check_neighbor_alltoallw(const Ring& ring) {
  const Neighbors neighbors(ring);
  int to = -1;
  const int one = 1;
  const MPI_Aint zero = 0;
  const MPI_Datatype type = MPI_INT;
  EXPECT_EQ(MPI_Neighbor_alltoallw(&ring.rank, &one, &zero, &type, &to, &one, &zero, &type,
                                   neighbors.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, ring.previous());
}

void check_comm_dup(const Ring& ring) {
  MPI_Comm copy = MPI_COMM_NULL;
  EXPECT_EQ(MPI_Comm_dup(ring.comm, &copy), MPI_SUCCESS);
  int relation = MPI_UNEQUAL;
  MPI_Comm_compare(ring.comm, copy, &relation);
  EXPECT_EQ(relation, MPI_CONGRUENT);
  EXPECT_EQ(MPI_Barrier(copy), MPI_SUCCESS);
  MPI_Comm_free(&copy);
}

// ---- all of them -----------------------------------------------------------------------------

using Check = std::function<void(const Ring&)>;

const std::map<std::string, Check>& checks() {
  const auto sending = [](SendCall send) {
    return [send](const Ring& ring) { check_any_send(ring, send); };
  };
  static const std::map<std::string, Check> all{
      {"Send", sending(&MPI_Send)},
      {"Ssend", sending(&MPI_Ssend)},
      {"Rsend", sending(&MPI_Rsend)},
      {"Bsend", check_buffered_send},
      {"Recv", check_recv},
      {"Sendrecv", check_sendrecv},
      {"Sendrecv_replace", check_sendrecv_replace},
      {"Probe", check_probe},
      {"Mprobe", check_mprobe},
      {"Mrecv", check_mprobe},
      {"Wait", check_wait},
      {"Waitall", check_waitall},
      {"Waitany", check_waitany},
      {"Waitsome", check_waitsome},
      {"Barrier", check_barrier},
      {"Bcast", check_bcast},
      {"Gather", check_gather},
      {"Gatherv", check_gatherv},
      {"Scatter", check_scatter},
      {"Scatterv", check_scatterv},
      {"Allgather", check_allgather},
      {"Allgatherv", check_allgatherv},
      {"Alltoall", check_alltoall},
      {"Alltoallv", check_alltoallv},
      {"Alltoallw", check_alltoallw},
      {"Reduce", check_reduce},
      {"Allreduce", check_allreduce},
      {"Reduce_scatter_block", check_reduce_scatter_block},
      {"Reduce_scatter", check_reduce_scatter},
      {"Scan", check_scan},
      {"Exscan", check_exscan},
      {"Neighbor_allgather", check_neighbor_allgather},
      {"Neighbor_allgatherv", check_neighbor_allgatherv},
      {"Neighbor_alltoall", check_neighbor_alltoall},
      {"Neighbor_alltoallv", check_neighbor_alltoallv},
      {"Neighbor_alltoallw", check_neighbor_alltoallw},
      {"Comm_dup", check_comm_dup},
  };
  return all;
}

const std::vector<std::string> table{
#define IMBREX_SEND(name, twin) #name,
#define IMBREX_CALL(name, twin, parameters, arguments) #name,
#define IMBREX_COLLECTIVE(name, twin, parameters, arguments) #name,
#include "calls.def"
};

class Calls : public testing::TestWithParam<std::string> {
 protected:
  void check() const {
    ASSERT_TRUE(checks().contains(GetParam())) << "no test for MPI_" << GetParam();
    come_late(ring_);
    checks().at(GetParam())(ring_);
  }

 private:
  const Ring ring_;
};

TEST_P(Calls, in_a_task_that_is_alone) {
  task("alone").spawn([this] { check(); }).get();
}
TEST_P(Calls, in_a_task_that_suspends) {
  const Bustle bustle;
  task("suspends").spawn([this] { check(); }).get();
}
TEST_P(Calls, in_main) { check(); }
TEST_P(Calls, in_a_thread_that_imbrex_does_not_know) {
  on_unknown_thread([this] { check(); });
}

INSTANTIATE_TEST_SUITE_P(All, Calls, testing::ValuesIn(table),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace imbrex::test
