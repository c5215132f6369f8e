// SPDX-License-Identifier: BSD-3-Clause
// Two ranks of one worker each lend processors: rank 0 has tasks, and rank 1 waits in MPI. The
// argument says how they end; lend.cmake says what each must print.
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "cases.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/imbrex.hpp"
#include "imbrex/mpi.hpp"
#include "imbrex/work_pool.hpp"

namespace {

using Clock = std::chrono::steady_clock;

void require(const bool condition, const char* const text) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", text);
  std::_Exit(1);
}

int begin() {
  MPI_Init(nullptr, nullptr);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

void compute() {
  const std::clock_t end = std::clock() + CLOCKS_PER_SEC / 1000;
  while (std::clock() < end) {
  }
}

void compute_in_tasks() {
  imbrex::finish([] {
    for (int each = 0; each < 60; ++each) imbrex::task("compute").launch([] { compute(); });
  });
}

void compute_in_a_pool() {
  imbrex::WorkPool<int> pool(MPI_COMM_SELF, {.name = "of one rank"});
  for (int each = 0; each < 60; ++each) pool.push(each);
  pool.process([](int, imbrex::Emit<int>&) { compute(); });
}

// Work of a millisecond each, in rounds, until this rank has borrowed a processor.
void borrow(void (*const work)() = compute_in_tasks) {
  const auto limit = Clock::now() + std::chrono::seconds(30);
  while (imbrex::detail::totals().borrowed_s == 0) {
    require(Clock::now() < limit, "rank 0 has borrowed no processor in 30 s");
    work();
  }
  std::printf("borrowed\n");
  std::fflush(stdout);
}

// The last of these tasks ends the program while others run on both processors.
void end_among_tasks(void (*const end)()) {
  imbrex::finish([end] {
    for (int each = 0; each < 60; ++each) imbrex::task("compute").launch([] { compute(); });
    imbrex::task("ends").launch([end] { end(); });
    for (int each = 0; each < 60; ++each) imbrex::task("compute").launch([] { compute(); });
  });
}

void wait_for_rank_0() {
  int never = 0;
  MPI_Recv(&never, 1, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void lends_for(void (*const work)()) {
  if (begin() == 0) {
    borrow(work);
    const int value = 1;
    MPI_Send(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
  } else {
    wait_for_rank_0();
    require(imbrex::detail::totals().lent_s > 0, "rank 1 has lent its processor");
  }
  MPI_Finalize();
}

void lends() { lends_for(compute_in_tasks); }
void lends_for_a_pool() { lends_for(compute_in_a_pool); }

// A rank that has ended its work lends until the last one has.
void ends_early() {
  if (begin() == 0) borrow();
  MPI_Finalize();
}

// Both ranks in turn: each one lends, and gets its processor back for its own tasks.
void takes_turns() {
  const int rank = begin();
  for (int turn = 0; turn < 6; ++turn) {
    if (turn % 2 == rank) {
      imbrex::finish([] {
        for (int each = 0; each < 40; ++each) imbrex::task("compute").launch([] { compute(); });
      });
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
}

void owner_is_killed() {
  if (begin() == 0) {
    borrow();
    const int value = 1;
    MPI_Send(&value, 1, MPI_INT, 1, 7, MPI_COMM_WORLD);
    for (;;) end_among_tasks([] {});
  }
  wait_for_rank_0();
  raise(SIGKILL);
}

void borrower_is_killed() {
  if (begin() == 0) {
    borrow();
    end_among_tasks([] { raise(SIGKILL); });
  }
  wait_for_rank_0();
}

void borrower_aborts() {
  if (begin() == 0) {
    borrow();
    end_among_tasks([] { MPI_Abort(MPI_COMM_WORLD, 7); });
  }
  wait_for_rank_0();
}

const imbrex::test::Cases cases{{"lends", lends},
                                {"lends_for_a_pool", lends_for_a_pool},
                                {"ends_early", ends_early},
                                {"takes_turns", takes_turns},
                                {"owner_is_killed", owner_is_killed},
                                {"borrower_is_killed", borrower_is_killed},
                                {"borrower_aborts", borrower_aborts}};

}  // namespace

int main(int argc, char** argv) {
  const auto& chosen = imbrex::test::chosen(cases, argc, argv);
  if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
    std::printf("borrowed: skipped, one processor\n");
    return 0;
  }
  chosen.second();
  return 0;
}
