// SPDX-License-Identifier: BSD-3-Clause
// Partial collectives one by one: what each promises, and what goes wrong. Random ones beside MPI's
// own: collective_fuzz.cpp.
#include "imbrex/collective.hpp"

#include <array>
#include <atomic>
#include <numeric>
#include <string>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

TEST(Collective, a_part_is_ready_before_the_others_have_left) {
  const Ring ring;
  constexpr int count = 8;
  const std::vector<int> out(static_cast<std::size_t>(ring.size) * count, ring.rank);
  std::vector<int> in(out.size(), -1);
  const Collective x = alltoall({out.data(), count, MPI_INT}, {in.data(), count, MPI_INT},
                                ring.comm, {.parts = 2, .hold = true});
  x.send(ring.next(), 1);
  x.from(ring.previous(), 1).get();
  EXPECT_EQ(in[static_cast<std::size_t>(ring.previous() * count + 4)], ring.previous());
  EXPECT_FALSE(x.from(ring.previous(), 0).ready());
  EXPECT_FALSE(x.all().ready());
  MPI_Barrier(ring.comm);  // from here on the others may leave too
  EXPECT_THROW(x.send(ring.next(), 1), Error);
  EXPECT_THROW(x.send(ring.size, 0), Error);
  EXPECT_THROW((void)x.from(0, 2), Error);
  for (int rank = 0; rank < ring.size; ++rank) {
    for (int part = 0; part < 2; ++part) {
      if (rank != ring.next() || part != 1) x.send(rank, part);
    }
  }
  x.all().get();
}

// A part that lay in a buffer of MPI's would be behind all that has been given to MPI before, so it
// takes its turn, and has left when it has been received. This rank receives nothing before it is
// told to.
TEST(Collective, a_part_that_takes_its_turn_has_left_when_it_is_received) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP() << "nothing is sent to another rank";
  constexpr int count = 16'384;
  const std::vector<char> out(static_cast<std::size_t>(ring.size) * count, 'x');
  std::vector<char> in(out.size());
  int told = 0;
  // The first one makes a duplicate of the communicator, together with the others.
  broadcast({&told, 1, MPI_INT}, 0, ring.comm).all().get();
  if (ring.rank != 0) MPI_Recv(&told, 1, MPI_INT, 0, 1, ring.comm, MPI_STATUS_IGNORE);
  Collective x = alltoall({out.data(), count, MPI_CHAR}, {in.data(), count, MPI_CHAR}, ring.comm);
  if (ring.rank == 0) {
    for (int i = 0; i < 1000; ++i) {
      MPI_Iprobe(0, 2, ring.comm, &told, MPI_STATUS_IGNORE);  // MPI and imbrex move on
      yield();
    }
    for (int rank = 1; rank < ring.size; ++rank) EXPECT_FALSE(x.to(rank).ready());
    for (int rank = 1; rank < ring.size; ++rank) MPI_Send(&told, 1, MPI_INT, rank, 1, ring.comm);
  }
  x.all().get();
  EXPECT_EQ(in, out);
}

// Rows here, columns there: the parts are of another type on each side, and nothing is packed.
TEST(Collective, parts_may_have_another_shape_on_each_side) {
  const Ring ring;
  constexpr int lines = 4;  // of each rank
  const int n = lines * ring.size;
  std::vector<int> rows(static_cast<std::size_t>(lines * n));
  for (int i = 0; i < lines * n; ++i) rows[static_cast<std::size_t>(i)] = ring.rank * lines * n + i;
  std::vector<int> columns(rows.size(), -1);
  MPI_Datatype column;  // as it arrives: one element of each of our lines
  MPI_Type_vector(lines, 1, n, MPI_INT, &column);
  MPI_Type_commit(&column);
  const Collective x = alltoall(
      {.address = rows.data()}, {.address = columns.data()}, ring.comm,
      {.parts = lines,
       .outgoing = [&](const int to, const int part) -> Piece {
         return {static_cast<std::ptrdiff_t>(sizeof(int)) * (part * n + to * lines), lines,
                 MPI_INT};
       },
       .incoming = [&](const int from, const int part) -> Piece {
         return {static_cast<std::ptrdiff_t>(sizeof(int)) * (from * lines + part), 1, column};
       }});
  MPI_Type_free(&column);  // it is kept
  x.all().get();
  for (int line = 0; line < lines; ++line) {
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(columns[static_cast<std::size_t>(line * n + i)], i * n + ring.rank * lines + line);
    }
  }
}

TEST(Collective, a_reduction_comes_in_parts) {
  const Ring ring;
  constexpr int count = 10'007;
  std::vector<long> out(count);
  std::iota(out.begin(), out.end(), ring.rank);
  std::vector<long> in(count, -1);
  std::vector<long> here = out;
  const Collective x = allreduce({out.data(), count, MPI_LONG}, {in.data(), count, MPI_LONG},
                                 MPI_SUM, ring.comm, {.parts = 7});
  const Collective y = allreduce({.address = MPI_IN_PLACE}, {here.data(), count, MPI_LONG}, MPI_MAX,
                                 ring.comm, {.parts = 3});
  std::atomic<int> seen{0};
  finish([&] {
    for (int part = 0; part < 7; ++part) {
      task("look").in(x.from(0, part)).in(x.to(0, part)).launch([&, part] {
        const long at = static_cast<long>(count) * part / 7;
        const long sum = at * ring.size + ring.size * (ring.size - 1) / 2;
        EXPECT_EQ(in[static_cast<std::size_t>(at)], sum);
        seen.fetch_add(1);
      });
    }
  });
  EXPECT_EQ(seen.load(), 7);
  x.all().get();
  y.all().get();
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(here[static_cast<std::size_t>(i)], i + ring.size - 1);
  }
  EXPECT_THROW((void)allreduce({.address = MPI_IN_PLACE}, {here.data(), 1, MPI_LONG}, MPI_MAX,
                               ring.comm, {.hold = true}),
               Error);
}

// The messages are small, or long and wait for their turn; a single rank copies.
TEST(Collective, a_truncated_part_fails_alone) {
  const Ring ring;
  for (const int count : {4, 100'000}) {
    const std::vector<int> out(static_cast<std::size_t>(ring.size * count), ring.rank);
    std::vector<int> in(out.size(), -1);
    std::vector<int> counts(static_cast<std::size_t>(ring.size), count);
    std::vector<int> places(counts.size());
    for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int>(i) * count;
    counts[static_cast<std::size_t>(ring.previous())] = count / 2;
    const Collective x = alltoall(
        {out.data(), count, MPI_INT},
        {.address = in.data(), .type = MPI_INT, .counts = counts, .displacements = places},
        ring.comm);
    EXPECT_THROW(x.all().get(), MpiError);
    for (int rank = 0; rank < ring.size; ++rank) {
      if (rank != ring.previous()) {
        EXPECT_NO_THROW(x.from(rank).get());
        EXPECT_EQ(in[static_cast<std::size_t>(rank * count)], rank);
        continue;
      }
      try {
        x.from(rank).get();
        ADD_FAILURE() << "rank " << rank << ", count " << count;
      } catch (const MpiError& error) {
        const std::string part = "part 0 from rank " + std::to_string(rank);
        EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
        EXPECT_EQ(error.error_class(), MPI_ERR_TRUNCATE);
      }
    }
    MPI_Barrier(ring.comm);  // what is sent must live until it has been taken
  }
}

// Their numbers come round, but not while one is open, nor once one has failed.
TEST(Collective, more_collectives_than_tags_may_follow_each_other) {
  MPI_Comm alone = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &alone);
  const int out = 3;
  int in = 0;
  const auto make = [&](const bool hold) {
    return alltoall({&out, 1, MPI_INT}, {&in, 1, MPI_INT}, alone, {.hold = hold});
  };
  const int numbers = most_parts(alone);  // as many
  for (int i = 0; i < numbers + 10; ++i) make(false).all().get();
  {
    const Collective open = make(true);
    for (int i = 1; i < numbers; ++i) make(false).all().get();
    EXPECT_THROW((void)make(false), Error);
    open.send(0);
    open.all().get();
  }
  EXPECT_NO_THROW(make(false).all().get());
  const Future<void> never = make(true).all();  // no task holds it
  EXPECT_THROW(never.get(), Error);
  for (int i = 1; i < numbers; ++i) make(false).all().get();
  EXPECT_THROW((void)make(false), Error);
  MPI_Comm_free(&alone);
}

TEST(Collective, a_part_that_is_never_sent_is_named) {
  const Ring ring;
  MPI_Comm alone = MPI_COMM_NULL;
  MPI_Comm_split(ring.comm, ring.rank, 0, &alone);
  const int out = 1;
  int in = 0;
  Future<void> all;
  Future<void> from;
  {
    const Collective x =
        alltoall({&out, 1, MPI_INT}, {&in, 1, MPI_INT}, alone, {.hold = true});
    all = x.all();
    from = x.from(0);
  }
  EXPECT_THROW(from.get(), Error);
  EXPECT_THROW(all.get(), Error);
  MPI_Comm_free(&alone);
}

// Returns the text of the error that a part's future throws.
std::string text_of(const Future<void>& part, const int error_class) {
  try {
    part.get();
  } catch (const MpiError& error) {
    EXPECT_EQ(error.error_class(), error_class) << error.what();
    return error.what();
  } catch (const Error& error) {
    EXPECT_EQ(error_class, MPI_SUCCESS) << error.what();
    return error.what();
  }
  return "nothing";
}
bool has(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

// The messages are small, or long and wait for their turn; the other ranks get the right part.
TEST(Collective, a_relay_that_does_not_get_its_part_tells_the_ranks_behind_it) {
  const Ring ring;
  for (const int count : {8, 200'000}) {
    std::vector<int> data(static_cast<std::size_t>(count), ring.rank == 0 ? 7 : -1);
    const Collective x = broadcast(
        {data.data(), count, MPI_INT}, 0, ring.comm,
        {.parts = 2, .incoming = [&](int, const int part) -> Piece {
           const int n = ring.rank == 1 && part == 1 ? count / 4 : count / 2;
           return {static_cast<std::ptrdiff_t>(sizeof(int)) * part * (count / 2), n, MPI_INT};
         }});
    EXPECT_NO_THROW(x.from(0, 0).get());
    EXPECT_EQ(data[static_cast<std::size_t>(count / 2 - 1)], 7);
    if (ring.rank == 1) {
      EXPECT_TRUE(has(text_of(x.from(0, 1), MPI_ERR_TRUNCATE), "part 1 from rank 0"));
      if (ring.size > 2) {
        EXPECT_TRUE(has(text_of(x.to(0, 1), MPI_ERR_TRUNCATE), "part 1 from rank 0"));
      }
    } else if (ring.rank > 1) {
      const std::string text = text_of(x.from(0, 1), MPI_ERR_OTHER);
      const std::string before = std::to_string(ring.previous());
      EXPECT_TRUE(has(text, "part 1 from rank " + before)) << text;
      EXPECT_TRUE(has(text, "rank " + before + " could not forward the part")) << text;
    }
    if (ring.rank != 0) {
      EXPECT_THROW(x.all().get(), MpiError);
    } else {
      EXPECT_NO_THROW(x.all().get());
    }
  }
}

// One part of each block is sent, the other is held until no task can send it any more.
TEST(Collective, a_part_that_is_never_sent_fails_on_the_receiving_rank) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP() << "nothing is sent to another rank";
  constexpr int count = 6;
  const std::vector<int> out(static_cast<std::size_t>(ring.size) * count, ring.rank);
  std::vector<int> in(out.size(), -1);
  std::array<int, count> one{};
  std::array<int, count> same{};
  const SendBlocks send{out.data(), count, MPI_INT};
  const CollectiveOptions options{.parts = 2, .hold = true};
  Collective x = alltoall(send, {in.data(), count, MPI_INT}, ring.comm, options);
  Collective y = scatter(send, {one.data(), count, MPI_INT}, 0, ring.comm, options);
  Collective z = broadcast({same.data(), count, MPI_INT}, 0, ring.comm, options);
  const int previous = ring.previous();
  const std::vector from_there{x.from(previous, 1), y.from(0, 1), z.from(0, 1)};
  const std::vector all{x.all(), y.all(), z.all()};
  const Future<void> first = x.from(previous, 0);
  const Future<void> to_next = x.to(ring.next(), 1);
  for (int rank = 0; rank < ring.size; ++rank) {
    x.send(rank, 0);
    if (ring.rank == 0) y.send(rank, 0);
  }
  z.send(0, 0);
  x = y = z = {};
  EXPECT_NO_THROW(first.get());
  const std::string held = " holds the part, and no handle is left on that rank to call send()";
  const std::string of_x = text_of(from_there[0], MPI_ERR_OTHER);
  EXPECT_TRUE(has(of_x, "part 1 from rank " + std::to_string(previous) + " failed")) << of_x;
  EXPECT_TRUE(has(of_x, "rank " + std::to_string(previous) + held)) << of_x;
  EXPECT_TRUE(has(text_of(to_next, MPI_SUCCESS), "not sent: part 1 for rank"));
  if (ring.rank != 0) {
    EXPECT_TRUE(has(text_of(from_there[1], MPI_ERR_OTHER), "rank 0" + held));
    const std::string relayed = "rank " + std::to_string(previous) + " could not forward the part";
    const std::string of_z = text_of(from_there[2], MPI_ERR_OTHER);
    EXPECT_TRUE(has(of_z, ring.rank == 1 ? "rank 0" + held : relayed)) << of_z;
  }
  for (const Future<void>& each : all) EXPECT_THROW(each.get(), Error);
}

// A part of no bytes has no message, since a message of no bytes would withdraw it.
TEST(Collective, a_part_of_no_bytes_is_ready) {
  const Ring ring;
  MPI_Datatype empty = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(0, MPI_INT, &empty);
  MPI_Type_commit(&empty);
  const int out = 1;
  int in = -1;
  const Collective x = alltoall({&out, 3, empty}, {&in, 3, empty}, ring.comm, {.parts = 3});
  EXPECT_TRUE(x.from(ring.previous(), 2).ready());
  x.all().get();
  EXPECT_EQ(in, -1);
  MPI_Type_free(&empty);
}

TEST(Collective, a_collective_goes_on_without_handle_and_communicator) {
  Future<void> all;
  std::vector<int> out(100'000);
  std::vector<int> in(out.size());
  {
    const Ring ring;
    const int count = static_cast<int>(out.size()) / ring.size;
    all = alltoall({out.data(), count, MPI_INT}, {in.data(), count, MPI_INT}, ring.comm).all();
  }
  all.get();
}

TEST(Collective, wrong_arguments_are_refused) {
  const int out = 1;
  int in = 0;
  const SendBlocks send{&out, 1, MPI_INT};
  const ReceiveBlocks receive{&in, 1, MPI_INT};
  EXPECT_THROW((void)alltoall(send, receive, MPI_COMM_NULL), Error);
  EXPECT_THROW((void)alltoall(send, receive, MPI_COMM_SELF, {.parts = 0}), Error);
  EXPECT_THROW((void)alltoall(send, receive, MPI_COMM_SELF, {.parts = 1 << 29}), Error);
  EXPECT_THROW((void)alltoall({&out, -1, MPI_INT}, receive, MPI_COMM_SELF), Error);
  EXPECT_THROW((void)alltoall({&out, 1}, receive, MPI_COMM_SELF), Error);
  EXPECT_THROW((void)alltoall({&out, 0, MPI_INT}, receive, MPI_COMM_SELF), Error);
  EXPECT_THROW((void)alltoall({MPI_IN_PLACE, 1, MPI_INT}, receive, MPI_COMM_SELF), Error);
  EXPECT_THROW((void)gather(send, receive, 1, MPI_COMM_SELF), Error);
  EXPECT_THROW((void)Collective().all(), Error);
  EXPECT_GE(most_parts(MPI_COMM_WORLD), 64);
}

// All tasks but one find the duplicate in the making. Their order alone does not matter.
TEST(Collective, several_tasks_may_make_the_first_collectives) {
  for (int round = 0; round < 20; ++round) {
    MPI_Comm alone = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_SELF, &alone);
    std::array<int, 8> out{};
    std::array<int, 8> in{};
    finish([&] {
      for (std::size_t i = 0; i < out.size(); ++i) {
        task("make").launch([&, i] {
          out[i] = static_cast<int>(i) + 1;
          allreduce({&out[i], 1, MPI_INT}, {&in[i], 1, MPI_INT}, MPI_SUM, alone).all().get();
        });
      }
    });
    EXPECT_EQ(in, out);
    MPI_Comm_free(&alone);
  }
}

TEST(Collective, a_thread_of_the_program_may_make_a_collective) {
  const Ring ring;
  std::vector<int> all(static_cast<std::size_t>(ring.size), -1);
  all[static_cast<std::size_t>(ring.rank)] = ring.rank;
  on_unknown_thread([&] {
    const Collective x =
        allgather({.address = MPI_IN_PLACE}, {all.data(), 1, MPI_INT}, ring.comm);
    x.all().get();
  });
  for (int rank = 0; rank < ring.size; ++rank) EXPECT_EQ(all[static_cast<std::size_t>(rank)], rank);
}

// ---- neighbours ------------------------------------------------------------------------------

// Two edges to the next rank with one to itself between them, with weights.
TEST(Collective, repeated_edges_of_a_distributed_graph_share_the_numbers_of_parts) {
  const Ring ring;
  const std::array sources{ring.previous(), ring.rank, ring.previous()};
  const std::array destinations{ring.next(), ring.next(), ring.rank};
  const std::array weights{5, 1, 3};
  MPI_Comm graph = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(ring.comm, 3, sources.data(), weights.data(), 3,
                                 destinations.data(), weights.data(), MPI_INFO_NULL, 0, &graph);
  const std::array out{10 * ring.rank, 10 * ring.rank + 1, 10 * ring.rank + 2};
  std::array in{-1, -1, -1};
  const Collective x = neighbor_alltoall({out.data(), 1, MPI_INT}, {in.data(), 1, MPI_INT}, graph);
  x.all().get();
  const int before = 10 * ring.previous();
  EXPECT_EQ(in, ring.size == 1 ? out : (std::array{before, out[2], before + 1}));
  EXPECT_THROW((void)x.to(3), Error);
  EXPECT_THROW((void)x.from(3), Error);
  EXPECT_THROW((void)neighbor_alltoall({out.data(), 1, MPI_INT}, {in.data(), 1, MPI_INT}, graph,
                                       {.parts = most_parts(graph)}),
               Error);
  MPI_Comm_free(&graph);
}

TEST(Collective, neighbors_of_a_graph_get_what_mpi_gives_them) {
  const Ring ring;
  std::vector<int> index;
  std::vector<int> edges;
  for (int rank = 0; rank < ring.size; ++rank) {  // a chain
    if (rank > 0) edges.push_back(rank - 1);
    if (rank + 1 < ring.size) edges.push_back(rank + 1);
    index.push_back(static_cast<int>(edges.size()));
  }
  edges.push_back(0);  // so that there is an address
  MPI_Comm graph = MPI_COMM_NULL;
  MPI_Graph_create(ring.comm, ring.size, index.data(), edges.data(), 0, &graph);
  std::array<int, 4> in{-1, -1, -1, -1};
  std::array<int, 4> right = in;
  const std::array<int, 2> places{2, 0};
  const std::array<int, 2> counts{1, 1};
  const Collective x = neighbor_allgather(
      {&ring.rank, 1, MPI_INT},
      {.address = in.data(), .type = MPI_INT, .counts = counts, .displacements = places}, graph);
  x.all().get();
  MPI_Neighbor_allgatherv(&ring.rank, 1, MPI_INT, right.data(), counts.data(), places.data(),
                          MPI_INT, graph);
  EXPECT_EQ(in, right);
  MPI_Comm_free(&graph);
}

TEST(Collective, a_communicator_without_neighbors_is_refused) {
  const Ring ring;
  const int out = 1;
  int in = 0;
  EXPECT_THROW((void)neighbor_alltoall({&out, 1, MPI_INT}, {&in, 1, MPI_INT}, ring.comm), Error);
  EXPECT_THROW((void)neighbor_allgather({.address = MPI_IN_PLACE}, {&in, 1, MPI_INT}, ring.comm),
               Error);
}

}  // namespace
}  // namespace imbrex::test
