// SPDX-License-Identifier: BSD-3-Clause
// Collectives of tasks that run at the same time, in an order that all ranks share: by keys, and by
// an access.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>

#include "imbrex/collective.hpp"
#include "imbrex/mpi.h"
#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

std::vector<int> shuffled(const int count, const std::uint32_t seed, const int rank) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::seed_seq seeds{seed, static_cast<std::uint32_t>(rank)};
  std::mt19937 random(seeds);
  std::ranges::shuffle(order, random);
  return order;
}

// One collective of number `i`, of a kind that goes by it: of a length and with values that are
// wrong wherever two are mixed up.
void collective_of(const int i, MPI_Comm comm, const int rank, const int size) {
  const auto n = static_cast<std::size_t>(1 + i % 7);
  const int count = static_cast<int>(n);
  std::vector<int> in(n, -1);
  std::vector<int> out(n, 1000 * i + rank);
  std::vector<int> sums(n, 1000 * i * size + size * (size - 1) / 2);
  MPI_Request request = MPI_REQUEST_NULL;
  switch (i % 5) {
    case 0:
      MPI_Allreduce(out.data(), in.data(), count, MPI_INT, MPI_SUM, comm);
      EXPECT_EQ(in, sums) << i;
      break;
    case 1:
      MPI_Iallreduce(out.data(), in.data(), count, MPI_INT, MPI_SUM, comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      EXPECT_EQ(in, sums) << i;
      break;
    case 2: {
      const int root = i % size;
      if (rank == root) in.assign(n, 1000 * i);
      MPI_Bcast(in.data(), count, MPI_INT, root, comm);
      EXPECT_EQ(in, std::vector<int>(n, 1000 * i)) << i;
      break;
    }
    case 3: {
      const Collective x = allreduce({out.data(), count, MPI_INT}, {in.data(), count, MPI_INT},
                                     MPI_SUM, comm);
      x.all().get();
      EXPECT_EQ(in, sums) << i;
      break;
    }
    default:
      MPI_Ibarrier(comm, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

// Every rank spawns the tasks in another order, and runs them in any.
TEST(Ordered, tasks_that_come_in_any_order_start_in_one_order) {
  for (std::uint32_t round = 0; round < 8; ++round) {
    const Ring ring;
    finish([&] {
      for (const int i : shuffled(40, round, ring.rank)) {
        task("collective").launch([&, i] {
          if (round % 4 == 3 && i % 8 == ring.rank) sleep_ms(1);
          const CollectiveOrder order = order_collectives(static_cast<std::uint64_t>(i));
          collective_of(i, ring.comm, ring.rank, ring.size);
        });
      }
    });
  }
}

// The n-th of a key is the n-th of that key everywhere; a scope may have several.
TEST(Ordered, one_key_may_have_many_collectives) {
  const Ring ring;
  finish([&] {
    for (const int chain : shuffled(6, 1, ring.rank)) {
      task("chain").launch([&, chain] {
        const std::string name = "chain " + std::to_string(chain);
        for (int i = 0; i < 10; ++i) {
          const CollectiveOrder order = order_collectives(name);
          collective_of(100 * chain + 2 * i, ring.comm, ring.rank, ring.size);
          collective_of(100 * chain + 2 * i + 1, ring.comm, ring.rank, ring.size);
        }
      });
    }
  });
}

// Each communicator has an order of its own; users of another communicator do not wait for it.
TEST(Ordered, communicators_have_orders_of_their_own) {
  const Ring one;
  const Ring other;
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(one.comm, one.rank % 2, -one.rank, &half);  // rank 0 is another one there
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(half, &rank);
  MPI_Comm_size(half, &size);
  finish([&] {
    for (const int i : shuffled(20, 2, one.rank)) {
      task("both").launch([&, i] {
        const CollectiveOrder order = order_collectives(static_cast<std::uint64_t>(i));
        collective_of(i, one.comm, one.rank, one.size);
        collective_of(i, other.comm, other.rank, other.size);
        collective_of(i, half, rank, size);
      });
    }
  });
  MPI_Comm_free(&half);
}

// Rank 0 comes to all of them before another rank comes to any, and the collectives are in flight
// together: each waits for a message that is sent when all have been started.
TEST(Ordered, only_starts_are_ordered) {
  const Ring ring;
  constexpr int count = 6;
  std::atomic<int> started{0};
  std::vector<Future<void>> ends;
  for (const int i : shuffled(count, 3, ring.rank)) {
    ends.push_back(task("start").spawn([&, i] {
      MPI_Request request = MPI_REQUEST_NULL;
      int sum = 0;
      const int mine = i;
      {
        const CollectiveOrder order = order_collectives(static_cast<std::uint64_t>(i));
        MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, ring.comm, &request);
      }
      started.fetch_add(1);
      while (started.load() < count) yield();
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      EXPECT_EQ(sum, i * ring.size);
    }));
  }
  for (Future<void>& end : ends) end.get();
}

TEST(Ordered, the_innermost_scope_counts) {
  const Ring ring;
  finish([&] {
    for (const int i : shuffled(12, 4, ring.rank)) {
      task("nested").launch([&, i] {
        const CollectiveOrder outer = order_collectives("never used");
        {
          const CollectiveOrder inner = order_collectives(static_cast<std::uint64_t>(i));
          collective_of(i, ring.comm, ring.rank, ring.size);
        }
      });
    }
  });
}

// A scope without a collective takes no turn, nor does a scope that is left by an exception.
TEST(Ordered, an_empty_scope_delays_no_task) {
  const Ring ring;
  finish([&] {
    for (const int i : shuffled(8, 5, ring.rank)) {
      task("empty").launch([&, i] {
        if (ring.rank == 0 || i % 2 == 0) {
          const CollectiveOrder order = order_collectives(static_cast<std::uint64_t>(100 + i));
        }
        try {
          const CollectiveOrder order = order_collectives(static_cast<std::uint64_t>(i));
          collective_of(i, ring.comm, ring.rank, ring.size);
          throw std::runtime_error("left");
        } catch (const std::runtime_error&) {
        }
        collective_of(i, MPI_COMM_SELF, 0, 1);  // in none
      });
    }
  });
}

// A call that MPI refuses has had its turn.
TEST(Ordered, a_failed_call_has_had_its_turn) {
  const Ring ring;
  MPI_Comm_set_errhandler(ring.comm, MPI_ERRORS_RETURN);
  finish([&] {
    for (const int i : shuffled(6, 6, ring.rank)) {
      task("refused").launch([&, i] {
        const CollectiveOrder order = order_collectives(static_cast<std::uint64_t>(i));
        int value = 0;
        EXPECT_NE(MPI_Bcast(&value, 1, MPI_INT, ring.size + 3, ring.comm), MPI_SUCCESS);
        EXPECT_THROW((void)broadcast({&value, 1, MPI_INT}, ring.size, ring.comm), Error);
        collective_of(i, ring.comm, ring.rank, ring.size);
      });
    }
  });
}

TEST(Ordered, threads_of_the_program_and_main_take_part) {
  const Ring ring;
  const auto by_key = [&](const int i) {
    const CollectiveOrder order = order_collectives(static_cast<std::uint64_t>(i));
    collective_of(i, ring.comm, ring.rank, ring.size);
  };
  on_unknown_thread([&] {
    std::vector<std::thread> threads;
    for (const int i : shuffled(5, 7, ring.rank)) threads.emplace_back(by_key, i);
    for (std::thread& thread : threads) thread.join();
  });
  finish([&] {
    for (int i = 1; i < 5; ++i) task("beside main").launch([&, i] { by_key(i); });
    by_key(0);
  });
}

// A rank may be far ahead.
TEST(Ordered, rank_zero_may_be_far_ahead) {
  const Ring ring;
  constexpr int count = 500;
  if (ring.rank == 0) {
    std::vector<int> values(count);
    std::vector<MPI_Request> requests(count);
    for (std::size_t i = 0; i < count; ++i) {
      const CollectiveOrder order = order_collectives(i % 10);
      values[i] = static_cast<int>(i);
      MPI_Ibcast(&values[i], 1, MPI_INT, 0, ring.comm, &requests[i]);
    }
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    return;
  }
  sleep_ms(20);
  finish([&] {
    for (const int key : shuffled(10, 8, ring.rank)) {
      task("follow").launch([&, key] {
        for (int i = key; i < count; i += 10) {
          const CollectiveOrder order = order_collectives(static_cast<std::uint64_t>(key));
          int value = -1;
          MPI_Bcast(&value, 1, MPI_INT, 0, ring.comm);
          EXPECT_EQ(value, i);
        }
      });
    }
  });
}

// Spawned in one order on all ranks; the access is free for the next task as soon as the
// collectives have been started: all of them wait until the last task runs.
TEST(Ordered, the_order_as_spawned_releases_its_access_when_all_have_started) {
  const Ring ring;
  constexpr int count = 8;
  int turn = 0;
  std::atomic<int> started{0};
  finish([&] {
    for (int i = 0; i < count; ++i) {
      task("as spawned").inout(turn).launch([&, i] {
        std::array<MPI_Request, 2> requests{};
        std::array<int, 2> sums{};
        const int mine = i;
        {
          const CollectiveOrder order = order_collectives_as_spawned(turn, 2);
          EXPECT_EQ(started.fetch_add(1), i);
          MPI_Iallreduce(&mine, &sums[0], 1, MPI_INT, MPI_SUM, ring.comm, &requests[0]);
          EXPECT_EQ(started.load(), i + 1);
          MPI_Iallreduce(&mine, &sums[1], 1, MPI_INT, MPI_MAX, ring.comm, &requests[1]);
        }
        while (started.load() < count) yield();
        MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
        EXPECT_EQ(sums[0], i * ring.size);
        EXPECT_EQ(sums[1], i);
      });
    }
  });
  EXPECT_EQ(started.load(), count);
  // Blocking ones, and objects.
  finish([&] {
    for (int i = 0; i < 30; ++i) {
      task("as spawned").inout(turn).launch([&, i] {
        const CollectiveOrder order = order_collectives_as_spawned(turn);
        collective_of(i, ring.comm, ring.rank, ring.size);
      });
    }
  });
}

TEST(Ordered, the_order_as_spawned_needs_its_access) {
  const Ring ring;
  MPI_Comm_set_errhandler(ring.comm, MPI_ERRORS_RETURN);
  int turn = 0;
  task("without access").spawn([&] {
    const CollectiveOrder order = order_collectives_as_spawned(turn);
    EXPECT_EQ(MPI_Barrier(ring.comm), MPI_ERR_OTHER);
  }).get();
  EXPECT_THROW((void)order_collectives_as_spawned(turn, 0), Error);
}

TEST(Ordered, the_functions_of_c_order_collectives) {
  const Ring ring;
  EXPECT_EQ(imbrex_collective_order_end(), IMBREX_ERR_USE);
  EXPECT_EQ(imbrex_collective_order_begin_by_name(nullptr), IMBREX_ERR_USE);
  int turn = 0;
  EXPECT_EQ(imbrex_collective_order_begin_as_spawned(&turn, 0), IMBREX_ERR_USE);
  finish([&] {
    for (const int i : shuffled(10, 9, ring.rank)) {
      task("c").launch([&, i] {
        EXPECT_EQ(i % 2 == 0 ? imbrex_collective_order_begin(static_cast<std::uint64_t>(i))
                             : imbrex_collective_order_begin_by_name(std::to_string(i).c_str()),
                  IMBREX_SUCCESS);
        collective_of(i, ring.comm, ring.rank, ring.size);
        EXPECT_EQ(imbrex_collective_order_end(), IMBREX_SUCCESS);
      });
    }
  });
  finish([&] {
    for (int i = 0; i < 10; ++i) {
      task("c").inout(turn).launch([&, i] {
        EXPECT_EQ(imbrex_collective_order_begin_as_spawned(&turn, 1), IMBREX_SUCCESS);
        collective_of(i, ring.comm, ring.rank, ring.size);
        EXPECT_EQ(imbrex_collective_order_end(), IMBREX_SUCCESS);
      });
    }
  });
  const CollectiveOrder outer = order_collectives(1);
  EXPECT_EQ(imbrex_collective_order_end(), IMBREX_ERR_USE);  // that one is not C's
}

// The rank waits for a key that rank 0 comes to only afterwards.
TEST(Ordered, a_communicator_is_not_freed_under_a_waiting_start) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP() << "nobody waits for another";
  const char* const workers = std::getenv("IMBREX_WORKERS");
  if (workers == nullptr || workers != std::string("1")) {
    GTEST_SKIP() << "with one worker alone a task that has begun waits when main goes on";
  }
  std::atomic<bool> begun{false};
  MPI_Comm_set_errhandler(ring.comm, MPI_ERRORS_RETURN);
  Future<void> done;
  if (ring.rank != 0) {
    done = task("wait").spawn([&] {
      begun.store(true);
      const CollectiveOrder order = order_collectives("late");
      MPI_Barrier(ring.comm);
    });
    const Bustle bustle;
    while (!begun.load()) yield();
    MPI_Comm comm = ring.comm;
    EXPECT_EQ(MPI_Comm_free(&comm), MPI_ERR_COMM);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (ring.rank == 0) {
    const CollectiveOrder order = order_collectives("late");
    MPI_Barrier(ring.comm);
  } else {
    done.get();
  }
}

}  // namespace
}  // namespace imbrex::test
