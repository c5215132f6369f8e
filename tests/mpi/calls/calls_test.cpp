// SPDX-License-Identifier: BSD-3-Clause
// Methodology: every call of calls.def that a non-blocking one carries out, and the persistent
// collectives, are made by four kinds of callers: a task that may poll in place, a task that
// suspends since another is always ready, main, and a thread that imbrex does not know. In each,
// one rank comes late, so that the others wait. Results are compared with what the standard says.
#include <functional>
#include <map>
#include <numeric>
#include <string>

#include "either_count.hpp"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

using Ints = std::vector<int>;

// The one rank that comes late: what the others wait for has not happened when they ask.
void come_late(const Ring& ring) {
  if (ring.rank == 0) sleep_ms(2);
}

// ---- point to point: every rank sends to the next --------------------------------------------

template <class Count>
using SendCall = int (*)(const void*, Count, MPI_Datatype, int, int, MPI_Comm);

template <class Count>
void check_send(const Ring& ring, SendCall<Count> send) {
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

template <class Count>
void check_large_send(const Ring& ring, SendCall<Count> send) {
  Ints out(300000, ring.rank);
  Ints in(out.size(), -1);
  MPI_Request request;
  MPI_Irecv(in.data(), static_cast<int>(in.size()), MPI_INT, ring.previous(), 6, ring.comm,
            &request);
  MPI_Barrier(ring.comm);
  come_late(ring);
  EXPECT_EQ(send(out.data(), static_cast<Count>(out.size()), MPI_INT, ring.next(), 6, ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
  EXPECT_EQ(in, Ints(out.size(), ring.previous()));
}

template <class Count>
void check_any_send(const Ring& ring, SendCall<Count> send) {
  check_send(ring, send);
  check_large_send(ring, send);
}

template <class Count>
void check_buffered_send(const Ring& ring) {
  std::vector<char> buffer(4 << 20);
  if (MPI_Buffer_attach(buffer.data(), static_cast<int>(buffer.size())) != MPI_SUCCESS) {
    FAIL() << "MPI_Buffer_attach";
  }
  check_any_send<Count>(ring, &either::Bsend);
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

template <class Count>
void check_recv(const Ring& ring) {
  int value = -1;
  MPI_Status status;
  {
    const OneMessage message(ring);
    EXPECT_EQ(either::Recv(&value, Count{1}, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, ring.comm,
                           &status),
              MPI_SUCCESS);
    expect_message(ring, status, value);
  }
  MPI_Barrier(ring.comm);
  const OneMessage message(ring);
  EXPECT_EQ(either::Recv(&value, Count{1}, MPI_INT, ring.previous(), 8, ring.comm,
                         MPI_STATUS_IGNORE),
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

template <class Count>
void check_mprobe(const Ring& ring) {
  const OneMessage one(ring);
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  EXPECT_EQ(MPI_Mprobe(ring.previous(), MPI_ANY_TAG, ring.comm, &message, &status), MPI_SUCCESS);
  int value = -1;
  EXPECT_EQ(either::Mrecv(&value, Count{1}, MPI_INT, &message, &status), MPI_SUCCESS);
  EXPECT_EQ(message, MPI_MESSAGE_NULL);
  expect_message(ring, status, value);
}

template <class Count>
void check_sendrecv(const Ring& ring) {
  come_late(ring);
  int value = -1;
  MPI_Status status;
  EXPECT_EQ(either::Sendrecv(&ring.rank, Count{1}, MPI_INT, ring.next(), 8, &value, Count{1},
                             MPI_INT, ring.previous(), 8, ring.comm, &status),
            MPI_SUCCESS);
  expect_message(ring, status, value);
}

template <class Count>
void check_sendrecv_replace(const Ring& ring) {
  come_late(ring);
  // Every second integer travels, the others stay.
  MPI_Datatype strided;
  MPI_Type_vector(50000, 1, 2, MPI_INT, &strided);
  MPI_Type_commit(&strided);
  Ints values(100000, ring.rank);
  MPI_Status status;
  EXPECT_EQ(either::Sendrecv_replace(values.data(), Count{1}, strided, ring.next(), 9,
                                     ring.previous(), 9, ring.comm, &status),
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
template <class Value = int>
std::vector<Value> same(const Ring& ring, Value value) {
  return std::vector<Value>(static_cast<std::size_t>(ring.size), value);
}
template <class Value = int>
std::vector<Value> places(const Ring& ring) {
  const Ints values = ramp(ring.size, 0);
  return {values.begin(), values.end()};
}

// No rank leaves before the last has come. All ranks are on one machine, so they share its clock.
void check_barrier(const Ring& ring) {
  const auto now = [] { return std::chrono::steady_clock::now().time_since_epoch().count(); };
  come_late(ring);
  auto entered = now();
  EXPECT_EQ(MPI_Barrier(ring.comm), MPI_SUCCESS);
  const auto left = now();
  MPI_Bcast(&entered, sizeof entered, MPI_BYTE, 0, ring.comm);
  EXPECT_GE(left, entered);
}

template <class Count>
void check_bcast(const Ring& ring) {
  const int root = ring.size - 1;
  Ints values = ring.rank == root ? ramp(1000, 7) : Ints(1000, -1);
  EXPECT_EQ(either::Bcast(values.data(), Count{1000}, MPI_INT, root, ring.comm), MPI_SUCCESS);
  EXPECT_EQ(values, ramp(1000, 7));
}

template <class Count>
void check_gather(const Ring& ring) {
  Ints to = same(ring, -1);
  EXPECT_EQ(either::Gather(&ring.rank, Count{1}, MPI_INT, to.data(), Count{1}, MPI_INT, 0,
                           ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, ring.rank == 0 ? places(ring) : same(ring, -1));
}

template <class Count>
void check_gatherv(const Ring& ring) {
  Ints to = same(ring, -1);
  EXPECT_EQ(either::Gatherv(&ring.rank, Count{1}, MPI_INT, to.data(), same<Count>(ring, 1).data(),
                        places<PlaceOf<Count>>(ring).data(), MPI_INT, 0, ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, ring.rank == 0 ? places(ring) : same(ring, -1));
}

template <class Count>
void check_scatter(const Ring& ring) {
  int value = -1;
  const Ints from = ramp(ring.size, 20);
  EXPECT_EQ(either::Scatter(from.data(), Count{1}, MPI_INT, &value, Count{1}, MPI_INT, 0,
                            ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(value, 20 + ring.rank);
}

template <class Count>
void check_scatterv(const Ring& ring) {
  int value = -1;
  const Ints from = ramp(ring.size, 20);
  EXPECT_EQ(either::Scatterv(from.data(), same<Count>(ring, 1).data(),
                             places<PlaceOf<Count>>(ring).data(), MPI_INT, &value, Count{1},
                             MPI_INT, 0, ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(value, 20 + ring.rank);
}

template <class Count>
void check_allgather(const Ring& ring) {
  Ints to = same(ring, -1);
  EXPECT_EQ(either::Allgather(&ring.rank, Count{1}, MPI_INT, to.data(), Count{1}, MPI_INT,
                              ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, places(ring));
}

template <class Count>
void check_allgatherv(const Ring& ring) {
  Ints to = same(ring, -1);
  EXPECT_EQ(either::Allgatherv(&ring.rank, Count{1}, MPI_INT, to.data(),
                               same<Count>(ring, 1).data(), places<PlaceOf<Count>>(ring).data(),
                               MPI_INT, ring.comm),
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

template <class Count>
void check_alltoall(const Ring& ring) {
  Ints to = same(ring, -1);
  EXPECT_EQ(either::Alltoall(for_each_rank(ring).data(), Count{1}, MPI_INT, to.data(), Count{1},
                             MPI_INT, ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, from_each_rank(ring));
}

template <class Count>
void check_alltoallv(const Ring& ring) {
  Ints to = same(ring, -1);
  const Ints from = for_each_rank(ring);
  EXPECT_EQ(either::Alltoallv(from.data(), same<Count>(ring, 1).data(),
                              places<PlaceOf<Count>>(ring).data(), MPI_INT, to.data(),
                              same<Count>(ring, 1).data(), places<PlaceOf<Count>>(ring).data(),
                              MPI_INT, ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, from_each_rank(ring));
}

template <class Count>
void check_alltoallw(const Ring& ring) {
  Ints to = same(ring, -1);
  const Ints from = for_each_rank(ring);
  auto bytes = places<PlaceOf<Count>>(ring);
  for (auto& place : bytes) place *= static_cast<int>(sizeof(int));
  const std::vector<MPI_Datatype> types(static_cast<std::size_t>(ring.size), MPI_INT);
  EXPECT_EQ(either::Alltoallw(from.data(), same<Count>(ring, 1).data(), bytes.data(), types.data(),
                              to.data(), same<Count>(ring, 1).data(), bytes.data(), types.data(),
                              ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, from_each_rank(ring));
}

int sum_below(int count) { return count * (count - 1) / 2; }

template <class Count>
void check_reduce(const Ring& ring) {
  int sum = -1;
  EXPECT_EQ(either::Reduce(&ring.rank, &sum, Count{1}, MPI_INT, MPI_SUM, 0, ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(sum, ring.rank == 0 ? sum_below(ring.size) : -1);
}

template <class Count>
void check_allreduce(const Ring& ring) {
  int sum = -1;
  EXPECT_EQ(either::Allreduce(&ring.rank, &sum, Count{1}, MPI_INT, MPI_SUM, ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(sum, sum_below(ring.size));
}

template <class Count>
void check_reduce_scatter_block(const Ring& ring) {
  int sum = -1;
  EXPECT_EQ(either::Reduce_scatter_block(for_each_rank(ring).data(), &sum, Count{1}, MPI_INT,
                                         MPI_SUM, ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(sum, 100 * sum_below(ring.size) + ring.size * ring.rank);
}

template <class Count>
void check_reduce_scatter(const Ring& ring) {
  int sum = -1;
  EXPECT_EQ(either::Reduce_scatter(for_each_rank(ring).data(), &sum, same<Count>(ring, 1).data(),
                                   MPI_INT, MPI_SUM, ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(sum, 100 * sum_below(ring.size) + ring.size * ring.rank);
}

template <class Count>
void check_scan(const Ring& ring) {
  int sum = -1;
  EXPECT_EQ(either::Scan(&ring.rank, &sum, Count{1}, MPI_INT, MPI_SUM, ring.comm), MPI_SUCCESS);
  EXPECT_EQ(sum, sum_below(ring.rank + 1));
}

template <class Count>
void check_exscan(const Ring& ring) {
  int sum = -1;
  EXPECT_EQ(either::Exscan(&ring.rank, &sum, Count{1}, MPI_INT, MPI_SUM, ring.comm), MPI_SUCCESS);
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

template <class Count>
void check_neighbor_allgather(const Ring& ring) {
  const Neighbors neighbors(ring);
  int to = -1;
  EXPECT_EQ(either::Neighbor_allgather(&ring.rank, Count{1}, MPI_INT, &to, Count{1}, MPI_INT,
                                       neighbors.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, ring.previous());
}

template <class Count>
void check_neighbor_allgatherv(const Ring& ring) {
  const Neighbors neighbors(ring);
  int to = -1;
  const Count one = 1;
  const PlaceOf<Count> zero = 0;
  EXPECT_EQ(either::Neighbor_allgatherv(&ring.rank, Count{1}, MPI_INT, &to, &one, &zero, MPI_INT,
                                    neighbors.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, ring.previous());
}

template <class Count>
void check_neighbor_alltoall(const Ring& ring) {
  const Neighbors neighbors(ring);
  int to = -1;
  EXPECT_EQ(either::Neighbor_alltoall(&ring.rank, Count{1}, MPI_INT, &to, Count{1}, MPI_INT,
                                      neighbors.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, ring.previous());
}

template <class Count>
void check_neighbor_alltoallv(const Ring& ring) {
  const Neighbors neighbors(ring);
  int to = -1;
  const Count one = 1;
  const PlaceOf<Count> zero = 0;
  EXPECT_EQ(either::Neighbor_alltoallv(&ring.rank, &one, &zero, MPI_INT, &to, &one, &zero, MPI_INT,
                                   neighbors.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, ring.previous());
}

template <class Count>
void check_neighbor_alltoallw(const Ring& ring) {
  const Neighbors neighbors(ring);
  int to = -1;
  const Count one = 1;
  const MPI_Aint zero = 0;
  const MPI_Datatype type = MPI_INT;
  EXPECT_EQ(either::Neighbor_alltoallw(&ring.rank, &one, &zero, &type, &to, &one, &zero, &type,
                                   neighbors.comm),
            MPI_SUCCESS);
  EXPECT_EQ(to, ring.previous());
}

// A periodic grid: with two ranks the neighbour on one side is that on the other too, and with one
// it is the rank itself.
template <class Count>
void check_sides_of_a_grid(const Ring& ring) {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  if (level != MPI_THREAD_MULTIPLE) GTEST_SKIP() << "there the call is refused: it may block";
  const int periodic = 1;
  MPI_Comm grid;
  MPI_Cart_create(ring.comm, 1, &ring.size, &periodic, 0, &grid);
  come_late(ring);
  const int from[] = {2 * ring.rank, 2 * ring.rank + 1};  // for the one below, the one above
  const std::vector<int> right{2 * ring.previous() + 1, 2 * ring.next()};
  std::vector<int> to(2, -1);
  EXPECT_EQ(either::Neighbor_alltoall(from, Count{1}, MPI_INT, to.data(), Count{1}, MPI_INT, grid),
            MPI_SUCCESS);
  EXPECT_EQ(to, right);
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000
  MPI_Comm_free(&grid);
  return;  // MPICH 4.0's own v and w mix up the sides
#endif
  const Count ones[] = {1, 1};
  const PlaceOf<Count> places[] = {0, 1};
  to = {-1, -1};
  EXPECT_EQ(either::Neighbor_alltoallv(from, ones, places, MPI_INT, to.data(), ones, places,
                                       MPI_INT, grid),
            MPI_SUCCESS);
  EXPECT_EQ(to, right);
  const MPI_Aint bytes[] = {0, sizeof(int)};
  const MPI_Datatype types[] = {MPI_INT, MPI_INT};
  to = {-1, -1};
  EXPECT_EQ(either::Neighbor_alltoallw(from, ones, bytes, types, to.data(), ones, bytes, types,
                                       grid),
            MPI_SUCCESS);
  EXPECT_EQ(to, right);
  MPI_Comm_free(&grid);
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

void check_comm_dup_with_info(const Ring& ring) {
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Comm copy = MPI_COMM_NULL;
  EXPECT_EQ(MPI_Comm_dup_with_info(ring.comm, info, &copy), MPI_SUCCESS);
  MPI_Info_free(&info);
  int sum = -1;
  EXPECT_EQ(MPI_Allreduce(&ring.rank, &sum, 1, MPI_INT, MPI_SUM, copy), MPI_SUCCESS);
  EXPECT_EQ(sum, sum_below(ring.size));
  MPI_Comm_free(&copy);
}

// ---- all of them -----------------------------------------------------------------------------

using Check = std::function<void(const Ring&)>;

template <class Count>
std::map<std::string, Check> counted(const std::string& suffix) {
  const auto sending = [](SendCall<Count> send) {
    return [send](const Ring& ring) { check_any_send<Count>(ring, send); };
  };
  std::map<std::string, Check> checks{
      {"Send", sending(&either::Send)},
      {"Ssend", sending(&either::Ssend)},
      {"Rsend", sending(&either::Rsend)},
      {"Bsend", check_buffered_send<Count>},
      {"Mrecv", check_mprobe<Count>},
      {"Recv", check_recv<Count>},
      {"Sendrecv", check_sendrecv<Count>},
      {"Sendrecv_replace", check_sendrecv_replace<Count>},
      {"Bcast", check_bcast<Count>},
      {"Gather", check_gather<Count>},
      {"Gatherv", check_gatherv<Count>},
      {"Scatter", check_scatter<Count>},
      {"Scatterv", check_scatterv<Count>},
      {"Allgather", check_allgather<Count>},
      {"Allgatherv", check_allgatherv<Count>},
      {"Alltoall", check_alltoall<Count>},
      {"Alltoallv", check_alltoallv<Count>},
      {"Alltoallw", check_alltoallw<Count>},
      {"Reduce", check_reduce<Count>},
      {"Allreduce", check_allreduce<Count>},
      {"Reduce_scatter_block", check_reduce_scatter_block<Count>},
      {"Reduce_scatter", check_reduce_scatter<Count>},
      {"Scan", check_scan<Count>},
      {"Exscan", check_exscan<Count>},
      {"Neighbor_allgather", check_neighbor_allgather<Count>},
      {"Neighbor_allgatherv", check_neighbor_allgatherv<Count>},
      {"Neighbor_alltoall", check_neighbor_alltoall<Count>},
      {"Neighbor_alltoallv", check_neighbor_alltoallv<Count>},
      {"Neighbor_alltoallw", check_neighbor_alltoallw<Count>},
      {"Neighbor_alltoall_in_a_grid", check_sides_of_a_grid<Count>},
  };
  std::map<std::string, Check> named;
  for (auto& [name, check] : checks) named.emplace(name + suffix, check);
#if IMBREX_MPI_4
  for (const char* name : {"Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather",
                           "Allgatherv", "Alltoall", "Alltoallv", "Alltoallw", "Reduce",
                           "Reduce_scatter_block", "Reduce_scatter", "Scan", "Exscan",
                           "Neighbor_allgather", "Neighbor_allgatherv", "Neighbor_alltoall",
                           "Neighbor_alltoallv", "Neighbor_alltoallw"}) {
    named.emplace(std::string(name) + "_init" + suffix,
                  [check = checks.at(name)](const Ring& ring) {
      persistently = true;
      check(ring);
      persistently = false;
    });
  }
#endif
  return named;
}

const std::map<std::string, Check>& checks() {
  static const std::map<std::string, Check> all = [] {
    std::map<std::string, Check> both{
        {"Probe", check_probe},
        {"Mprobe", check_mprobe<int>},
        {"Wait", check_wait},
        {"Waitall", check_waitall},
        {"Waitany", check_waitany},
        {"Waitsome", check_waitsome},
        {"Barrier", check_barrier},
        {"Comm_dup", check_comm_dup},
        {"Comm_dup_with_info", check_comm_dup_with_info},
    };
    both.merge(counted<int>(""));
#if MPI_VERSION >= 4
    both.merge(counted<MPI_Count>("_c"));
#endif
    return both;
  }();
  return all;
}

class Calls : public testing::TestWithParam<std::string> {
 protected:
  void check() const {
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

std::vector<std::string> names() {
  std::vector<std::string> names;
  for (const auto& [name, check] : checks()) names.push_back(name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(All, Calls, testing::ValuesIn(names()),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace imbrex::test
