// SPDX-License-Identifier: BSD-3-Clause
// Programs that hang, or that a user asks for a report; CMakeLists.txt says what each must print.
// All but the first few go on after the report: it changes nothing.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../until_printed.hpp"
#include "cases.hpp"
#include "imbrex/collective.hpp"
#include "imbrex/detail/groups.hpp"
#include "imbrex/future_space.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"
#include "mpi/messages/sends/limits.hpp"

namespace {

using imbrex::task;
using imbrex::test::until_printed;

void sleep_ms(int duration) { std::this_thread::sleep_for(std::chrono::milliseconds(duration)); }

int rank_in_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

void receive(int source, int tag, MPI_Comm comm) {
  double values[8] = {};
  MPI_Recv(values, 8, MPI_DOUBLE, source, tag, comm, MPI_STATUS_IGNORE);
}
void send(int destination, int tag, MPI_Comm comm) {
  const double values[8] = {};
  MPI_Send(values, 8, MPI_DOUBLE, destination, tag, comm);
}

// Rank 1 sends with another tag than rank 0 receives with; after a report it sends what is
// missing.
void wrong_tag() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "halo");
  if (rank_in_world() == 0) {
    static int ghost = 0;
    task("receive halo").out(ghost).launch([comm] { receive(1, 7, comm); });
    task("use halo").in(ghost).launch([] {});
    for (int tag = 20; tag < 80; ++tag) {
      task("receive block").launch([comm, tag] { receive(1, tag, comm); });
    }
    imbrex::finish([comm] { task("inner").launch([comm] { receive(1, 80, comm); }); });
  } else {
    send(0, 8, comm);
    task("compute").spawn([] { until_printed("compute"); }).get();
    for (int tag = 20; tag <= 80; ++tag) send(0, tag, comm);
    send(0, 7, comm);
  }
  imbrex::taskwait();
  if (rank_in_world() == 0) receive(1, 8, comm);
  MPI_Comm_free(&comm);
  std::printf("went on\n");
}

// Loops on calls that do not wait; what they ask for comes after a report.
void asks_in_vain() {
  if (rank_in_world() == 0) {
    task("tests").launch([] {
      int value = 0;
      MPI_Request request;
      MPI_Irecv(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &request);
      for (int done = 0; done == 0;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    });
    task("probes").launch([] {
      for (int there = 0; there == 0;) {
        MPI_Iprobe(1, 8, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
      }
      receive(1, 8, MPI_COMM_WORLD);
    });
    task("receives").launch([] { receive(1, 9, MPI_COMM_WORLD); });
  } else {
    task("compute").spawn([] { until_printed("MPI_Iprobe again"); }).get();
    const int value = 1;
    MPI_Send(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    for (const int tag : {8, 9}) send(0, tag, MPI_COMM_WORLD);
  }
  imbrex::taskwait();
  std::printf("went on\n");
}

// An element of 4 GiB, of which nothing comes.
void waits_for_large_type() {
  MPI_Datatype row = MPI_DATATYPE_NULL;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_contiguous(1 << 20, MPI_BYTE, &row);
  MPI_Type_contiguous(1 << 12, row, &type);
  MPI_Type_commit(&type);
  if (rank_in_world() == 0) {
    auto large = task("large").spawn([type] {
      char none = 0;
      MPI_Recv(&none, 1, type, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    });
    imbrex::yield();  // there is one worker: it waits now
    send(1, 8, MPI_COMM_WORLD);
    large.get();
  } else {
    receive(0, 8, MPI_COMM_WORLD);
    kill(getpid(), SIGUSR1);  // as a stall it would be told after the time that 4 GiB may need
    task("compute").spawn([] { until_printed("in \"large\""); }).get();
    MPI_Send(nullptr, 0, MPI_BYTE, 0, 9, MPI_COMM_WORLD);
  }
  MPI_Type_free(&row);
  MPI_Type_free(&type);
  std::printf("went on\n");
}

// A space is closed while a task awaits a future of it that no rank sets.
void closes_too_early() {
  imbrex::FutureSpace<int> sums(MPI_COMM_WORLD, {.home = [](std::uint64_t) { return 1; },
                                                 .name = "sums"});
  if (rank_in_world() == 0) static_cast<void>(sums[7]);
  sums.close();
}

void asks_in_vain_in_main() {
  if (rank_in_world() == 1) return receive(0, 9, MPI_COMM_WORLD);
  int value = 0;
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

// A function that MPI calls.
void copy_when_it_has_come(void*, void*, int*, MPI_Datatype*) {
  int value = 0;
  MPI_Request request;
  MPI_Irecv(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &request);
  for (int done = 0; done == 0;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
}

void asks_in_vain_in_callback() {
  if (rank_in_world() == 0) {
    MPI_Op op;
    MPI_Op_create(&copy_when_it_has_come, 1, &op);
    const int in = 0;
    int inout = 0;
    MPI_Reduce_local(&in, &inout, 1, MPI_INT, op);
    MPI_Op_free(&op);
  } else {
    task("compute").spawn([] { until_printed("MPI_Test again"); }).get();
    const int value = 1;
    MPI_Send(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
  }
  std::printf("went on\n");
}

// A computation that lets MPI make progress now and then does not wait.
void asks_and_computes() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(2500);
  while (std::chrono::steady_clock::now() < end) {
    int there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    const auto step = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
    while (std::chrono::steady_clock::now() < step) {
    }
  }
  std::printf("went on\n");
}

// Waits for requests, whose messages come after a report.
void wait_for_requests() {
  const auto receive_later = [](int tag, int* value) {
    MPI_Request request;
    MPI_Irecv(value, 1, MPI_INT, 1, tag, MPI_COMM_WORLD, &request);
    return request;
  };
  if (rank_in_world() == 0) {
    task("one").launch([=] {
      int value = 0;
      MPI_Request request = receive_later(7, &value);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
    task("all").launch([=] {
      int values[3];
      MPI_Request requests[3];
      for (int i = 0; i < 3; ++i) requests[i] = receive_later(20 + i, &values[i]);
      MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    });
  } else {
    task("compute").spawn([] { until_printed("and 2 more like this"); }).get();
    const int value = 1;
    for (const int tag : {7, 20, 21, 22}) MPI_Send(&value, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
  }
  imbrex::taskwait();
  std::printf("went on\n");
}

// The message is on another communicator.
void wrong_communicator() {
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "right one");
  const int other = 1 - rank_in_world();
  send(other, 7, MPI_COMM_WORLD);
  task("receive").spawn([=] { receive(other, 7, comm); }).get();
}

// Each rank waits for what the other does only after that.
void other_order() {
  static int order = 0;
  const auto sum = [] {
    const int mine = 1;
    int all = 0;
    MPI_Reduce(&mine, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  };
  const auto tell = [] {
    int value = 0;
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
  };
  if (rank_in_world() == 0) task("sum").inout(order).launch(sum);
  task("tell").inout(order).launch(tell);
  if (rank_in_world() != 0) task("sum").inout(order).launch(sum);
  imbrex::taskwait();
}

// Rank 0 comes to a key, and the other one to two that rank 0 never uses.
void turns() {
  const auto barrier = [](const char* const key) {
    return [key] {
      const imbrex::CollectiveOrder order = imbrex::order_collectives(key);
      MPI_Barrier(MPI_COMM_WORLD);
    };
  };
  if (rank_in_world() == 0) {
    task("first").launch(barrier("first"));
  } else {
    task("second").launch(barrier("second"));
    task("other").launch(barrier("other"));
  }
  imbrex::taskwait();
}

// The task that would send does not run, since one before it has failed; main waits for an answer.
void failed_sender() {
  if (rank_in_world() == 0) {
    task("receive").launch([] { receive(1, 7, MPI_COMM_WORLD); });
    imbrex::taskwait();
    send(1, 9, MPI_COMM_WORLD);
  } else {
    static int block = 0;
    task("load").out(block).launch([] { throw std::runtime_error("no such file"); });
    task("sends").in(block).launch([] { send(0, 7, MPI_COMM_WORLD); });
    receive(0, 9, MPI_COMM_WORLD);
  }
}

// The exception of the body of finish() is caught when its tasks are over, and one never is.
void thrown_in_finish() {
  imbrex::finish([] {
    task("receive").launch([] { receive(1 - rank_in_world(), 7, MPI_COMM_WORLD); });
    if (rank_in_world() == 1) throw std::runtime_error("the mesh is empty");
  });
}

// A program whose messages always come, but slowly: no stall.
void slow_messages() {
  const int rank = rank_in_world();
  for (int round = 0; round < 12; ++round) {
    if (rank == 0) {
      task("receive").spawn([] { receive(1, 7, MPI_COMM_WORLD); }).get();
    } else {
      sleep_ms(200);
      send(0, 7, MPI_COMM_WORLD);
    }
  }
}

// Asked while the only worker is busy and never polls.
void asked_while_busy() {
  if (rank_in_world() == 0) {
    task("waiting").launch([] { receive(1, 7, MPI_COMM_WORLD); });
    imbrex::yield();
    task("endless").spawn([] {
      kill(getpid(), SIGUSR1);
      until_printed("[1] ");
    }).get();
  } else {
    until_printed("[1] ");
    send(0, 7, MPI_COMM_WORLD);
  }
}

// A task's message has come, and the only worker computes: the thread that polls for it has
// noticed, and is none of the program's.
void polled_while_busy() {
  if (rank_in_world() == 0) {
    task("waiting").launch([] { receive(1, 7, MPI_COMM_WORLD); });
    imbrex::yield();
    int value = 0;
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, 1, 8, MPI_COMM_WORLD, &request);
    const imbrex::Future<MPI_Status> second = imbrex::when(request);
    send(1, 9, MPI_COMM_WORLD);
    task("endless").spawn([&second] {
      while (!second.ready()) {
      }
      kill(getpid(), SIGUSR1);
      until_printed("[1] ");
    }).get();
    (void)second.get();
    imbrex::taskwait();
  } else {
    receive(0, 9, MPI_COMM_WORLD);
    send(0, 7, MPI_COMM_WORLD);
    const int value = 1;
    MPI_Send(&value, 1, MPI_INT, 0, 8, MPI_COMM_WORLD);
    until_printed("[1] ");
  }
}

// Every rank is asked, as mpirun passes the signal on to all: one report is enough.
void all_asked() {
  MPI_Barrier(MPI_COMM_WORLD);
  kill(getpid(), SIGUSR1);
  task("pause").spawn([] {
    until_printed("rank 1 of 2");
    sleep_ms(500);  // for a second one
  }).get();
}

// The program's own handler stays in place.
std::atomic<int> handled{0};
void own_handler() {
  kill(getpid(), SIGUSR1);
  sleep_ms(500);
  std::printf("own handler ran %d times\n", handled.load());
}

// Rank 1 does not answer, because it is stopped: once rank 0, once rank 1 wants a report.
void silent_rank() {
  int pids[2] = {};
  const int mine = getpid();
  MPI_Allgather(&mine, 1, MPI_INT, pids, 1, MPI_INT, MPI_COMM_WORLD);
  const int rank = rank_in_world();
  for (int asker = 0; asker < 2; ++asker) {
    if (rank == asker) {
      task("asks").spawn([&] {
        kill(pids[1 - rank], SIGSTOP);
        kill(mine, SIGUSR1);
        until_printed(rank == 0 ? "no answer within" : "rank 0 does not answer");
        kill(pids[1 - rank], SIGCONT);
      }).get();
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// Finalising while another rank still waits for a message.
void asked_in_finalize() {
  if (rank_in_world() == 0) return;
  task("late").spawn([] {
    sleep_ms(500);
    kill(getpid(), SIGUSR1);
    until_printed("late");
  }).get();
}

void one_in_finalize() {
  if (rank_in_world() == 0) receive(1, 3, MPI_COMM_WORLD);
}

void both_receive() {
  imbrex::finish([] {
    task("exchange").launch([] { receive(1 - rank_in_world(), 3, MPI_COMM_WORLD); });
  });
}

// Long after a rank has said that all its tasks wait: under IMBREX_STALL=abort it has asked again.
void long_after_the_report() {
  until_printed(" waits, no message");
  sleep_ms(3500);
}

// Rank 0 waits, and rank 1 is busy: in main, in a task, in a thread that imbrex does not know.
void waits_for(void (*begin)()) {
  if (rank_in_world() == 1) return begin();
  task("receives").spawn([] { receive(1, 3, MPI_COMM_WORLD); }).get();
  std::printf("went on\n");
}
void send_late() {
  long_after_the_report();
  send(0, 3, MPI_COMM_WORLD);
}
void waits_for_main() { waits_for(send_late); }
void waits_for_task() {
  waits_for([] { task("computes").spawn(send_late).get(); });
}
void waits_for_thread() {
  waits_for([] {
    std::jthread thread([] {
      long_after_the_report();
      send(1, 4, MPI_COMM_WORLD);
    });
    receive(1, 4, MPI_COMM_WORLD);
    send(0, 3, MPI_COMM_WORLD);
  });
}
void waits_for_lock() {
  waits_for([] {
    std::mutex mutex;
    std::condition_variable changed;
    bool set = false;
    std::jthread thread([&] {
      long_after_the_report();
      const std::lock_guard guard(mutex);
      set = true;
      changed.notify_all();
    });
    task("blocks").spawn([&] {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return set; });
    }).get();
    send(0, 3, MPI_COMM_WORLD);
  });
}

// Rank 0 waits while rank 1 computes, and then rank 1 ends without the message.
void computes_and_forgets() {
  if (rank_in_world() == 0) return receive(1, 3, MPI_COMM_WORLD);
  task("computes").spawn(long_after_the_report).get();
}

// Each rank waits for what the other sends once it has the lock, which is held across the wait.
void lock_on_both_ranks() {
  static std::mutex mutex;
  imbrex::finish([] {
    task("holds").tied().launch([] {
      const std::lock_guard guard(mutex);
      receive(1 - rank_in_world(), 3, MPI_COMM_WORLD);
    });
    task("wants").launch([] {
      const std::lock_guard guard(mutex);
      send(1 - rank_in_world(), 3, MPI_COMM_WORLD);
    });
  });
}

// Main stands in a call that has no twin, before there is any task.
void splits_alone() {
  if (rank_in_world() == 0) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &half);
  } else {
    task("receives").spawn([] { receive(0, 3, MPI_COMM_WORLD); }).get();
  }
}

// Loops that ask and sleep in between.
void asks_and_sleeps() {
  task("asks").spawn([] {
    int value = 0;
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, 1 - rank_in_world(), 7, MPI_COMM_WORLD, &request);
    for (int done = 0; done == 0;) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  }).get();
}

// Work between two questions, of which a part is sleep. No stall, however often it asks.
void computes_and_sleeps() {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  const auto end = now() + std::chrono::milliseconds(3500);
  while (now() < end) {
    int there = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
    const auto step = now() + std::chrono::microseconds(200);
    while (now() < step) {
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  std::printf("went on\n");
}

// A task that asks holds a lock of OpenMP's, so the ready ones have to wait.
void asks_with_a_lock() {
  if (rank_in_world() == 0) {
    imbrex::finish([] {
      task("asks").launch([] {
        imbrex::detail::note_lock(1);
        int value = 0;
        MPI_Request request;
        MPI_Irecv(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD, &request);
        for (int done = 0; done == 0;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        imbrex::detail::note_lock(-1);
      });
      for (int i = 0; i < 10; ++i) task("ready").launch([] {});
    });
  } else {
    task("compute").spawn([] { until_printed("MPI_Test again"); }).get();
    const int value = 1;
    MPI_Send(&value, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
  }
  std::printf("went on\n");
}

// A message comes while the task that probes for it has let another go first.
void probes_in_turn() {
  if (rank_in_world() == 0) {
    imbrex::finish([] {
      task("probes").launch([] {
        for (int there = 0; there == 0;) {
          MPI_Iprobe(1, 8, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        }
        receive(1, 8, MPI_COMM_WORLD);
      });
      task("computes").launch([] {
        send(1, 9, MPI_COMM_WORLD);
        sleep_ms(500);  // the message comes, and no thread of this rank polls
        kill(getpid(), SIGUSR1);
        until_printed("rank 1 of 2");
      });
    });
  } else {
    receive(0, 9, MPI_COMM_WORLD);
    send(0, 8, MPI_COMM_WORLD);
    until_printed("rank 1 of 2");
  }
  std::printf("went on\n");
}

void own_abort_handler() {
  signal(SIGABRT, [](int) {
    const char text[] = "own handler of SIGABRT\n";
    (void)!write(STDOUT_FILENO, text, sizeof text - 1);
    _exit(3);
  });
  both_receive();
}

void alone() {}

imbrex::Collective held(const std::vector<int>& out, std::vector<int>& in) {
  return imbrex::alltoall({out.data(), 8, MPI_INT}, {in.data(), 8, MPI_INT}, MPI_COMM_WORLD,
                          {.parts = 4, .hold = true});
}

// Rank 0 sends one part late.
void held_part() {
  const std::vector<int> out(16);
  std::vector<int> in(16);
  const imbrex::Collective x = held(out, in);
  for (int to = 0; to < 2; ++to) {
    for (int part = 0; part < 4; ++part) {
      if (rank_in_world() == 1 || to == 0 || part != 2) x.send(to, part);
    }
  }
  if (rank_in_world() == 0) {
    MPI_Recv(nullptr, 0, MPI_INT, 1, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    x.send(1, 2);
  } else {
    sleep_ms(100);
    std::jthread later([] {
      until_printed("no task has called send");
      MPI_Send(nullptr, 0, MPI_INT, 0, 9, MPI_COMM_WORLD);
    });
    x.from(0, 2).get();
  }
  x.all().get();
  std::puts("went on");
}

// Rank 0 holds all operations that it has begun, so none is in flight there. Rank 1 computes.
void held_by_root() {
  const std::vector<int> out(16);
  std::vector<int> in(8);
  const imbrex::Collective x = imbrex::scatter({out.data(), 8, MPI_INT}, {in.data(), 8, MPI_INT},
                                               0, MPI_COMM_WORLD, {.hold = true});
  std::jthread later;
  if (rank_in_world() == 0) {
    later = std::jthread([&] {
      until_printed("no task has called send");
      for (int to = 0; to < 2; ++to) x.send(to);
    });
  } else {
    task("compute").spawn([] { until_printed("no task has called send"); }).get();
  }
  x.all().get();
  std::puts("went on");
}

// No rank ever sends, and all wait for a message.
void held_for_good() {
  const std::vector<int> out(16);
  std::vector<int> in(8);
  const imbrex::Collective x = imbrex::scatter({out.data(), 8, MPI_INT}, {in.data(), 8, MPI_INT},
                                               0, MPI_COMM_WORLD, {.hold = true});
  x.all().get();
}

// No rank ever sends.
void held_in_finalize() {
  static const std::vector<int> out(16);
  static std::vector<int> in(16);
  static imbrex::Collective x;
  x = held(out, in);
}

// A task of rank 0 throws before it sends the last part. In one case main has the object too, so
// that another task may still send; in the other case the object dies with the task.
void send_all_but_one(const imbrex::Collective& x) {
  for (int to = 0; to < 2; ++to) {
    for (int part = 0; part < 4; ++part) {
      if (rank_in_world() == 1 || to == 0 || part != 2) x.send(to, part);
    }
  }
}
imbrex::Future<void> throw_before_send(const imbrex::Collective& x) {
  return task("compute").spawn([x] {
    if (rank_in_world() == 0) throw std::runtime_error("no such file");
  });
}

void thrown_before_send_held() {
  const std::vector<int> out(16);
  std::vector<int> in(16);
  const imbrex::Collective x = held(out, in);
  send_all_but_one(x);
  const imbrex::Future<void> computed = throw_before_send(x);
  std::jthread later;
  if (rank_in_world() == 0) {
    later = std::jthread([&] {
      until_printed("no task has called send");
      x.send(1, 2);
    });
  }
  x.all().get();
  try {
    computed.get();
  } catch (const std::runtime_error&) {
  }
  std::puts("went on");
}

void thrown_before_send_gone() {
  static const std::vector<int> out(16);
  static std::vector<int> in(16);
  imbrex::Collective x = held(out, in);
  send_all_but_one(x);
  const imbrex::Future<void> all = x.all();
  const imbrex::Future<void> computed = throw_before_send(std::exchange(x, {}));
  try {
    all.get();
  } catch (const imbrex::Error& error) {
    std::printf("all() throws: %s\n", error.what());
  }
  MPI_Barrier(MPI_COMM_WORLD);  // rank 1 comes, since it is told
}

// A rank that holds messages is no stall: it lets them go. When it is asked it says so.
void messages_in_turn() {
  static double block[1 << 17] = {};
  if (rank_in_world() == 0) {
    for (int tag = 0; tag < 4; ++tag) {
      task("send block").launch([tag] {
        MPI_Send(block, 1 << 17, MPI_DOUBLE, 1, tag, MPI_COMM_WORLD);
      });
    }
  } else {
    task("compute").spawn([] {
      sleep_ms(2500);
      kill(getpid(), SIGUSR1);
      until_printed("queue, see IMBREX_SENDS");
    }).get();
    for (int tag = 0; tag < 4; ++tag) {
      MPI_Recv(block, 1 << 17, MPI_DOUBLE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  imbrex::taskwait();
  std::printf("went on\n");
}

const imbrex::test::Cases cases{
    {"wrong_tag", wrong_tag},
    {"asks_in_vain", asks_in_vain},
    {"closes_too_early", closes_too_early},
    {"waits_for_large_type", waits_for_large_type},
    {"asks_in_vain_in_main", asks_in_vain_in_main},
    {"asks_in_vain_in_callback", asks_in_vain_in_callback},
    {"asks_and_computes", asks_and_computes},
    {"wait_for_requests", wait_for_requests},
    {"wrong_communicator", wrong_communicator},
    {"other_order", other_order},
    {"turns", turns},
    {"failed_sender", failed_sender},
    {"thrown_in_finish", thrown_in_finish},
    {"slow_messages", slow_messages},
    {"asked_while_busy", asked_while_busy},
    {"polled_while_busy", polled_while_busy},
    {"all_asked", all_asked},
    {"own_handler", own_handler},
    {"silent_rank", silent_rank},
    {"asked_in_finalize", asked_in_finalize},
    {"one_in_finalize", one_in_finalize},
    {"both_receive", both_receive},
    {"waits_for_main", waits_for_main},
    {"waits_for_task", waits_for_task},
    {"waits_for_thread", waits_for_thread},
    {"waits_for_lock", waits_for_lock},
    {"computes_and_forgets", computes_and_forgets},
    {"lock_on_both_ranks", lock_on_both_ranks},
    {"splits_alone", splits_alone},
    {"asks_and_sleeps", asks_and_sleeps},
    {"computes_and_sleeps", computes_and_sleeps},
    {"asks_with_a_lock", asks_with_a_lock},
    {"probes_in_turn", probes_in_turn},
    {"own_abort_handler", own_abort_handler},
    {"alone", alone},
    {"messages_in_turn", messages_in_turn},
    {"held_part", held_part},
    {"held_by_root", held_by_root},
    {"held_for_good", held_for_good},
    {"held_in_finalize", held_in_finalize},
    {"thrown_before_send_held", thrown_before_send_held},
    {"thrown_before_send_gone", thrown_before_send_gone},
};

}  // namespace

int main(int argc, char** argv) {
  const auto& [name, run] = imbrex::test::chosen(cases, argc, argv);
  if (name == "own_handler") {
    signal(SIGUSR1, [](int) { handled.fetch_add(1); });
  }
  if (name == "messages_in_turn") {
    imbrex::mpi::sends::initial_limits().patience = 60'000'000'000;  // none goes for want of time
  }
  MPI_Init(&argc, &argv);
  run();
  MPI_Finalize();
}
