// SPDX-License-Identifier: BSD-3-Clause
// Collectives of MPI that go block by block (IMBREX_PARTIAL): against MPI's own, which PMPI calls,
// and what a task has declared for a block, which ends with the block. CMakeLists.txt sets the
// option.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <numeric>
#include <string>

#include "imbrex/collective.hpp"
#include "imbrex/mpi.h"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

std::string mode() {
  const char* const text = std::getenv("IMBREX_PARTIAL");
  return text == nullptr ? "off" : text;
}
bool is_on() { return mode() != "off"; }
constexpr int large = 1024;  // ints: more than the least block that goes by itself

// Blocks of different lengths, also none: of `from` for `to`.
int length(const int from, const int to) { return (from + 2 * to) % 3 * large; }

struct Lengths {
  std::vector<int> counts, places;
  int sum = 0;
  template <class F>
  Lengths(const int ranks, F&& of) {
    for (int rank = 0; rank < ranks; ++rank) {
      counts.push_back(of(rank));
      places.push_back(sum);
      sum += counts.back();
    }
  }
};

std::vector<int> numbers(const int count, const int rank) {
  std::vector<int> all(static_cast<std::size_t>(std::max(count, 1)));
  std::iota(all.begin(), all.end(), 1'000'000 * (rank + 1));
  return all;
}

// `mine`, called by `call(mine, into)`, gives the same as `mpis`, gaps and all, and is counted if
// it goes by blocks.
template <class Function, class Call>
void compare(const int elements, const bool counted, Function* mine, Function* mpis, Call call) {
  std::vector<int> ours(static_cast<std::size_t>(std::max(elements, 1)), -1);
  std::vector<int> theirs = ours;
  const unsigned long long before = imbrex_decomposed_calls();
  EXPECT_EQ(call(mine, ours.data()), MPI_SUCCESS);
  EXPECT_EQ(imbrex_decomposed_calls() - before, is_on() && counted ? 1u : 0u);
  EXPECT_EQ(call(mpis, theirs.data()), MPI_SUCCESS);
  EXPECT_EQ(ours, theirs);
}

TEST(ByBlocks, blocks_of_one_length_arrive_as_mpis_own_do) {
  const Ring ring;
  for (const int count : {1, large}) {
    const bool counted = count == large || mode() == "all";
    const std::vector<int> out = numbers(ring.size * count, ring.rank);
    const auto to_all = [&](auto function, int* in) {
      return function(out.data(), count, MPI_INT, in, count, MPI_INT, ring.comm);
    };
    compare(ring.size * count, counted, &MPI_Alltoall, &PMPI_Alltoall, to_all);
    compare(ring.size * count, counted, &MPI_Allgather, &PMPI_Allgather, to_all);
    for (int root = 0; root < ring.size; ++root) {
      const auto by_root = [&](auto function, int* in) {
        return function(out.data(), count, MPI_INT, in, count, MPI_INT, root, ring.comm);
      };
      compare(ring.size * count, counted, &MPI_Gather, &PMPI_Gather, by_root);
      compare(count, counted, &MPI_Scatter, &PMPI_Scatter, by_root);
    }
  }
}

TEST(ByBlocks, blocks_of_different_lengths_arrive_as_mpis_own_do) {
  const Ring ring;
  const Lengths out(ring.size, [&](const int to) { return length(ring.rank, to); });
  const Lengths in(ring.size, [&](const int from) { return length(from, ring.rank); });
  const std::vector<int> data = numbers(std::max(out.sum, ring.size * large), ring.rank);
  compare(in.sum, true, &MPI_Alltoallv, &PMPI_Alltoallv, [&](auto function, int* to) {
    return function(data.data(), out.counts.data(), out.places.data(), MPI_INT, to,
                    in.counts.data(), in.places.data(), MPI_INT, ring.comm);
  });
  // Every second number is sent; places in bytes.
  MPI_Datatype spread;
  MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &spread);
  MPI_Type_commit(&spread);
  const std::vector<int> twice = numbers(2 * std::max(out.sum, 1), ring.rank);
  Lengths out_bytes = out;
  Lengths in_bytes = in;
  for (int& place : out_bytes.places) place *= 2 * static_cast<int>(sizeof(int));
  for (int& place : in_bytes.places) place *= static_cast<int>(sizeof(int));
  const std::vector<MPI_Datatype> send_types(static_cast<std::size_t>(ring.size), spread);
  const std::vector<MPI_Datatype> types(static_cast<std::size_t>(ring.size), MPI_INT);
  compare(in.sum, true, &MPI_Alltoallw, &PMPI_Alltoallw, [&](auto function, int* to) {
    return function(twice.data(), out.counts.data(), out_bytes.places.data(), send_types.data(), to,
                    in.counts.data(), in_bytes.places.data(), types.data(), ring.comm);
  });
  MPI_Type_free(&spread);
  const Lengths each(ring.size, [](const int rank) { return length(rank, 0); });
  const int mine = each.counts[static_cast<std::size_t>(ring.rank)];
  compare(each.sum, true, &MPI_Gatherv, &PMPI_Gatherv, [&](auto function, int* to) {
    return function(data.data(), mine, MPI_INT, to, each.counts.data(), each.places.data(),
                    MPI_INT, 0, ring.comm);
  });
  compare(each.sum, true, &MPI_Allgatherv, &PMPI_Allgatherv, [&](auto function, int* to) {
    return function(data.data(), mine, MPI_INT, to, each.counts.data(), each.places.data(),
                    MPI_INT, ring.comm);
  });
  compare(mine, true, &MPI_Scatterv, &PMPI_Scatterv, [&](auto function, int* to) {
    return function(data.data(), each.counts.data(), each.places.data(), MPI_INT, to, mine,
                    MPI_INT, 0, ring.comm);
  });
}

TEST(ByBlocks, blocks_in_place_arrive_as_mpis_own_do) {
  const Ring ring;
  const auto whole = static_cast<std::size_t>(ring.size) * large;
  std::vector<int> all(whole);
  std::iota(all.begin(), all.end(), 0);
  std::vector<int> mine(whole, -1);
  const auto own = static_cast<std::ptrdiff_t>(ring.rank) * large;
  std::copy_n(all.begin() + own, large, mine.begin() + own);
  EXPECT_EQ(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, mine.data(), large, MPI_INT,
                          ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(mine, all);
  // MPI's own, since what arrives would overwrite what has not left.
  const unsigned long long before = imbrex_decomposed_calls();
  EXPECT_EQ(MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, mine.data(), large, MPI_INT,
                         ring.comm),
            MPI_SUCCESS);
  EXPECT_EQ(imbrex_decomposed_calls(), before);
}

// The last rank keeps its data back until the others have used the blocks that are here.
TEST(ByBlocks, a_block_is_used_before_the_others_are_here) {
  const Ring ring;
  if (ring.size < 2 || !is_on()) GTEST_SKIP() << "no block comes later than others";
  const int last = ring.size - 1;
  std::vector<int> out = numbers(ring.size * large, ring.rank);
  std::vector<int> in(out.size(), -1);
  std::atomic<int> seen = 0;
  const auto at = [](std::vector<int>& all, const int rank) {
    return range(all.data() + static_cast<std::size_t>(rank) * large, large);
  };
  // The first collective of a communicator makes a duplicate of it, with all ranks.
  MPI_Alltoall(out.data(), large, MPI_INT, in.data(), large, MPI_INT, ring.comm);
  std::ranges::fill(in, -1);
  if (ring.rank == last) {
    for (int rank = 0; rank < last; ++rank) {  // when all have used what the others sent
      MPI_Recv(nullptr, 0, MPI_INT, rank, 5, ring.comm, MPI_STATUS_IGNORE);
    }
  }
  finish([&] {
    auto exchange = task("exchange");
    for (int rank = 0; rank < ring.size; ++rank) {
      static_cast<void>(exchange.in(at(out, rank)));
      static_cast<void>(exchange.out(at(in, rank)));
    }
    exchange.launch([&] {
      if (mode() == "on") {
        EXPECT_EQ(imbrex_release_by_blocks(), 0);
      }
      MPI_Alltoall(out.data(), large, MPI_INT, in.data(), large, MPI_INT, ring.comm);
    });
    for (int rank = 0; rank < ring.size; ++rank) {
      task("use").in(at(in, rank)).launch([&, rank] {
        const int first = in[static_cast<std::size_t>(rank) * large];
        EXPECT_EQ(first, 1'000'000 * (rank + 1) + ring.rank * large);
        if (++seen == last && ring.rank != last) {
          MPI_Send(nullptr, 0, MPI_INT, last, 5, ring.comm);
        }
      });
      // Overwritten once it has left.
      task("reuse").out(at(out, rank)).launch([&, rank] {
        out[static_cast<std::size_t>(rank) * large] = -7;
      });
    }
  });
  EXPECT_EQ(seen, ring.size);
}

// The only address of a buffer that is named stands for all of it, and without a word of the task
// nothing ends before it.
TEST(ByBlocks, an_access_to_the_whole_buffer_ends_with_the_last_block) {
  const Ring ring;
  for (const bool asks : {false, true}) {
    const std::vector<int> out = numbers(ring.size * large, ring.rank);
    std::vector<int> in(out.size(), -1);
    bool over = false;
    finish([&] {
      task("exchange").out(in[0]).launch([&] {
        if (asks) release_by_blocks();
        MPI_Alltoall(out.data(), large, MPI_INT, in.data(), large, MPI_INT, ring.comm);
        over = true;
      });
      task("use").in(in[0]).launch([&] {
        EXPECT_TRUE(over || mode() == "release" || mode() == "all" || asks);
        for (int rank = 0; rank < ring.size; ++rank) {
          EXPECT_EQ(in[static_cast<std::size_t>(rank) * large],
                    1'000'000 * (rank + 1) + ring.rank * large);
        }
      });
    });
  }
}

TEST(ByBlocks, a_truncated_block_is_the_error_of_the_call) {
  const Ring ring;
  if (ring.size < 2 || !is_on()) GTEST_SKIP() << "MPI's own may do anything";
  MPI_Comm_set_errhandler(ring.comm, MPI_ERRORS_RETURN);
  const std::vector<int> out = numbers(ring.size * large, ring.rank);
  std::vector<int> in(out.size());
  std::vector<int> sent(static_cast<std::size_t>(ring.size), large);
  std::vector<int> wanted = sent;
  if (ring.rank == 0) wanted.back() = large / 2;
  const Lengths places(ring.size, [](int) { return large; });
  const int code = MPI_Alltoallv(out.data(), sent.data(), places.places.data(), MPI_INT, in.data(),
                                 wanted.data(), places.places.data(), MPI_INT, ring.comm);
  int error_class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &error_class);
  EXPECT_EQ(error_class, ring.rank == 0 ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
}

}  // namespace
}  // namespace imbrex::test
