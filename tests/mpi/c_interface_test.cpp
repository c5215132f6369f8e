// SPDX-License-Identifier: BSD-3-Clause
// imbrex/mpi.h: requests, from C.
#include <array>
#include <string>

#include "imbrex/mpi.h"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

TEST(CFace, awaits_a_request_in_a_task_and_outside) {
  const Ring ring;
  int value = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Status status;
  MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, ring.comm, &request);
  MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 3, ring.comm);
  EXPECT_EQ(imbrex_await_request(&request, &status), IMBREX_SUCCESS) << imbrex_message();
  EXPECT_EQ(request, MPI_REQUEST_NULL);
  EXPECT_EQ(value, ring.previous());
  EXPECT_EQ(status.MPI_TAG, 3);
  EXPECT_EQ(imbrex_await_request(nullptr, &status), IMBREX_ERR_USE);
}

TEST(CFace, gives_the_status_of_a_request_as_a_future) {
  const Ring ring;
  int value = -1;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 4, ring.comm, &request);
  imbrex_future_t future = nullptr;
  ASSERT_EQ(imbrex_when_request(&request, &future), IMBREX_SUCCESS) << imbrex_message();
  EXPECT_EQ(request, MPI_REQUEST_NULL);
  MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 4, ring.comm);
  MPI_Status status;
  EXPECT_EQ(imbrex_future_get(future, &status, sizeof status), IMBREX_SUCCESS);
  EXPECT_EQ(status.MPI_SOURCE, ring.previous());
  imbrex_future_free(&future);
}

imbrex_piece fourth(void* argument, const int rank, const int part) {
  const int bytes = *static_cast<const int*>(argument);
  return {static_cast<ptrdiff_t>(bytes) * (4 * rank + part), 1, MPI_INT};
}

TEST(CFace, collectives_come_in_parts) {
  const Ring ring;
  const auto size = static_cast<std::size_t>(ring.size);
  std::vector<int> out(4 * size, ring.rank);
  std::vector<int> in(out.size(), -1);
  int bytes = sizeof(int);
  const imbrex_send_blocks send{out.data(), 4, MPI_INT, nullptr, nullptr, nullptr};
  const imbrex_receive_blocks receive{in.data(), 4, MPI_INT, nullptr, nullptr, nullptr};
  const imbrex_collective_options options{4, 1, fourth, fourth, &bytes};
  imbrex_collective_t x = nullptr;
  ASSERT_EQ(imbrex_alltoall(&send, &receive, ring.comm, &options, &x), IMBREX_SUCCESS)
      << imbrex_message();
  for (int part = 0; part < 4; ++part) {
    for (int rank = 0; rank < ring.size; ++rank) {
      EXPECT_EQ(imbrex_collective_send(x, rank, part), IMBREX_SUCCESS) << imbrex_message();
    }
  }
  EXPECT_EQ(imbrex_collective_send(x, 0, 0), IMBREX_ERR_USE);
  imbrex_future_t all = nullptr;
  imbrex_future_t from = nullptr;
  EXPECT_EQ(imbrex_collective_from(x, ring.previous(), 3, &from), IMBREX_SUCCESS);
  EXPECT_EQ(imbrex_collective_from(x, ring.size, 0, &all), IMBREX_ERR_USE);
  EXPECT_EQ(imbrex_collective_all(x, &all), IMBREX_SUCCESS);
  EXPECT_EQ(imbrex_future_wait(from), IMBREX_SUCCESS);
  EXPECT_EQ(in[4 * static_cast<std::size_t>(ring.previous()) + 3], ring.previous());
  EXPECT_EQ(imbrex_future_wait(all), IMBREX_SUCCESS);
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_EQ(in[i], static_cast<int>(i / 4));
  imbrex_future_free(&from);
  imbrex_future_free(&all);
  imbrex_collective_free(&x);
  EXPECT_EQ(x, nullptr);
  EXPECT_EQ(imbrex_alltoall(nullptr, &receive, ring.comm, &options, &x), IMBREX_ERR_USE);
}

// A ring in one direction: the counts have one element each, as there is one neighbour.
TEST(CFace, collectives_of_neighbors_come_in_parts) {
  const Ring ring;
  const int source = ring.previous();
  const int destination = ring.next();
  MPI_Comm graph = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(ring.comm, 1, &source, MPI_UNWEIGHTED, 1, &destination,
                                 MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  int in = -1;
  int gathered = -1;
  const int one = 1;
  const int zero = 0;
  const imbrex_send_blocks send{&ring.rank, 0, MPI_INT, &one, &zero, nullptr};
  const imbrex_receive_blocks receive{&in, 0, MPI_INT, &one, &zero, nullptr};
  const imbrex_send_blocks own{&ring.rank, 1, MPI_INT, nullptr, nullptr, nullptr};
  const imbrex_receive_blocks all{&gathered, 0, MPI_INT, &one, &zero, nullptr};
  imbrex_collective_t x = nullptr;
  imbrex_collective_t y = nullptr;
  ASSERT_EQ(imbrex_neighbor_alltoall(&send, &receive, graph, nullptr, &x), IMBREX_SUCCESS)
      << imbrex_message();
  ASSERT_EQ(imbrex_neighbor_allgather(&own, &all, graph, nullptr, &y), IMBREX_SUCCESS)
      << imbrex_message();
  for (const imbrex_collective_t it : {x, y}) {
    imbrex_future_t future = nullptr;
    EXPECT_EQ(imbrex_collective_all(it, &future), IMBREX_SUCCESS);
    EXPECT_EQ(imbrex_future_wait(future), IMBREX_SUCCESS);
    imbrex_future_free(&future);
  }
  EXPECT_EQ(in, source);
  EXPECT_EQ(gathered, source);
  imbrex_collective_free(&x);
  imbrex_collective_free(&y);
  EXPECT_EQ(imbrex_neighbor_alltoall(&send, &receive, ring.comm, nullptr, &x), IMBREX_ERR_USE);
  MPI_Comm_free(&graph);
}

// Two edges to the next rank, of other lengths, and of types with and without gaps.
TEST(CFace, blocks_of_neighbors_have_lengths_and_types_of_their_own) {
  const Ring ring;
  const std::array sources{ring.previous(), ring.previous()};
  const std::array destinations{ring.next(), ring.next()};
  MPI_Comm graph = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(ring.comm, 2, sources.data(), MPI_UNWEIGHTED, 2,
                                 destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  MPI_Datatype spread = MPI_DATATYPE_NULL;  // two numbers with one between them
  MPI_Type_vector(2, 1, 2, MPI_INT, &spread);
  MPI_Type_commit(&spread);
  constexpr int bytes = sizeof(int);
  const int r = 10 * ring.rank;
  const int p = 10 * ring.previous();
  const std::array out{r + 3, r + 4, -7, r + 0, -7, r + 1};
  std::array in{-1, -1, -1, -1, -1, -1};
  const std::array out_counts{1, 2};
  const std::array out_places{3 * bytes, 0};
  const std::array out_types{spread, MPI_INT};
  const std::array in_counts{2, 1};
  const std::array in_places{bytes, 3 * bytes};
  const std::array in_types{MPI_INT, spread};
  const imbrex_send_blocks send{out.data(),        0, MPI_DATATYPE_NULL, out_counts.data(),
                                out_places.data(), out_types.data()};
  const imbrex_receive_blocks receive{in.data(),        0, MPI_DATATYPE_NULL, in_counts.data(),
                                      in_places.data(), in_types.data()};
  imbrex_collective_t x = nullptr;
  ASSERT_EQ(imbrex_neighbor_alltoall(&send, &receive, graph, nullptr, &x), IMBREX_SUCCESS)
      << imbrex_message();
  imbrex_future_t all = nullptr;
  EXPECT_EQ(imbrex_collective_all(x, &all), IMBREX_SUCCESS);
  EXPECT_EQ(imbrex_future_wait(all), IMBREX_SUCCESS);
  EXPECT_EQ(in, (std::array{-1, p + 0, p + 1, p + 3, -1, p + 4}));
  // The form v: what was sent as elements of a type with gaps.
  in.fill(-1);
  const std::array places{5, 0};
  const imbrex_send_blocks same{out.data(), 0, MPI_INT, out_counts.data(), places.data(), nullptr};
  const imbrex_receive_blocks other{in.data(),     0, MPI_INT, out_counts.data(),
                                    places.data(), nullptr};
  imbrex_future_free(&all);
  imbrex_collective_free(&x);
  ASSERT_EQ(imbrex_neighbor_alltoall(&same, &other, graph, nullptr, &x), IMBREX_SUCCESS)
      << imbrex_message();
  EXPECT_EQ(imbrex_collective_all(x, &all), IMBREX_SUCCESS);
  EXPECT_EQ(imbrex_future_wait(all), IMBREX_SUCCESS);
  EXPECT_EQ(in, (std::array{p + 3, p + 4, -1, -1, -1, p + 1}));
  imbrex_future_free(&all);
  imbrex_collective_free(&x);
  MPI_Type_free(&spread);
  MPI_Comm_free(&graph);
}

struct Receive {
  const Ring* ring;
  int value = -1;
  int code = -1;

  static int run(void* self, void*) {
    auto& receive = *static_cast<Receive*>(self);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Irecv(&receive.value, 1, MPI_INT, receive.ring->previous(), 5, receive.ring->comm,
              &request);
    receive.code = imbrex_release_after_request(&request);
    return 0;
  }
  static int read(void* self, void* result) {
    *static_cast<int*>(result) = static_cast<const Receive*>(self)->value;
    return 0;
  }
};

TEST(CFace, releases_the_dependents_of_a_task_after_its_request) {
  const Ring ring;
  Receive receive{&ring};
  const imbrex_access out{IMBREX_OUT, &receive, 0};
  const imbrex_access in{IMBREX_IN, &receive, 0};
  imbrex_task_spec spec = IMBREX_TASK("receive", &Receive::run);
  spec.argument = &receive;
  spec.access_count = 1;
  spec.accesses = &out;
  ASSERT_EQ(imbrex_spawn(&spec, nullptr), IMBREX_SUCCESS) << imbrex_message();
  spec.name = "read";
  spec.body = &Receive::read;
  spec.accesses = &in;
  spec.result_bytes = sizeof(int);
  imbrex_future_t seen = nullptr;
  ASSERT_EQ(imbrex_spawn(&spec, &seen), IMBREX_SUCCESS) << imbrex_message();
  EXPECT_EQ(imbrex_yield(), IMBREX_SUCCESS);
  MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 5, ring.comm);
  int value = -1;
  EXPECT_EQ(imbrex_future_get(seen, &value, sizeof value), IMBREX_SUCCESS) << imbrex_message();
  EXPECT_EQ(value, ring.previous());
  EXPECT_EQ(receive.code, IMBREX_SUCCESS);
  imbrex_future_free(&seen);
}

TEST(CFace, tells_an_error_of_MPI_from_a_wrong_call) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP() << "Open MPI truncates a message to itself without a word";
  MPI_Comm_set_errhandler(ring.comm, MPI_ERRORS_RETURN);
  const int two[2] = {1, 2};
  int one = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Irecv(&one, 1, MPI_INT, ring.previous(), 6, ring.comm, &request);
  MPI_Send(two, 2, MPI_INT, ring.next(), 6, ring.comm);
  EXPECT_EQ(imbrex_await_request(&request, MPI_STATUS_IGNORE), IMBREX_ERR_MPI);
  EXPECT_NE(std::string(imbrex_message()).find("await(MPI_Request)"), std::string::npos)
      << imbrex_message();
}

}  // namespace
}  // namespace imbrex::test
