// SPDX-License-Identifier: BSD-3-Clause
// MPI_Ialltoall and its like, and collectives of neighbours, that go block by block: against MPI's
// own, which PMPI calls. An info asks for it, so no option need be set.
#include <algorithm>
#include <array>
#include <atomic>
#include <numeric>
#include <utility>

#include "imbrex/collective.hpp"
#include "imbrex/mpi.h"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

constexpr int large = 700;  // ints: above the least length

// A duplicate that takes the topology along.
class ByBlocksComm {
 public:
  explicit ByBlocksComm(MPI_Comm comm, const char* mode = "all") {
    MPI_Info info = MPI_INFO_NULL;
    MPI_Info_create(&info);
    MPI_Info_set(info, "imbrex_partial", mode);
    MPI_Info_set(info, "imbrex_partial_parts", "3");
    MPI_Comm_dup_with_info(comm, info, &comm_);
    MPI_Info_free(&info);
  }
  ~ByBlocksComm() { MPI_Comm_free(&comm_); }
  ByBlocksComm(const ByBlocksComm&) = delete;
  ByBlocksComm& operator=(const ByBlocksComm&) = delete;
  [[nodiscard]] MPI_Comm get() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// Ways in which a program may find out that a request is complete. Each returns MPI's code.
int by_wait(MPI_Request& request) { return MPI_Wait(&request, MPI_STATUS_IGNORE); }
int by_test(MPI_Request& request) {
  int done = 0;
  int code = MPI_SUCCESS;
  while (done == 0 && code == MPI_SUCCESS) code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  return code;
}
int by_status_first(MPI_Request& request) {
  int done = 0;
  while (done == 0) MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
  return MPI_Wait(&request, MPI_STATUS_IGNORE);
}
int by_waitany(MPI_Request& request) {
  std::array<MPI_Request, 2> both{MPI_REQUEST_NULL, request};
  int index = 0;
  const int code = MPI_Waitany(2, both.data(), &index, MPI_STATUS_IGNORE);
  request = both[1];
  return index == 1 ? code : MPI_ERR_OTHER;
}
int by_waitall(MPI_Request& request) { return MPI_Waitall(1, &request, MPI_STATUSES_IGNORE); }
int by_future(MPI_Request& request) {
  static_cast<void>(when(request).get());
  return MPI_SUCCESS;
}
constexpr std::array ways{&by_wait,    &by_test,    &by_status_first,
                          &by_waitany, &by_waitall, &by_future};

std::vector<int> numbers(const int count, const int rank) {
  std::vector<int> all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 1'000'000 * (rank + 1));
  return all;
}

// `begin`, called by `call(begin, in, &request)`, gives what MPI's own does by `call(mpis, in)`, is
// counted, and its request is complete in each way.
template <class Begin, class Mpi, class Call>
void compare_request(const int elements, Begin* begin, Mpi* mpis, Call call) {
  for (const auto way : ways) {
    std::vector<int> ours(static_cast<std::size_t>(elements) + 1, -1);
    std::vector<int> theirs = ours;
    MPI_Request request = MPI_REQUEST_NULL;
    const unsigned long long before = imbrex_decomposed_calls();
    EXPECT_EQ(call(begin, ours.data(), &request), MPI_SUCCESS);
    EXPECT_NE(request, MPI_REQUEST_NULL);
    EXPECT_EQ(imbrex_decomposed_calls() - before, 1u);
    EXPECT_EQ(way(request), MPI_SUCCESS);
    EXPECT_EQ(request, MPI_REQUEST_NULL);
    EXPECT_EQ(call(mpis, theirs.data()), MPI_SUCCESS);
    EXPECT_EQ(ours, theirs);
  }
}
// Compares the blocking call and the call that gives a request.
template <class Begin, class Mpi, class Call>
void compare_both(const int elements, Begin* begin, Mpi* blocking, Mpi* mpis, Call call) {
  std::vector<int> ours(static_cast<std::size_t>(elements) + 1, -1);
  std::vector<int> theirs = ours;
  const unsigned long long before = imbrex_decomposed_calls();
  EXPECT_EQ(call(blocking, ours.data()), MPI_SUCCESS);
  EXPECT_EQ(imbrex_decomposed_calls() - before, 1u);
  EXPECT_EQ(call(mpis, theirs.data()), MPI_SUCCESS);
  EXPECT_EQ(ours, theirs);
  compare_request(elements, begin, mpis, call);
}

// Counts and places of blocks, one behind the other.
struct Lengths {
  std::vector<int> counts, places, byte_places;
  int sum = 0;
  template <class F>
  Lengths(const int blocks, F&& of) {
    for (int block = 0; block < blocks; ++block) {
      counts.push_back(of(block));
      places.push_back(sum);
      byte_places.push_back(sum * static_cast<int>(sizeof(int)));
      sum += counts.back();
    }
  }
};
int length(const int from, const int to) { return (from + 2 * to) % 3 * large; }

TEST(ByRequests, blocks_arrive_as_mpis_own_do) {
  const Ring ring;
  const ByBlocksComm by_blocks(ring.comm);
  MPI_Comm comm = by_blocks.get();
  const int all = ring.size * large;
  const std::vector<int> out = numbers(all, ring.rank);
  const auto to_all = [&](auto function, int* in, auto... request) {
    return function(out.data(), large, MPI_INT, in, large, MPI_INT, comm, request...);
  };
  compare_request(all, &MPI_Ialltoall, &PMPI_Alltoall, to_all);
  compare_request(all, &MPI_Iallgather, &PMPI_Allgather, to_all);
  const int root = ring.size - 1;
  const auto by_root = [&](auto function, int* in, auto... request) {
    return function(out.data(), large, MPI_INT, in, large, MPI_INT, root, comm, request...);
  };
  compare_request(all, &MPI_Igather, &PMPI_Gather, by_root);
  compare_request(large, &MPI_Iscatter, &PMPI_Scatter, by_root);
}

TEST(ByRequests, blocks_of_different_lengths_arrive_as_mpis_own_do) {
  const Ring ring;
  const ByBlocksComm by_blocks(ring.comm);
  MPI_Comm comm = by_blocks.get();
  const Lengths out(ring.size, [&](const int to) { return length(ring.rank, to); });
  const Lengths in(ring.size, [&](const int from) { return length(from, ring.rank); });
  const Lengths each(ring.size, [](const int rank) { return length(rank, 0); });
  const int mine = each.counts[static_cast<std::size_t>(ring.rank)];
  const std::vector<int> data = numbers(ring.size * 2 * large, ring.rank);
  const std::vector<MPI_Datatype> types(static_cast<std::size_t>(ring.size), MPI_INT);
  compare_request(in.sum, &MPI_Ialltoallv, &PMPI_Alltoallv,
                  [&](auto function, int* to, auto... request) {
                    return function(data.data(), out.counts.data(), out.places.data(), MPI_INT, to,
                                    in.counts.data(), in.places.data(), MPI_INT, comm, request...);
                  });
  compare_request(in.sum, &MPI_Ialltoallw, &PMPI_Alltoallw,
                  [&](auto function, int* to, auto... request) {
                    return function(data.data(), out.counts.data(), out.byte_places.data(),
                                    types.data(), to, in.counts.data(), in.byte_places.data(),
                                    types.data(), comm, request...);
                  });
  compare_request(each.sum, &MPI_Igatherv, &PMPI_Gatherv,
                  [&](auto function, int* to, auto... request) {
                    return function(data.data(), mine, MPI_INT, to, each.counts.data(),
                                    each.places.data(), MPI_INT, 0, comm, request...);
                  });
  compare_request(each.sum, &MPI_Iallgatherv, &PMPI_Allgatherv,
                  [&](auto function, int* to, auto... request) {
                    return function(data.data(), mine, MPI_INT, to, each.counts.data(),
                                    each.places.data(), MPI_INT, comm, request...);
                  });
  compare_request(mine, &MPI_Iscatterv, &PMPI_Scatterv,
                  [&](auto function, int* to, auto... request) {
                    return function(data.data(), each.counts.data(), each.places.data(), MPI_INT,
                                    to, mine, MPI_INT, 0, comm, request...);
                  });
}

// The first call on a communicator waits for no other rank. Others, blocking ones and MPI's own,
// too, may follow at once.
TEST(ByRequests, the_call_waits_for_no_other_rank) {
  const Ring ring;
  const ByBlocksComm by_blocks(ring.comm);
  const std::vector<int> out = numbers(ring.size * large, ring.rank);
  std::vector<int> in(out.size(), -1);
  std::vector<int> again(out.size(), -1);
  std::vector<int> third(out.size(), -1);
  if (ring.rank != 0) MPI_Recv(nullptr, 0, MPI_INT, 0, 1, ring.comm, MPI_STATUS_IGNORE);
  std::array<MPI_Request, 2> requests{};
  MPI_Ialltoall(out.data(), large, MPI_INT, in.data(), large, MPI_INT, by_blocks.get(),
                &requests[0]);
  MPI_Ialltoall(out.data(), large, MPI_INT, again.data(), large, MPI_INT, by_blocks.get(),
                &requests[1]);
  for (int rank = 1; ring.rank == 0 && rank < ring.size; ++rank) {
    MPI_Send(nullptr, 0, MPI_INT, rank, 1, ring.comm);
  }
  int word = ring.rank;
  EXPECT_EQ(MPI_Bcast(&word, 1, MPI_INT, ring.size - 1, by_blocks.get()), MPI_SUCCESS);
  EXPECT_EQ(word, ring.size - 1);
  EXPECT_EQ(MPI_Alltoall(out.data(), large, MPI_INT, third.data(), large, MPI_INT,
                         by_blocks.get()),
            MPI_SUCCESS);
  EXPECT_EQ(MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE), MPI_SUCCESS);
  for (int rank = 0; rank < ring.size; ++rank) {
    EXPECT_EQ(in[static_cast<std::size_t>(rank) * large],
              1'000'000 * (rank + 1) + ring.rank * large);
  }
  EXPECT_EQ(in, again);
  EXPECT_EQ(in, third);
}

// No communicator that nothing has prepared may be duplicated by a form I: MPI's own call runs, and
// what follows at once is right, again and again.
TEST(ByRequests, a_call_on_an_unprepared_communicator_is_mpis_own) {
  const Ring ring;
  for (int round = 0; round < 20; ++round) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_split(ring.comm, 0, ring.rank, &comm);
    const std::vector<int> out(static_cast<std::size_t>(ring.size) * large, ring.rank);
    std::vector<int> in(out.size(), -1);
    const unsigned long long before = imbrex_decomposed_calls();
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ialltoall(out.data(), large, MPI_INT, in.data(), large, MPI_INT, comm, &request);
    int word = ring.rank == 0 ? round : -1;
    MPI_Bcast(&word, 1, MPI_INT, 0, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(imbrex_decomposed_calls(), before);
    EXPECT_EQ(word, round);
    for (int rank = 0; rank < ring.size; ++rank) {
      EXPECT_EQ(in[static_cast<std::size_t>(rank) * large], rank);
    }
    MPI_Comm_free(&comm);
  }
}

// The last rank comes only when all others have used what came from the rest. Their task has ended
// by then; where it waits, it suspends, for there may be one worker only.
void exchange_early(const bool waits_in_the_task) {
  const Ring ring;
  if (ring.size < 2) GTEST_SKIP() << "no block comes later than others";
  const ByBlocksComm by_blocks(ring.comm, "on");
  const int last = ring.size - 1;
  std::vector<int> out = numbers(ring.size * large, ring.rank);
  std::vector<int> in(out.size(), -1);
  MPI_Alltoall(out.data(), large, MPI_INT, in.data(), large, MPI_INT, by_blocks.get());
  std::ranges::fill(in, -1);
  const auto at = [](std::vector<int>& all, const int rank) {
    return range(all.data() + static_cast<std::size_t>(rank) * large, large);
  };
  if (ring.rank == last) {
    for (int rank = 0; rank < last; ++rank) {
      MPI_Recv(nullptr, 0, MPI_INT, rank, 5, ring.comm, MPI_STATUS_IGNORE);
    }
  }
  MPI_Request request = MPI_REQUEST_NULL;
  std::atomic<int> seen = 0;
  finish([&] {
    auto exchange = task("exchange");
    for (int rank = 0; rank < ring.size; ++rank) {
      static_cast<void>(exchange.in(at(out, rank)));
      static_cast<void>(exchange.out(at(in, rank)));
    }
    exchange.launch([&] {
      release_by_blocks();
      MPI_Ialltoall(out.data(), large, MPI_INT, in.data(), large, MPI_INT, by_blocks.get(),
                    &request);
      if (waits_in_the_task) MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
    for (int rank = 0; rank < ring.size; ++rank) {
      task("use").in(at(in, rank)).launch([&, rank] {
        EXPECT_EQ(in[static_cast<std::size_t>(rank) * large],
                  1'000'000 * (rank + 1) + ring.rank * large);
        if (++seen == last && ring.rank != last) {
          MPI_Send(nullptr, 0, MPI_INT, last, 5, ring.comm);
        }
      });
      task("reuse").out(at(out, rank)).launch([&, rank] {
        out[static_cast<std::size_t>(rank) * large] = -7;
      });
    }
  });
  EXPECT_EQ(seen, ring.size);
  EXPECT_EQ(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
}

TEST(ByRequests, a_block_is_used_after_the_task_has_ended) { exchange_early(false); }
TEST(ByRequests, a_wait_in_a_task_suspends) { exchange_early(true); }

TEST(ByRequests, an_error_is_returned_by_the_wait) {
  const Ring ring;
  if (ring.size < 2) GTEST_SKIP() << "nothing comes from elsewhere";
  const ByBlocksComm by_blocks(ring.comm);
  MPI_Comm_set_errhandler(by_blocks.get(), MPI_ERRORS_RETURN);
  const std::vector<int> out = numbers(ring.size * large, ring.rank);
  std::vector<int> in(out.size());
  const std::vector<int> sent(static_cast<std::size_t>(ring.size), large);
  std::vector<int> wanted = sent;
  if (ring.rank == 0) wanted.back() = large / 2;
  const Lengths places(ring.size, [](int) { return large; });
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_EQ(MPI_Ialltoallv(out.data(), sent.data(), places.places.data(), MPI_INT, in.data(),
                           wanted.data(), places.places.data(), MPI_INT, by_blocks.get(),
                           &request),
            MPI_SUCCESS);
  const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
  EXPECT_EQ(error_class, ring.rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
}

TEST(ByRequests, a_freed_request_goes_on) {
  const Ring ring;
  const ByBlocksComm by_blocks(ring.comm);
  const std::vector<int> out = numbers(ring.size * large, ring.rank);
  std::vector<int> in(out.size(), -1);
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ialltoall(out.data(), large, MPI_INT, in.data(), large, MPI_INT, by_blocks.get(), &request);
  EXPECT_EQ(MPI_Request_free(&request), MPI_SUCCESS);
  EXPECT_EQ(request, MPI_REQUEST_NULL);
  int there = 0;
  for (; there != ring.size * large;) {  // as others do what makes this rank poll
    MPI_Barrier(ring.comm);
    const auto right = std::ranges::count_if(in, [](const int it) { return it >= 1'000'000; });
    const auto mine = static_cast<int>(right);
    MPI_Allreduce(&mine, &there, 1, MPI_INT, MPI_MIN, ring.comm);
  }
  for (int rank = 0; rank < ring.size; ++rank) {
    EXPECT_EQ(in[static_cast<std::size_t>(rank) * large],
              1'000'000 * (rank + 1) + ring.rank * large);
  }
}

// ---- neighbours --------------------------------------------------------------------------------

// The forms whose blocks have one length, on a communicator where this rank has so many sources.
void compare_equal_blocks(MPI_Comm comm, const int rank, const int sources,
                          const int destinations) {
  const std::vector<int> data = numbers((destinations + 1) * large, rank);
  for (const int count : {1, large}) {
    const auto call = [&](auto function, int* in, auto... request) {
      return function(data.data(), count, MPI_INT, in, count, MPI_INT, comm, request...);
    };
    compare_both(sources * count, &MPI_Ineighbor_alltoall, &MPI_Neighbor_alltoall,
                 &PMPI_Neighbor_alltoall, call);
    compare_both(sources * count, &MPI_Ineighbor_allgather, &MPI_Neighbor_allgather,
                 &PMPI_Neighbor_allgather, call);
  }
  const Lengths same(sources, [](int) { return large; });
  compare_both(sources * large, &MPI_Ineighbor_allgatherv, &MPI_Neighbor_allgatherv,
               &PMPI_Neighbor_allgatherv, [&](auto function, int* into, auto... request) {
                 return function(data.data(), large, MPI_INT, into, same.counts.data(),
                                 same.places.data(), MPI_INT, comm, request...);
               });
}

// Compares blocks of different lengths: `out` leaves and `in` arrives.
void compare_unequal_blocks(MPI_Comm comm, const int rank, const Lengths& out,
                            const Lengths& in) {
  const std::vector<int> data = numbers(out.sum + 1, rank);
  compare_both(in.sum, &MPI_Ineighbor_alltoallv, &MPI_Neighbor_alltoallv, &PMPI_Neighbor_alltoallv,
               [&](auto function, int* into, auto... request) {
                 return function(data.data(), out.counts.data(), out.places.data(), MPI_INT, into,
                                 in.counts.data(), in.places.data(), MPI_INT, comm, request...);
               });
  const std::vector<MPI_Aint> out_bytes(out.byte_places.begin(), out.byte_places.end());
  const std::vector<MPI_Aint> in_bytes(in.byte_places.begin(), in.byte_places.end());
  const std::vector<MPI_Datatype> types(std::max(out.counts.size(), in.counts.size()) + 1,
                                        MPI_INT);
  compare_both(in.sum, &MPI_Ineighbor_alltoallw, &MPI_Neighbor_alltoallw, &PMPI_Neighbor_alltoallw,
               [&](auto function, int* into, auto... request) {
                 return function(data.data(), out.counts.data(), out_bytes.data(), types.data(),
                                 into, in.counts.data(), in_bytes.data(), types.data(), comm,
                                 request...);
               });
}

// A line, whose ends have a neighbour on one side only. On a closed ring of two ranks one neighbour
// stands on both sides, which collective_test.cpp looks at.
TEST(ByRequests, neighbours_in_a_line_get_their_blocks) {
  const Ring ring;
  MPI_Comm line = MPI_COMM_NULL;
  const int open = 0;
  MPI_Cart_create(ring.comm, 1, &ring.size, &open, 0, &line);
  {
    const ByBlocksComm by_blocks(line, "on");
    const auto there = [&](const int i) {
      const int other = ring.rank + (i == 0 ? -1 : 1);
      return other >= 0 && other < ring.size;
    };
    compare_equal_blocks(by_blocks.get(), ring.rank, 2, 2);
    const Lengths out(2, [&](const int i) {
      return there(i) ? length(ring.rank, ring.rank + 2 * i - 1) : 0;
    });
    const Lengths in(2, [&](const int i) {
      return there(i) ? length(ring.rank + 2 * i - 1, ring.rank) : 0;
    });
    compare_unequal_blocks(by_blocks.get(), ring.rank, out, in);
  }
  MPI_Comm_free(&line);
}

// Each rank sends to the next ones, and gets from those before, of which there are other numbers:
// rank r sends to r others.
TEST(ByRequests, neighbours_of_a_distributed_graph_get_their_blocks) {
  const Ring ring;
  std::vector<int> sources, destinations;
  for (int other = 0; other < ring.size; ++other) {
    if (other > ring.rank) sources.push_back(other);
    if (other < ring.rank) destinations.push_back(other);
  }
  MPI_Comm graph = MPI_COMM_NULL;
  MPI_Dist_graph_create_adjacent(ring.comm, static_cast<int>(sources.size()), sources.data(),
                                 MPI_UNWEIGHTED, static_cast<int>(destinations.size()),
                                 destinations.data(), MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &graph);
  {
    const ByBlocksComm by_blocks(graph, "on");
    const auto others = static_cast<int>(sources.size());
    const auto targets = static_cast<int>(destinations.size());
    compare_equal_blocks(by_blocks.get(), ring.rank, others, targets);
    const Lengths out(targets, [&](const int i) {
      return length(ring.rank, destinations[static_cast<std::size_t>(i)]);
    });
    const Lengths in(others, [&](const int i) {
      return length(sources[static_cast<std::size_t>(i)], ring.rank);
    });
    compare_unequal_blocks(by_blocks.get(), ring.rank, out, in);
  }
  MPI_Comm_free(&graph);
}

}  // namespace
}  // namespace imbrex::test
