// SPDX-License-Identifier: BSD-3-Clause
// Sends, and receives, of one envelope in tasks that nothing orders, and in tasks that something
// orders, whatever the schedule is; checks.cmake says what each case must print. Rank 1 has the
// tasks, rank 0 the other end.
#include <mpi.h>
#include <unistd.h>

#include <array>
#include <atomic>

#include "cases.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"
#include "imbrex/phaser.hpp"

namespace {

using imbrex::finish;
using imbrex::task;

constexpr int tag = 5;
int rank = 0;
int other = 0;
int left = 0;   // what tasks name
int right = 0;

void send(const int its_tag = tag, MPI_Comm comm = MPI_COMM_WORLD) {
  const int value = 1;
  MPI_Send(&value, 1, MPI_INT, other, its_tag, comm);
}
void receive(const int its_tag = tag, MPI_Comm comm = MPI_COMM_WORLD) {
  int value = 0;
  MPI_Recv(&value, 1, MPI_INT, other, its_tag, comm, MPI_STATUS_IGNORE);
}
// Rank 0 takes so many messages.
void take(const int count) {
  for (int i = 0; i < count; ++i) receive();
}
// Time for another worker, if there is one, to run what is ready.
void let_others_run() { usleep(20'000); }

// ---- nothing orders them ---------------------------------------------------------------------

void two_sums() {
  if (rank == 0) return take(2);
  finish([] {
    task("left sum").launch([] { send(); });
    task("right sum").launch([] { send(); });
  });
}

// The first task may have sent before the second one is made.
void one_is_made_late() {
  if (rank == 0) return take(2);
  finish([] {
    task("left sum").launch([] { send(); });
    let_others_run();
    task("right sum").launch([] { send(); });
  });
}

// Each task has predecessors, one that both share among them.
void behind_others() {
  if (rank == 0) return take(2);
  static int all = 0;
  finish([] {
    task("read all").out(all).launch([] {});
    task("read left").in(all).out(left).launch([] {});
    task("left sum").in(all, left).launch([] { send(); });
    let_others_run();
    task("read right").in(all).out(right).launch([] {});
    task("right sum").in(all, right).launch([] { send(); });
  });
}

void both_wait_for_one_task() {
  if (rank == 0) return take(2);
  const imbrex::Future<int> seven = task("seven").spawn([] { return 7; });
  finish([&] {
    task("left sum").launch([&] {
      (void)seven.get();
      send();
    });
    let_others_run();
    task("right sum").in(seven).launch([] { send(); });
  });
}

// Other messages of the tasks order nothing, since a send of standard mode may be buffered.
void other_sends() {
  if (rank == 0) {
    receive(1);
    receive(2);
    return take(2);
  }
  finish([] {
    task("left sum").launch([] {
      send(1);
      send();
    });
    task("right sum").launch([] {
      send(2);
      send();
    });
  });
}

void one_at_a_time() {
  if (rank == 0) return take(2);
  finish([] {
    task("left sum").mutexinoutset(left).launch([] { send(); });
    task("right sum").mutexinoutset(left).launch([] { send(); });
  });
}

template <class Send>
void pair_of(const imbrex::Name one, const imbrex::Name two, Send its_send) {
  finish([&] {
    task(one).launch([&] { its_send(); });
    task(two).launch([&] { its_send(); });
  });
}

void each_way() {
  static int out = 1;
  if (rank == 0) return take(10);
  pair_of("left Isend", "right Isend", [] {
    MPI_Request request;
    MPI_Isend(&out, 1, MPI_INT, other, tag, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  });
  pair_of("left Ssend", "right Ssend",
          [] { MPI_Ssend(&out, 1, MPI_INT, other, tag, MPI_COMM_WORLD); });
  pair_of("left start", "right start", [] {
    MPI_Request request;
    MPI_Send_init(&out, 1, MPI_INT, other, tag, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
  });
  pair_of("left exchange", "right exchange", [] {
    MPI_Sendrecv(&out, 1, MPI_INT, other, tag, nullptr, 0, MPI_INT, MPI_PROC_NULL, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  });
  pair_of("left child", "right child", [] {
    task("grandchild").launch([] { send(); });
  });
}

// A task and its parent, which does not wait for it.
void parent_and_child() {
  if (rank == 0) return take(2);
  task("left sum").launch([] { send(); });
  let_others_run();
  send();
  imbrex::taskwait();
}

void two_receives() {
  if (rank == 0) {
    send();
    return send();
  }
  finish([] {
    task("take left").launch([] { receive(); });
    let_others_run();
    task("take right").launch([] {
      int value = 0;
      MPI_Request request;
      MPI_Irecv(&value, 1, MPI_INT, other, tag, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    });
  });
}

// ---- something orders them -------------------------------------------------------------------

void in_one_task() {
  task("both").launch([] {
    send();
    task("third").launch([] { send(); });  // made behind the send
    imbrex::taskwait();
    send();
  });
  imbrex::taskwait();
}

void by_dependencies() {
  static std::array<int, 100> range{};
  finish([] {
    task("one").out(left).launch([] { send(); });
    task("two").in(left).launch([] {});
    task("three").inout(left).launch([] { send(); });
    task("four").in(left).out(right).launch([] {});
    task("five").in(right).launch([] { send(); });
    imbrex::taskwait();
    task("six").out(imbrex::range(&range[0], 50)).launch([] { send(); });
    task("seven").in(imbrex::range(&range[40], 50)).launch([] { send(); });
    task("eight").out(range[45]).launch([] { send(); });
  });
}

void by_early_release() {
  finish([] {
    task("one").out(left).launch([] {
      send();
      imbrex::release(left);
      imbrex::yield();
    });
    task("two").in(left).launch([] { send(); });
  });
}

void by_futures() {
  finish([] {
    const imbrex::Future<void> one = task("one").spawn([] { send(); });
    const imbrex::Future<void> two = task("two").spawn([one] {
      one.wait();
      send();
    });
    const imbrex::Future<void> three = task("three").in(two).spawn([] { send(); });
    const imbrex::Future<void> four = task("four").spawn([] {});
    imbrex::when_all(three, four).wait();
    send();
    imbrex::Promise<int> promise("promise");
    imbrex::Future<int> future = promise.future();
    task("five").launch([promise]() mutable {
      send();
      promise.set(1);
    });
    task("six").launch([future] {
      (void)future.get();
      send();
    });
  });
}

void by_waits() {
  finish([] { task("one").launch([] { task("grandchild").launch([] { send(); }); }); });
  task("two").launch([] { send(); });
  imbrex::taskwait();
  const imbrex::Future<void> three = task("three").spawn([] { send(); });
  three.wait();  // perhaps in place
  send();
}

void by_a_phaser() {
  finish([] {
    imbrex::Phaser step(imbrex::signal_wait);
    task("one").phased(step).launch([step] {
      send();
      step.next();
    });
    task("two").phased(step).launch([step] {
      step.next();
      send();
    });
    step.next();
  });
}

void by_a_flag_and_yield() {
  static std::atomic<bool> flag{false};
  finish([] {
    task("one").launch([] {
      send();
      flag = true;
    });
    task("two").launch([] {
      do imbrex::yield();
      while (!flag);
      send();
    });
  });
}

// Rank 0 answers the first message; the answer lets the second task send.
void by_another_rank() {
  for (const bool by_request : {false, true}) {
    finish([by_request] {
      task("one").launch([] { send(); });
      task("two").launch([by_request] {
        if (!by_request) {
          receive(6);
        } else {
          int value = 0;
          MPI_Request request;
          MPI_Irecv(&value, 1, MPI_INT, other, 6, MPI_COMM_WORLD, &request);
          for (int done = 0; done == 0;) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        }
        send();
      });
    });
  }
}

void by_a_synchronous_send() {
  finish([] {
    task("one").launch([] { send(); });
    task("two").launch([] {
      const int value = 1;
      MPI_Ssend(&value, 1, MPI_INT, other, 6, MPI_COMM_WORLD);
      send();
    });
  });
}

void by_a_barrier() {
  finish([] {
    task("one").launch([] {
      send();
      const int value = 1;
      MPI_Send(&value, 1, MPI_INT, other, 7, MPI_COMM_WORLD);
    });
    task("two").launch([] {
      MPI_Barrier(MPI_COMM_WORLD);
      send();
    });
  });
}

// The ends of "one" wait for a message.
void by_release_after() {
  finish([] {
    task("one").out(left).launch([] {
      static int value;
      send();
      MPI_Request request;
      MPI_Irecv(&value, 1, MPI_INT, other, 6, MPI_COMM_WORLD, &request);
      imbrex::release_after(request);
    });
    task("two").in(left).launch([] { send(); });
  });
}

void in_different_envelopes() {
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  if (rank == 0) {
    receive(1);
    receive(2);
    receive(1, copy);
  } else {
    finish([copy] {
      task("one").launch([] { send(1); });
      task("two").launch([] { send(2); });
      task("three").launch([copy] { send(1, copy); });
    });
  }
  // A communicator that gets the handle again.
  const imbrex::Future<void> four = task("four").spawn([copy] {
    rank == 0 ? receive(3, copy) : send(3, copy);
  });
  four.wait();
  MPI_Comm_free(&copy);
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  rank == 0 ? receive(3, copy) : send(3, copy);
  MPI_Comm_free(&copy);
}

// The program says that the order does not matter.
void as_the_program_allows() {
  MPI_Comm farm;
  MPI_Comm_dup(MPI_COMM_WORLD, &farm);
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "mpi_assert_allow_overtaking", "true");
  MPI_Comm_set_info(farm, info);
  MPI_Barrier(MPI_COMM_WORLD);  // under Open MPI, and on another communicator
  MPI_Info_free(&info);
  finish([farm] {
    for (int i = 0; i < 4; ++i) {
      task("part").launch([farm] { rank == 0 ? receive(tag, farm) : send(tag, farm); });
    }
  });
  MPI_Comm_free(&farm);
}

// A farm: each task takes what comes.
void from_any_source() {
  finish([] {
    for (int i = 0; i < 4; ++i) {
      task("worker").launch([] {
        int value = 0;
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      });
    }
    if (rank == 0) {
      for (int i = 0; i < 4; ++i) {
        for (int to = 0; to < 2; ++to) MPI_Send(&i, 1, MPI_INT, to, tag, MPI_COMM_WORLD);
      }
    }
  });
}

// Rank 1 runs the case. Rank 0 takes the messages with these tags, in this order; a negative tag is
// that of a message to rank 1, 0 a barrier.
template <class... Tags>
std::function<void()> on_rank_1(void (*const run)(), const Tags... tags) {
  return [=] {
    if (rank == 1) return run();
    for (const int each : {tags...}) {
      if (each == 0) {
        MPI_Barrier(MPI_COMM_WORLD);
      } else if (each < 0) {
        send(-each);
      } else {
        receive(each);
      }
    }
  };
}

const imbrex::test::Cases cases{
    {"two_sums", two_sums},
    {"one_is_made_late", one_is_made_late},
    {"behind_others", behind_others},
    {"both_wait_for_one_task", both_wait_for_one_task},
    {"other_sends", other_sends},
    {"one_at_a_time", one_at_a_time},
    {"each_way", each_way},
    {"parent_and_child", parent_and_child},
    {"two_receives", two_receives},
    {"in_one_task", on_rank_1(in_one_task, 5, 5, 5)},
    {"by_dependencies", on_rank_1(by_dependencies, 5, 5, 5, 5, 5, 5)},
    {"by_early_release", on_rank_1(by_early_release, 5, 5)},
    {"by_futures", on_rank_1(by_futures, 5, 5, 5, 5, 5, 5)},
    {"by_waits", on_rank_1(by_waits, 5, 5, 5, 5)},
    {"by_a_phaser", on_rank_1(by_a_phaser, 5, 5)},
    {"by_a_flag_and_yield", on_rank_1(by_a_flag_and_yield, 5, 5)},
    {"by_another_rank", on_rank_1(by_another_rank, 5, -6, 5, 5, -6, 5)},
    {"by_a_synchronous_send", on_rank_1(by_a_synchronous_send, 5, 6, 5)},
    {"by_a_barrier", on_rank_1(by_a_barrier, 5, 7, 0, 5)},
    {"by_release_after", on_rank_1(by_release_after, 5, -6, 5)},
    {"in_different_envelopes", in_different_envelopes},
    {"as_the_program_allows", as_the_program_allows},
    {"from_any_source", from_any_source},
};

}  // namespace

int main(int argc, char** argv) {
  const auto& run = imbrex::test::chosen(cases, argc, argv).second;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  other = 1 - rank;
  run();
  MPI_Finalize();
}
