// SPDX-License-Identifier: BSD-3-Clause
// Work pools over the ranks of a real MPI. tests/distributed/pool_test.cpp has more, in one
// process.
#include <atomic>
#include <cstdint>
#include <string>

#include "imbrex/scope.hpp"
#include "imbrex/work_pool.hpp"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

struct Sum {
  std::int64_t value = 0;
  // Over all ranks.
  [[nodiscard]] std::int64_t everywhere() const {
    std::int64_t all = 0;
    MPI_Allreduce(&value, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    return all;
  }
};
[[nodiscard]] std::int64_t sum(const std::uint64_t value) {
  return Sum{static_cast<std::int64_t>(value)}.everywhere();
}

// Calls of fib(n) as a tree.
[[nodiscard]] std::int64_t calls(const int n) {
  return n < 2 ? 1 : 1 + calls(n - 1) + calls(n - 2);
}

struct Halves {
  std::atomic<std::int64_t>& visited;
  void operator()(const int n, Emit<int>& emit) const {
    ++visited;
    if (n < 2) return;
    emit(n - 1);
    emit(n - 2);
  }
};

TEST(PoolTest, every_item_is_worked_on_once_whoever_has_it_first) {
  Ring ring;
  WorkPool<int> pool(ring.comm);
  for (int first = 0; first < std::min(ring.size, 3); ++first) {
    std::atomic<std::int64_t> visited{0};
    if (ring.rank == first) pool.push(20);
    const WorkPoolCounters counters = pool.process(Halves{visited});
    EXPECT_EQ(static_cast<std::int64_t>(counters.items), visited);
    EXPECT_EQ(std::ssize(counters.workers), pool.workers());
    EXPECT_EQ(sum(counters.items), calls(20));
    EXPECT_EQ(sum(counters.items_sent), sum(counters.items_received));
    const double accounted =
        counters.work_s + counters.overhead_s + counters.search_s + counters.idle_s;
    EXPECT_LE(accounted, counters.elapsed_s * pool.workers() * 1.01);
  }
}

TEST(PoolTest, ranks_that_find_nothing_are_sent_items_by_lifelines) {
  Ring ring;
  WorkPool<int> pool(ring.comm, {.chunk = 1, .poll_interval = 1, .name = "lifelines"});
  std::int64_t pushes = 0;
  // It depends on the ranks' timing whether all have asked before there are items.
  for (int round = 0; round < 200 && pushes == 0; ++round) {
    std::atomic<std::int64_t> visited{0};
    if (ring.rank == 0) pool.push(15);
    const WorkPoolCounters counters = pool.process([&](const int n, Emit<int>& emit) {
      for (int i = 0; n == 15 && i < round; ++i) {
        sleep_ms(1);
        yield();  // and answers that it has none
      }
      Halves{visited}(n, emit);
    });
    EXPECT_EQ(sum(counters.items), calls(15));
    pushes = sum(counters.lifeline_pushes);
    const std::int64_t failed = sum(counters.failed_steals);
    if (ring.size == 1) {
      EXPECT_EQ(failed + pushes, 0);
      return;
    }
    EXPECT_GE(failed, ring.size - 1);  // the last requests find nothing
  }
  EXPECT_GE(pushes, 1);
}

TEST(PoolTest, pools_of_parts_of_the_ranks_run_at_once) {
  Ring ring;
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(ring.comm, ring.rank % 2, -ring.rank, &part);
  int place = 0;
  MPI_Comm_rank(part, &place);
  std::atomic<std::int64_t> in_part{0};
  std::atomic<std::int64_t> in_all{0};
  {
    WorkPool<int> of_part(part, {.name = "part"});
    MPI_Comm_free(&part);
    WorkPool<int> of_all(ring.comm, {.name = "all"});
    if (place == 0) of_part.push(15);
    if (ring.rank == 0) of_all.push(16);
    finish([&] {
      task("part").launch([&] { (void)of_part.process(Halves{in_part}); });
      task("all").launch([&] { (void)of_all.process(Halves{in_all}); });
    });
  }
  EXPECT_EQ(sum(static_cast<std::uint64_t>(in_part)), calls(15) * std::min(ring.size, 2));
  EXPECT_EQ(sum(static_cast<std::uint64_t>(in_all)), calls(16));
}

TEST(PoolTest, more_items_than_there_can_be_are_refused) {
  const Ring ring;
  WorkPool<std::int64_t> pool(MPI_COMM_WORLD, {.victims = UINT32_MAX});  // no more than there are
  if (ring.rank == 0) pool.push(1);
  std::atomic<int> refused{0};
  pool.process([&refused](const std::int64_t&, Emit<std::int64_t>& emit) {
    for (const std::size_t count : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 8 + 1}) {
      try {
        (void)emit.append(count);
      } catch (const std::bad_alloc&) {
        ++refused;
      }
    }
  });
  EXPECT_EQ(sum(static_cast<std::uint64_t>(refused.load())), 3);
}

TEST(PoolTest, items_that_fill_a_message_and_functions_that_call_mpi) {
  struct Big {
    int n;
    char bytes[detail::item_bytes_max - sizeof(int)];
  };
  Ring ring;
  WorkPool<Big> pool(ring.comm);
  std::atomic<std::int64_t> visited{0};
  std::atomic<int> wrong{0};
  if (ring.rank == 0) pool.push({9, "nine"});
  (void)pool.process([&](const Big& item, Emit<Big>& emit) {
    ++visited;
    wrong += std::string(item.bytes) == "nine" ? 0 : 1;
    int got = 0;
    MPI_Sendrecv(&item.n, 1, MPI_INT, ring.rank, item.n, &got, 1, MPI_INT, ring.rank, item.n,
                 ring.comm, MPI_STATUS_IGNORE);
    if (item.n < 2) return;
    for (const int less : {1, 2}) {
      Big* const child = emit.append(1);
      *child = item;
      child->n -= less;
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(sum(static_cast<std::uint64_t>(visited)), calls(9));
}

TEST(PoolTest, misuse_is_refused_on_all_ranks) {
  Ring ring;
  if (ring.size > 1) {
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm inter = MPI_COMM_NULL;
    MPI_Comm_split(ring.comm, ring.rank % 2, 0, &half);
    MPI_Intercomm_create(half, 0, ring.comm, 1 - ring.rank % 2, 5, &inter);
    EXPECT_THROW(WorkPool<int>{inter}, Error);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
    if (ring.rank == 0) {
      EXPECT_THROW(WorkPool<int>{ring.comm}, Error);
    } else {
      EXPECT_THROW(WorkPool<double>{ring.comm}, Error);
    }
  }
  WorkPool<int> pool(ring.comm);
  EXPECT_EQ(sum(pool.process([](const int, Emit<int>&) {}).items), 0);
}

}  // namespace
}  // namespace imbrex::test
