// SPDX-License-Identifier: BSD-3-Clause
// Code that loops on a call of MPI that does not wait, until something is there: others run in
// between. Methodology: with one worker, what the loop asks for is made by a task that has not
// begun, here and on every other rank. If the loop kept its worker none of them would ever end.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "mpi_test.hpp"

namespace imbrex::test {
namespace {

constexpr int many = 3;

struct Exchange {
  const Ring& ring;
  int tag;
  std::array<int, many> in{};

  void send(MPI_Comm comm) const {
    for (int i = 0; i < many; ++i) {
      const int value = 10 * ring.rank + i;
      MPI_Send(&value, 1, MPI_INT, ring.next(), tag + i, comm);
    }
  }
  [[nodiscard]] std::vector<MPI_Request> receive() {
    std::vector<MPI_Request> requests(many);
    for (int i = 0; i < many; ++i) {
      MPI_Irecv(&in[i], 1, MPI_INT, ring.previous(), tag + i, ring.comm, &requests[i]);
    }
    return requests;
  }
  void expect() const {
    for (int i = 0; i < many; ++i) EXPECT_EQ(in[i], 10 * ring.previous() + i);
  }
};

using Loop = std::function<void(Exchange&)>;
const std::map<std::string, Loop> loops{
    {"test",
     [](Exchange& it) {
       for (MPI_Request& request : it.receive()) {
         for (int done = 0; done == 0;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
       }
     }},
    {"testall",
     [](Exchange& it) {
       std::vector<MPI_Request> requests = it.receive();
       for (int done = 0; done == 0;) {
         MPI_Testall(many, requests.data(), &done, MPI_STATUSES_IGNORE);
       }
     }},
    {"testany",
     [](Exchange& it) {
       std::vector<MPI_Request> requests = it.receive();
       for (int left = many, done = 0, index = 0; left > 0; left -= done) {
         MPI_Testany(many, requests.data(), &index, &done, MPI_STATUS_IGNORE);
       }
     }},
    {"testsome",
     [](Exchange& it) {
       std::vector<MPI_Request> requests = it.receive();
       std::array<int, many> indices{};
       for (int left = many, found = 0; left > 0; left -= found) {
         MPI_Testsome(many, requests.data(), &found, indices.data(), MPI_STATUSES_IGNORE);
       }
     }},
    {"request_get_status",
     [](Exchange& it) {
       for (MPI_Request& request : it.receive()) {
         for (int done = 0; done == 0;) {
           MPI_Request_get_status(request, &done, MPI_STATUS_IGNORE);
         }
         MPI_Wait(&request, MPI_STATUS_IGNORE);
       }
     }},
    {"iprobe",
     [](Exchange& it) {
       for (int i = 0; i < many; ++i) {
         for (int there = 0; there == 0;) {
           MPI_Iprobe(it.ring.previous(), it.tag + i, it.ring.comm, &there, MPI_STATUS_IGNORE);
         }
         MPI_Recv(&it.in[i], 1, MPI_INT, it.ring.previous(), it.tag + i, it.ring.comm,
                  MPI_STATUS_IGNORE);
       }
     }},
    {"improbe",
     [](Exchange& it) {
       for (int i = 0; i < many; ++i) {
         MPI_Message message = MPI_MESSAGE_NULL;
         for (int there = 0; there == 0;) {
           MPI_Improbe(it.ring.previous(), it.tag + i, it.ring.comm, &there, &message,
                       MPI_STATUS_IGNORE);
         }
         MPI_Mrecv(&it.in[i], 1, MPI_INT, &message, MPI_STATUS_IGNORE);
       }
     }},
};

class Asks : public testing::TestWithParam<std::string> {
 protected:
  const Ring ring_;
};
INSTANTIATE_TEST_SUITE_P(Each, Asks,
                         testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto& [name, loop] : loops) names.push_back(name);
                           return names;
                         }()),
                         [](const auto& its) { return its.param; });

TEST_P(Asks, in_a_task_let_the_task_run_that_sends) {
  for (int round = 0; round < 5; ++round) {
    std::vector<Exchange> all;
    for (int i = 0; i < 4; ++i) all.push_back({.ring = ring_, .tag = many * i});
    finish([&] {
      for (Exchange& one : all) task("asks").launch([&] { loops.at(GetParam())(one); });
      for (Exchange& one : all) task("sends").launch([&] { one.send(ring_.comm); });
    });
    for (const Exchange& one : all) one.expect();
  }
}

TEST_P(Asks, in_main_let_the_task_run_that_sends) {
  for (int round = 0; round < 5; ++round) {
    Exchange one{.ring = ring_, .tag = 0};
    finish([&] {
      task("sends").launch([&] { one.send(ring_.comm); });
      loops.at(GetParam())(one);
    });
    one.expect();
  }
}

// Two that ask may not pass the worker to each other and leave nothing for the third.
TEST_P(Asks, in_two_tasks_leave_the_worker_to_a_chain_of_others) {
  std::array<Exchange, 2> all{Exchange{.ring = ring_, .tag = 0},
                              Exchange{.ring = ring_, .tag = many}};
  int steps = 0;
  finish([&] {
    for (Exchange& one : all) task("asks").launch([&] { loops.at(GetParam())(one); });
    for (int i = 0; i < 200; ++i) task("step").inout(steps).launch([&] { ++steps; });
    for (Exchange& one : all) {
      task("sends").in(steps).launch([&] {
        EXPECT_EQ(steps, 200);
        one.send(ring_.comm);
      });
    }
  });
  for (const Exchange& one : all) one.expect();
}

// Calls of MPI that wait meanwhile complete too: with one worker no other thread polls.
TEST_P(Asks, let_tasks_go_on_that_wait_in_mpi) {
  if (ring_.size == 1) GTEST_SKIP() << "needs two ranks";
  Exchange one{.ring = ring_, .tag = 0};
  finish([&] {
    task("waits, then sends").launch([&] {
      int go = 0;
      MPI_Recv(&go, 1, MPI_INT, ring_.previous(), 99, ring_.comm, MPI_STATUS_IGNORE);
      one.send(ring_.comm);
    });
    task("asks").launch([&] { loops.at(GetParam())(one); });
    task("lets the others go").launch([&] {
      const int go = 1;
      MPI_Send(&go, 1, MPI_INT, ring_.next(), 99, ring_.comm);
    });
  });
  one.expect();
}

TEST(AsksOfWindows, let_the_task_run_that_completes_the_epoch) {
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 50000000
  GTEST_SKIP() << "MPICH 4 ends the epoch before the data are there, and frees the group twice";
#endif
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP() << "needs two ranks";
  int value = -1;
  MPI_Win window;
  MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, ring.comm, &window);
  MPI_Group all, from, to;
  MPI_Comm_group(ring.comm, &all);
  const int previous = ring.previous();
  const int next = ring.next();
  MPI_Group_incl(all, 1, &previous, &from);
  MPI_Group_incl(all, 1, &next, &to);
  MPI_Win_post(from, 0, window);
  finish([&] {
    task("asks").launch([&] {
      for (int done = 0; done == 0;) MPI_Win_test(window, &done);
    });
    task("puts").launch([&] {
      MPI_Win_start(to, 0, window);
      MPI_Put(&ring.rank, 1, MPI_INT, next, 0, 1, MPI_INT, window);
      MPI_Win_complete(window);
    });
  });
  EXPECT_EQ(value, previous);
  for (MPI_Group* const group : {&all, &from, &to}) MPI_Group_free(group);
  MPI_Win_free(&window);
}

TEST(AsksOfWindows, sync_lets_the_task_run_that_stores) {
  const Ring ring;
  volatile int* memory = nullptr;
  MPI_Win window;
  MPI_Win_allocate_shared(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF,
                          static_cast<void*>(&memory), &window);
  *memory = 0;
  MPI_Win_lock_all(0, window);
  finish([&] {
    task("asks").launch([&] {
      while (*memory == 0) MPI_Win_sync(window);
    });
    task("stores").launch([&] { *memory = 1; });
  });
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
}

#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
TEST(AsksForParts, let_the_task_run_that_sends_them) {
  const Ring ring;
  if (ring.size == 1) GTEST_SKIP() << "needs two ranks";
  std::array<int, many> in{};
  std::array<int, many> out{};
  out.fill(ring.rank);
  MPI_Request requests[2];
  MPI_Precv_init(in.data(), many, 1, MPI_INT, ring.previous(), 3, ring.comm, MPI_INFO_NULL,
                 &requests[0]);
  MPI_Psend_init(out.data(), many, 1, MPI_INT, ring.next(), 3, ring.comm, MPI_INFO_NULL,
                 &requests[1]);
  MPI_Startall(2, requests);
  finish([&] {
    task("asks").launch([&] {
      for (int part = 0; part < many; ++part) {
        for (int there = 0; there == 0;) MPI_Parrived(requests[0], part, &there);
      }
    });
    task("sends").launch([&] { MPI_Pready_range(0, many - 1, requests[1]); });
  });
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  EXPECT_EQ(in[1], ring.previous());
  for (MPI_Request& request : requests) MPI_Request_free(&request);
}
#endif

// Within a function that MPI calls the loop keeps its thread, and finds what comes by itself.
void add_what_comes(void* in, void* inout, int*, MPI_Datatype*) {
  const Ring ring;
  Exchange one{.ring = ring, .tag = 40};
  std::vector<MPI_Request> requests = one.receive();
  one.send(ring.comm);
  for (MPI_Request& request : requests) {
    for (int done = 0; done == 0;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  }
  one.expect();
  *static_cast<int*>(inout) += *static_cast<int*>(in);
}

TEST(AsksInCallbacks, end) {
  MPI_Op op;
  MPI_Op_create(&add_what_comes, 1, &op);
  finish([&] {
    task("reduces").launch([&] {
      const int one = 1;
      int sum = 2;
      MPI_Reduce_local(&one, &sum, 1, MPI_INT, op);
      EXPECT_EQ(sum, 3);
    });
    task("other").launch([] {});
  });
  MPI_Op_free(&op);
}

// Code that finds one thing again and again while it waits for another.
TEST(AsksForTwo, let_the_task_run_that_sends_the_other) {
  const Ring ring;
  int value = 0;
  int in = -1;
  MPI_Request there;
  MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, ring.comm, &there);
  finish([&] {
    task("asks").launch([&] {
      for (int found = 0; found == 0;) {
        int done = 0;
        MPI_Request none = MPI_REQUEST_NULL;
        MPI_Test(&none, &done, MPI_STATUS_IGNORE);
        MPI_Request_get_status(there, &done, MPI_STATUS_IGNORE);
        MPI_Iprobe(ring.previous(), 50, ring.comm, &found, MPI_STATUS_IGNORE);
      }
      MPI_Recv(&in, 1, MPI_INT, ring.previous(), 50, ring.comm, MPI_STATUS_IGNORE);
    });
    task("sends").launch([&] { MPI_Send(&ring.rank, 1, MPI_INT, ring.next(), 50, ring.comm); });
  });
  EXPECT_EQ(in, ring.previous());
  MPI_Wait(&there, MPI_STATUS_IGNORE);
}

// Others are ready all the time, and a loop that asks in vain loses the time of one of them each
// hundred questions, however many there are. (seeded draws one of all that are ready.)
TEST(AsksBesideLongTasks, come_back_after_one_of_them) {
  const char* const policy = std::getenv("IMBREX_POLICY");
  if (policy != nullptr && std::string(policy).starts_with("seeded")) GTEST_SKIP() << "draws";
  constexpr int tasks = 50;
  std::atomic<int> run{0};
  int seen = -1;
  const Ring ring;
  MPI_Request never;
  int nothing = 0;
  MPI_Irecv(&nothing, 1, MPI_INT, ring.rank, 5, ring.comm, &never);
  finish([&] {
    task("asks").launch([&] {
      for (int i = 0; i < tasks; ++i) {
        task("long").launch([&] {
          ++run;
          sleep_ms(1);
        });
      }
      for (int i = 0, done = 0; i < 250; ++i) MPI_Test(&never, &done, MPI_STATUS_IGNORE);
      seen = run.load();
    });
  });
  MPI_Cancel(&never);
  MPI_Wait(&never, MPI_STATUS_IGNORE);
  EXPECT_LT(seen, tasks);
}

// Loops take turns with one of the other tasks in between, also where one of them has ended. The
// longest time without a turn is counted in tasks of the others.
TEST(AsksBesideLongTasks, take_turns_when_one_of_them_ends) {
  const char* const policy = std::getenv("IMBREX_POLICY");
  const char* const workers = std::getenv("IMBREX_WORKERS");
  if (policy != nullptr && std::string(policy).starts_with("seeded")) GTEST_SKIP() << "draws";
  if (workers == nullptr || std::string(workers) != "1") GTEST_SKIP() << "counts on one worker";
  const Ring ring;
  MPI_Request never;
  int nothing = 0;
  MPI_Irecv(&nothing, 1, MPI_INT, ring.rank, 5, ring.comm, &never);
  int run = 0;
  int longest = 0;
  bool begun = false;
  bool over = false;
  const auto ask = [&](const int times) {
    for (int i = 0, done = 0, before = run; i < times; ++i) {
      MPI_Test(&never, &done, MPI_STATUS_IGNORE);
      longest = std::max(longest, run - before);
      before = run;
    }
  };
  const std::function<void()> other = [&] {
    ++run;
    if (!over) task("other").launch([&] { other(); });
  };
  // The loops begin first: a policy may prefer new tasks to them for ever.
  finish([&] {
    for (const int rows : {3, 5, 7}) {
      task("asks").launch([&, rows] {
        while (!begun) ask(100);
        ask(100 * rows);
      });
    }
    task("asks").launch([&] {
      ask(1000);
      begun = true;
      for (int i = 0; i < 30; ++i) task("other").launch([&] { other(); });
      ask(2000);
      over = true;
    });
  });
  MPI_Cancel(&never);
  MPI_Wait(&never, MPI_STATUS_IGNORE);
  EXPECT_LE(longest, 8);
}

}  // namespace
}  // namespace imbrex::test
