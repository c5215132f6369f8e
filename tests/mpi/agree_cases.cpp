// SPDX-License-Identifier: BSD-3-Clause
// Programs whose ranks begin collectives in different orders, and some that look like it and are
// right; checks.cmake says what IMBREX_CHECK must print.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "cases.hpp"
#include "imbrex/collective.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"

namespace {

using imbrex::task;

int rank = 0;
int size = 1;

void run_for(const double seconds) {
  const double end = MPI_Wtime() + seconds;
  while (MPI_Wtime() < end) imbrex::yield();
}

int sum_of(const int mine, MPI_Comm comm) {
  int sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm);
  return sum;
}

// ---- what is named ------------------------------------------------------------------------------

// Two tasks at the same time, on the last rank in the other order. The other ranks are not there
// before it has begun both.
void in_other_orders(const std::function<void()>& one, const std::function<void()>& two) {
  const bool is_last = rank == size - 1;
  int word = 0;
  if (!is_last) {
    MPI_Recv(&word, 1, MPI_INT, size - 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (is_last) task("two").launch(two);
  if (is_last) run_for(0.05);
  task("one").launch(one);
  run_for(0.05);
  if (!is_last) task("two").launch(two);
  if (is_last) {
    for (int to = 0; to < size - 1; ++to) MPI_Send(&word, 1, MPI_INT, to, 7, MPI_COMM_WORLD);
  }
}

// The sums of two tasks are mixed up, and nothing hangs.
void sums_mixed() {
  static int one = 0;
  static int two = 0;
  in_other_orders([] { one = sum_of(1, MPI_COMM_WORLD); },
                  [] { two = sum_of(100, MPI_COMM_WORLD); });
  imbrex::taskwait();
  if (one == size || two == 100 * size) std::printf("not mixed\n");
}

void requests_mixed() {
  const auto sum = [](const int mine) {
    int all = 0;
    MPI_Request request;
    MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  };
  in_other_orders([&] { sum(1); }, [&] { sum(100); });
  imbrex::taskwait();
}

void objects_mixed() {
  const auto sum = [](const int mine) {
    std::vector<int> in(static_cast<std::size_t>(size), mine);
    std::vector<int> out(in.size());
    imbrex::alltoall({in.data(), 1, MPI_INT}, {out.data(), 1, MPI_INT}, MPI_COMM_WORLD).all().get();
  };
  in_other_orders([&] { sum(1); }, [&] { sum(100); });
  imbrex::taskwait();
}

// These cases hang, or fail as MPI likes: the rank that sees the finding ends the program.
void other_calls() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  static int value = 0;
  in_other_orders([] { MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD); },
                  [] { MPI_Barrier(MPI_COMM_WORLD); });
  run_for(0.5);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

void other_roots() {
  static std::array<int, 64> values{};
  for (int i = 0; i < 3; ++i) MPI_Barrier(MPI_COMM_WORLD);
  task("share").launch([] { MPI_Bcast(values.data(), 8, MPI_INT, 1 - rank, MPI_COMM_WORLD); });
  run_for(0.5);
  MPI_Abort(MPI_COMM_WORLD, 3);
}

void other_operations() {
  const int mine = rank;
  int all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT, rank == 0 ? MPI_SUM : MPI_MAX, MPI_COMM_WORLD);
}

// On a half of the ranks in one order, on the other in the other: each task waits for its turn.
void spawned_in_other_orders() {
  int order = 0;
  const auto one = [&order] {
    task("one").inout(order).launch([&order] {
      const imbrex::CollectiveOrder scope = imbrex::order_collectives_as_spawned(order);
      sum_of(1, MPI_COMM_WORLD);
    });
  };
  const auto two = [&order] {
    task("two").inout(order).launch([&order] {
      const imbrex::CollectiveOrder scope = imbrex::order_collectives_as_spawned(order);
      sum_of(2, MPI_COMM_WORLD);
    });
  };
  if (rank % 2 == 0) one();
  two();
  if (rank % 2 != 0) one();
  imbrex::taskwait();
}

// The root of a broadcast need not wait for those who never come.
void fewer_in_world() {
  int value = 0;
  if (rank == 0) {
    task("share").spawn([&] { MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD); }).get();
  }
}

void fewer_when_freed() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "halves");
  int value = 0;
  MPI_Bcast(&value, 1, MPI_INT, 0, comm);
  if (rank == 0) MPI_Bcast(&value, 1, MPI_INT, 0, comm);
  MPI_Comm_free(&comm);
}

MPI_Comm idup_of(MPI_Comm comm) {
  MPI_Comm made;
  MPI_Request request;
  MPI_Comm_idup(comm, &made, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  return made;
}

// Its first rank has nothing to do there.
void none_begun() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  int value = 0;
  if (rank == 1) MPI_Bcast(&value, 1, MPI_INT, 1, comm);
}

// In this case the communicator gives the collective no number.
void none_begun_nor_known() {
  MPI_Comm comm = idup_of(MPI_COMM_WORLD);
  int value = 0;
  if (rank == 1) MPI_Bcast(&value, 1, MPI_INT, 1, comm);
}

// ---- and what is not ----------------------------------------------------------------------------

// Ranks call the same from other lines, and tasks of other names, one after the other.
void right_branches() {
  for (int i = 0; i < 50; ++i) {
    if ((rank + i) % 2 == 0) {
      task("even").spawn([] { sum_of(1, MPI_COMM_WORLD); }).get();
    } else {
      task("odd").spawn([] { sum_of(1, MPI_COMM_WORLD); }).get();
    }
    if (rank == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
    } else {
      MPI_Request request;
      MPI_Ibarrier(MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
  }
}

void right_keys() {
  const auto by_key = [](const int i) {
    const imbrex::CollectiveOrder order = imbrex::order_collectives(static_cast<std::uint64_t>(i));
    if (sum_of(i, MPI_COMM_WORLD) != i * size) std::printf("wrong\n");
  };
  imbrex::finish([&] {
    for (int i = 0; i < 60; ++i) {
      const int mine = (7 * i + 11 * rank) % 60;
      if (mine % 2 == 0) {
        task("even").launch([&by_key, mine] { by_key(mine); });
      } else {
        task("odd").launch([&by_key, mine] { by_key(mine); });
      }
    }
  });
}

void right_accesses() {
  int order = 0;
  imbrex::finish([&] {
    for (int i = 0; i < 60; ++i) {
      auto one = i % 3 == 0 ? task("third") : task("other");
      static_cast<void>(one.inout(order));
      one.launch([&order, i] {
        const imbrex::CollectiveOrder scope = imbrex::order_collectives_as_spawned(order);
        if (sum_of(i, MPI_COMM_WORLD) != i * size) std::printf("wrong\n");
      });
    }
  });
}

// Tasks that may stand for each other.
void right_alike() {
  imbrex::finish([] {
    for (int i = 0; i < 40; ++i) {
      task("alike").launch([] {
        const int mine = 1;
        int sum = 0;
        MPI_Request request;
        MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      });
    }
  });
}

// Many come and go, each used by one task, some while others are; and some have part of the ranks,
// in another order, or are between groups.
void right_communicators() {
  for (int round = 0; round < 20; ++round) {
    std::array<MPI_Comm, 3> comms;
    for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
    imbrex::finish([&] {
      for (MPI_Comm& comm : comms) {
        task("own").launch([&comm] {
          for (int i = 0; i < 5; ++i) sum_of(i, comm);
        });
      }
      task("part").launch([part] {
        for (int i = 0; i < 3; ++i) sum_of(i, part);
      });
    });
    for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
    MPI_Comm_free(&part);
  }
  MPI_Comm half;
  MPI_Comm between;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 3, &between);
  for (int i = 0; i < 3; ++i) sum_of(i, between);
  MPI_Comm_free(&between);
  sum_of(1, half);  // and stays
}

// A rank whose part is over at once frees the communicator while others are still in it, or have
// not begun: no message of the check may be in flight there.
void right_freed() {
  MPI_Group group;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  std::vector<int> all(static_cast<std::size_t>(size));
  for (int round = 0; round < 100; ++round) {
    std::array<MPI_Comm, 4> comms;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_split(comms[0], 0, size - rank, &comms[1]);
    comms[2] = idup_of(comms[1]);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, 4, &comms[3]);
    for (MPI_Comm& comm : comms) {
      task("gather").spawn([&] {
        MPI_Gather(&round, 1, MPI_INT, all.data(), 1, MPI_INT, size - 1, comm);
      }).get();
      MPI_Comm_free(&comm);
    }
  }
  MPI_Group_free(&group);
}

void right_objects() {
  std::vector<int> in(static_cast<std::size_t>(size), 1);
  std::vector<int> out(in.size());
  for (int i = 0; i < 20; ++i) {
    imbrex::alltoall({in.data(), 1, MPI_INT}, {out.data(), 1, MPI_INT}, MPI_COMM_WORLD).all().get();
    MPI_Alltoall(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Gather(in.data(), 1, MPI_INT, out.data(), 1, MPI_INT, i % size, MPI_COMM_WORLD);
  }
}

// The root is far ahead.
void right_ahead() {
  constexpr int count = 500;
  std::vector<int> values(count);
  std::vector<MPI_Request> requests(count);
  if (rank == size - 1) run_for(0.1);
  for (int i = 0; i < count; ++i) {
    MPI_Ibcast(&values[i], 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
}

const imbrex::test::Cases cases{
    {"sums_mixed", sums_mixed},
    {"requests_mixed", requests_mixed},
    {"objects_mixed", objects_mixed},
    {"other_calls", other_calls},
    {"other_roots", other_roots},
    {"other_operations", other_operations},
    {"spawned_in_other_orders", spawned_in_other_orders},
    {"fewer_in_world", fewer_in_world},
    {"fewer_when_freed", fewer_when_freed},
    {"none_begun", none_begun},
    {"none_begun_nor_known", none_begun_nor_known},
    {"right_branches", right_branches},
    {"right_keys", right_keys},
    {"right_accesses", right_accesses},
    {"right_alike", right_alike},
    {"right_communicators", right_communicators},
    {"right_freed", right_freed},
    {"right_objects", right_objects},
    {"right_ahead", right_ahead},
};

}  // namespace

int main(int argc, char** argv) {
  const auto& run = imbrex::test::chosen(cases, argc, argv).second;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  run();
  MPI_Finalize();
}
