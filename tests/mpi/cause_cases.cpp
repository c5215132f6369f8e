// SPDX-License-Identifier: BSD-3-Clause
// Programs that hang, one for each cause that the first line of a report names (src/diagnosis), as
// far as report_cases.cpp has none; reports.cmake says what each must print.
#include <mpi.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "cases.hpp"
#include "imbrex/future_space.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"
#include "imbrex/mpi_phaser.hpp"
#include "imbrex/phaser.hpp"

namespace {

using imbrex::task;

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

// Each rank sends a message that MPI keeps until its receive begins.
void both_send() {
  static double block[1 << 17] = {};
  imbrex::finish([] {
    task("exchange").launch([] {
      MPI_Send(block, 1 << 17, MPI_DOUBLE, 1 - rank_in_world(), 3, MPI_COMM_WORLD);
      MPI_Recv(block, 1 << 17, MPI_DOUBLE, 1 - rank_in_world(), 3, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
    });
  });
}

// The send of each rank follows its receive.
void send_follows_receive() {
  static int block = 0;
  imbrex::finish([] {
    task("fill").out(block).launch([] { receive(1 - rank_in_world(), 3, MPI_COMM_WORLD); });
    task("pass on").in(block).launch([] { send(1 - rank_in_world(), 3, MPI_COMM_WORLD); });
  });
}

// Rank 1 waits for a message of rank 0, which waits for rank 1 in a collective.
void missing_in_collective() {
  imbrex::finish([] {
    task("sum").launch([] {
      if (rank_in_world() == 1) receive(0, 5, MPI_COMM_WORLD);
      const int mine = 1;
      int all = 0;
      MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
      if (rank_in_world() == 0) send(1, 5, MPI_COMM_WORLD);
    });
  });
}
void missing_at_the_end() {
  if (rank_in_world() == 0) MPI_Barrier(MPI_COMM_WORLD);
}

// Rank 0 sends to itself what rank 1 should send.
void wrong_source() {
  if (rank_in_world() == 1) return;
  send(0, 7, MPI_COMM_WORLD);
  receive(1, 7, MPI_COMM_WORLD);
}

// Each rank awaits the future that the other one puts after that.
void futures_crosswise() {
  imbrex::FutureSpace<int> sums(MPI_COMM_WORLD, {.home = [](std::uint64_t guid) {
                                                   return static_cast<int>(guid);
                                                 },
                                                 .name = "sums"});
  const auto rank = static_cast<std::uint64_t>(rank_in_world());
  const int other = sums[1 - rank].get();
  sums.set(rank, other + 1);
  sums.close();
}

void tag_for_good() {
  rank_in_world() == 0 ? receive(1, 7, MPI_COMM_WORLD) : send(0, 8, MPI_COMM_WORLD);
}

void never_received() {
  const double values[8] = {};
  if (rank_in_world() == 0) MPI_Ssend(values, 8, MPI_DOUBLE, 1, 3, MPI_COMM_WORLD);
}

void freed_communicator() {
  MPI_Comm halo;
  MPI_Comm_dup(MPI_COMM_WORLD, &halo);
  MPI_Comm_set_name(halo, "halo");
  if (rank_in_world() == 0) receive(1, 7, halo);
  MPI_Comm_free(&halo);
}

// The test kills rank 1.
void dies() {
  while (rank_in_world() == 1) pause();
  receive(1, 7, MPI_COMM_WORLD);
}

// One task comes to the first phaser, the other one to the second.
void phasers_crosswise() {
  imbrex::finish([] {
    const imbrex::Phaser first(imbrex::signal_wait), second(imbrex::signal_wait);
    task("forth").phased(first).phased(second).launch([=] {
      first.next();
      second.next();
    });
    task("back").phased(first).phased(second).launch([=] {
      second.next();
      first.next();
    });
  });
}

// Rank 0 comes to the first phaser, rank 1 to the second.
void rank_phasers_crosswise() {
  imbrex::finish([] {
    const imbrex::MpiPhaser first(MPI_COMM_WORLD, imbrex::signal_wait, {.name = "first"});
    const imbrex::MpiPhaser second(MPI_COMM_WORLD, imbrex::signal_wait, {.name = "second"});
    task("step").phased(first).phased(second).launch([=] {
      const bool forth = rank_in_world() == 0;
      (forth ? first : second).next();
      (forth ? second : first).next();
    });
  });
}

// Rank 0 keeps the lock of its part of a window until a message of rank 1 has come, which locks
// that part before it sends.
void window_locked() {
  int value = 0;
  MPI_Win window;
  MPI_Win_create(&value, sizeof value, sizeof value, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank_in_world() == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    usleep(300'000);  // rank 1 waits, so that its file has the completion of its receive
    send(1, 4, MPI_COMM_WORLD);
    receive(1, 5, MPI_COMM_WORLD);
    MPI_Win_unlock(0, window);
  } else {
    receive(0, 4, MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    const int mine = 1;
    MPI_Put(&mine, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
    MPI_Win_unlock(0, window);
    send(0, 5, MPI_COMM_WORLD);
  }
  MPI_Win_free(&window);
}

const imbrex::test::Cases cases{
    {"rank_phasers_crosswise", rank_phasers_crosswise},
    {"window_locked", window_locked},
    {"tag_for_good", tag_for_good},
    {"never_received", never_received},
    {"freed_communicator", freed_communicator},
    {"dies", dies},
    {"phasers_crosswise", phasers_crosswise},
    {"both_send", both_send},
    {"send_follows_receive", send_follows_receive},
    {"missing_in_collective", missing_in_collective},
    {"missing_at_the_end", missing_at_the_end},
    {"wrong_source", wrong_source},
    {"futures_crosswise", futures_crosswise},
};

}  // namespace

int main(int argc, char** argv) {
  const auto& run = imbrex::test::chosen(cases, argc, argv).second;
  MPI_Init(&argc, &argv);
  run();
  MPI_Finalize();
}
