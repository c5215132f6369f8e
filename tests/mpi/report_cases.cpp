// SPDX-License-Identifier: BSD-3-Clause
// Programs that hang, or that somebody asks what they do; CMakeLists.txt says what each must print.
// All but the first few go on after the report: it changes nothing.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "cases.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"

namespace {

using imbrex::task;

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

// Rank 1 sends with another tag than rank 0 receives with; after two seconds it sends what is
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
    task("compute").spawn([] { sleep_ms(2500); }).get();
    for (int tag = 20; tag <= 80; ++tag) send(0, tag, comm);
    send(0, 7, comm);
  }
  imbrex::taskwait();
  if (rank_in_world() == 0) receive(1, 8, comm);
  MPI_Comm_free(&comm);
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

// A program whose messages always come, but slowly: no stall.
void slow_messages() {
  const int rank = rank_in_world();
  for (int round = 0; round < 8; ++round) {
    if (rank == 0) {
      task("receive").spawn([] { receive(1, 7, MPI_COMM_WORLD); }).get();
    } else {
      sleep_ms(300);
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
      sleep_ms(1000);
    }).get();
  } else {
    sleep_ms(1500);
    send(0, 7, MPI_COMM_WORLD);
  }
}

// Every rank is asked, as mpirun passes the signal on to all: one report is enough.
void all_asked() {
  MPI_Barrier(MPI_COMM_WORLD);
  kill(getpid(), SIGUSR1);
  task("pause").spawn([] { sleep_ms(1500); }).get();
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
        sleep_ms(rank == 0 ? 1500 : 3800);
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
    sleep_ms(1500);  // until the report has been printed, also on a busy machine
  }).get();
}

const imbrex::test::Cases cases{
    {"wrong_tag", wrong_tag},
    {"wrong_communicator", wrong_communicator},
    {"slow_messages", slow_messages},
    {"asked_while_busy", asked_while_busy},
    {"all_asked", all_asked},
    {"own_handler", own_handler},
    {"silent_rank", silent_rank},
    {"asked_in_finalize", asked_in_finalize},
};

}  // namespace

int main(int argc, char** argv) {
  const auto& [name, run] = imbrex::test::chosen(cases, argc, argv);
  if (name == "own_handler") {
    signal(SIGUSR1, [](int) { handled.fetch_add(1); });
  }
  MPI_Init(&argc, &argv);
  run();
  MPI_Finalize();
}
