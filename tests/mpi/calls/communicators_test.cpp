// SPDX-License-Identifier: BSD-3-Clause
// Calls that make communicators: they have no non-blocking twin, so a task makes them on a spare
// thread. Methodology: each communicator is used for a sum, whose value tells who is in it.
#include <string>

#include "every_caller.hpp"

namespace imbrex::test {
namespace {

class Communicators : public EveryCaller {
 protected:
  // The sum of the members' ranks in the ring; frees the communicator.
  [[nodiscard]] int sum_and_free(MPI_Comm comm) const {
    int sum = -1;
    EXPECT_EQ(MPI_Allreduce(&ring_.rank, &sum, 1, MPI_INT, MPI_SUM, comm), MPI_SUCCESS);
    MPI_Comm_free(&comm);
    return sum;
  }
  [[nodiscard]] int sum_of_all() const { return ring_.size * (ring_.size - 1) / 2; }
  [[nodiscard]] int sum_of_my_parity() const {
    int sum = 0;
    for (int rank = ring_.rank % 2; rank < ring_.size; rank += 2) sum += rank;
    return sum;
  }
};

TEST_P(Communicators, split) {
  call([this] {
    come_late();
    MPI_Comm half;
    EXPECT_EQ(MPI_Comm_split(ring_.comm, ring_.rank % 2, 0, &half), MPI_SUCCESS);
    EXPECT_EQ(sum_and_free(half), sum_of_my_parity());
  });
}

TEST_P(Communicators, split_by_type) {
  call([this] {
    come_late();
    MPI_Comm node;
    EXPECT_EQ(MPI_Comm_split_type(ring_.comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node),
              MPI_SUCCESS);
    EXPECT_EQ(sum_and_free(node), sum_of_all());
  });
}

TEST_P(Communicators, create_from_groups) {
  call([this] {
    come_late();
    MPI_Group all;
    MPI_Comm_group(ring_.comm, &all);
    MPI_Comm first;
    EXPECT_EQ(MPI_Comm_create(ring_.comm, all, &first), MPI_SUCCESS);
    EXPECT_EQ(sum_and_free(first), sum_of_all());
    MPI_Comm second;
    EXPECT_EQ(MPI_Comm_create_group(ring_.comm, all, 3, &second), MPI_SUCCESS);
    EXPECT_EQ(sum_and_free(second), sum_of_all());
    MPI_Group_free(&all);
  });
}

TEST_P(Communicators, intercommunicators) {
  if (ring_.size == 1) GTEST_SKIP() << "needs two groups";
  call([this] {
    come_late();
    MPI_Comm half;
    EXPECT_EQ(MPI_Comm_split(ring_.comm, ring_.rank % 2, 0, &half), MPI_SUCCESS);
    MPI_Comm both;
    EXPECT_EQ(MPI_Intercomm_create(half, 0, ring_.comm, 1 - ring_.rank % 2, 9, &both),
              MPI_SUCCESS);
    int others = 0;
    MPI_Comm_remote_size(both, &others);
    EXPECT_EQ(others, ring_.rank % 2 == 0 ? ring_.size / 2 : (ring_.size + 1) / 2);
    MPI_Comm merged;
    EXPECT_EQ(MPI_Intercomm_merge(both, ring_.rank % 2, &merged), MPI_SUCCESS);
    EXPECT_EQ(sum_and_free(merged), sum_of_all());
    EXPECT_EQ(MPI_Comm_disconnect(&both), MPI_SUCCESS);
    EXPECT_EQ(both, MPI_COMM_NULL);
    MPI_Comm_free(&half);
  });
}

// MPI may send messages of its own on the communicator for these, with the tag of the call.
TEST_P(Communicators, making_them_does_not_disturb_open_receives) {
  if (ring_.size == 1) GTEST_SKIP() << "needs two groups";
  int value = -1;
  auto received = task("receive").spawn([&] {
    MPI_Recv(&value, 1, MPI_INT, ring_.previous(), 77, ring_.comm, MPI_STATUS_IGNORE);
  });
  call([this] {
    MPI_Group all;
    MPI_Comm_group(ring_.comm, &all);
    MPI_Comm copy;
    EXPECT_EQ(MPI_Comm_create_group(ring_.comm, all, 3, &copy), MPI_SUCCESS);
    MPI_Group_free(&all);
    EXPECT_EQ(sum_and_free(copy), sum_of_all());
    MPI_Comm half;
    MPI_Comm_split(ring_.comm, ring_.rank % 2, 0, &half);
    come_late();
    MPI_Comm both;
    EXPECT_EQ(MPI_Intercomm_create(half, 0, ring_.comm, 1 - ring_.rank % 2, 9, &both),
              MPI_SUCCESS);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
  });
  MPI_Send(&ring_.rank, 1, MPI_INT, ring_.next(), 77, ring_.comm);
  received.get();
  EXPECT_EQ(value, ring_.previous());
}

// Its tag is none of those of messages.
TEST_P(Communicators, a_receive_of_any_tag_gets_no_message_of_create_group) {
#ifdef OPEN_MPI
  GTEST_SKIP() << "Open MPI itself gives the receive a message of its own";
#endif
  call([this] {
    int value = -1;
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, ring_.comm, &request);
    MPI_Barrier(ring_.comm);
    MPI_Group all;
    MPI_Comm_group(ring_.comm, &all);
    MPI_Comm copy;
    EXPECT_EQ(MPI_Comm_create_group(ring_.comm, all, 3, &copy), MPI_SUCCESS);
    MPI_Group_free(&all);
    EXPECT_EQ(sum_and_free(copy), sum_of_all());
    const int mine = 100 + ring_.rank;
    MPI_Send(&mine, 1, MPI_INT, ring_.next(), 77, ring_.comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(value, 100 + ring_.previous());
  });
}

TEST_P(Communicators, cartesian_grids) {
  call([this] {
    come_late();
    const int sizes[2] = {1, ring_.size};
    const int periods[2] = {0, 1};
    MPI_Comm grid;
    EXPECT_EQ(MPI_Cart_create(ring_.comm, 2, sizes, periods, 0, &grid), MPI_SUCCESS);
    const int remain[2] = {0, 1};
    MPI_Comm row;
    EXPECT_EQ(MPI_Cart_sub(grid, remain, &row), MPI_SUCCESS);
    EXPECT_EQ(sum_and_free(row), sum_of_all());
    EXPECT_EQ(sum_and_free(grid), sum_of_all());
  });
}

TEST_P(Communicators, graphs) {
  call([this] {
    come_late();
    // A directed ring, said in three ways.
    std::vector<int> ends;
    std::vector<int> edges;
    for (int rank = 0; rank < ring_.size; ++rank) {
      ends.push_back(rank + 1);
      edges.push_back((rank + 1) % ring_.size);
    }
    MPI_Comm graph;
    EXPECT_EQ(MPI_Graph_create(ring_.comm, ring_.size, ends.data(), edges.data(), 0, &graph),
              MPI_SUCCESS);
    EXPECT_EQ(sum_and_free(graph), sum_of_all());

    const int next = ring_.next();
    const int previous = ring_.previous();
    const int one = 1;
    for (const bool adjacent : {false, true}) {
      MPI_Comm comm;
      const int code =
          adjacent ? MPI_Dist_graph_create_adjacent(ring_.comm, 1, &previous, MPI_UNWEIGHTED, 1,
                                                    &next, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm)
                   : MPI_Dist_graph_create(ring_.comm, 1, &ring_.rank, &one, &next, MPI_UNWEIGHTED,
                                           MPI_INFO_NULL, 0, &comm);
      EXPECT_EQ(code, MPI_SUCCESS);
      int from = -1;
      EXPECT_EQ(MPI_Neighbor_alltoall(&ring_.rank, 1, MPI_INT, &from, 1, MPI_INT, comm),
                MPI_SUCCESS);
      EXPECT_EQ(from, previous);
      MPI_Comm_free(&comm);
    }
  });
}

EVERY_CALLER(Communicators);

}  // namespace
}  // namespace imbrex::test
