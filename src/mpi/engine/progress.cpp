// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/progress.hpp"

#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "base/arch.hpp"
#include "imbrex/error.hpp"
#include "imbrex/mpi.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/engine/notice.hpp"
#include "mpi/engine/threads/ship.hpp"
#include "mpi/engine/threads/ship_blocking.hpp"
#include "mpi/engine/threads/thread.hpp"
#include "mpi/engine/timing.hpp"

namespace imbrex::mpi::progress {

using namespace threads;

namespace {

struct State {
  Choice choice{Mode::automatic, Mode::automatic, ""};
  bool runs = false;
  bool serves = false;       // the thread has initialised MPI
  pthread_t main{};          // the thread of the program that asked for it, if serves
  Standing standing;         // before the runtime starts
};
// Never destroyed: the thread may run while static objects are.
State& state() noexcept {
  static State& the_state = *new State;
  return the_state;
}

std::string obstacle_to_own_processor() {
  if (detail::reserved_processor() >= 0) return "";
  return why_none_to_spare(state().standing);
}

// Makes progress in MPI without an operation. A probe for one source and one tag: hints about
// wildcards do not matter.
void drive_mpi() {
  int found = 0;
  PMPI_Iprobe(0, 0, MPI_COMM_SELF, &found, MPI_STATUS_IGNORE);
}

void wake(void*) noexcept { the_thread().wake(); }

// Called at exit() without MPI_Finalize; the runtime ends next.
void stop_thread() { the_thread().leave(); }

void prepare(detail::Poller& poller, Mode mode) {
  poller.by_workers = workers_poll(mode);
  poller.noticed = has_callback(mode) ? &noticed : nullptr;
  const bool sleeps = mode == Mode::automatic || mode == Mode::shared_thread;
  poller.wake = sleeps ? &wake : nullptr;
}

void stop_thread_at_exit() {
  static const int registered = std::atexit(&stop_thread);
  static_cast<void>(registered);
}

void start_thread(const detail::Poller& poller, Mode mode) {
  if (mode == Mode::poll || mode == Mode::callback) return;
  const Pace pace = mode == Mode::automatic       ? Pace::steps_in
                    : mode == Mode::shared_thread ? Pace::shares
                                                  : Pace::owns;
  const ProgressThread::Setup setup{
      .poller = &poller,
      .pace = pace,
      .gap_us = static_cast<std::uint64_t>(detail::number_option("POLL_GAP_US")),
      .processor = has_own_processor(mode) ? detail::reserved_processor() : -1,
      .drive = &drive_mpi};
  if (state().serves) {
    ship([&] { the_thread().change(setup); });
  } else {
    stop_thread_at_exit();
    the_thread().start(setup);
  }
}

}  // namespace

void note_standing(const Standing& standing) noexcept { state().standing = standing; }

Mode asked_mode() { return mode_of(detail::text_option("PROGRESS")); }

// A malformed option is reported later, where every rank checks.
static bool thread_initialises() {
  try {
    return asked_mode() == Mode::dedicated_thread;
  } catch (const Error&) {
    return false;
  }
}

int initialise_mpi(int* argc, char*** argv, int* provided) {
  if (!thread_initialises()) return PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, provided);
  State& now = state();
  now.serves = true;
  now.main = base::this_thread();
  the_thread().serve();
  int code = MPI_SUCCESS;
  ship([&] { code = PMPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, provided); });
  stop_thread_at_exit();  // after MPI's own exit handlers, so it runs before them
  if (code == MPI_SUCCESS && *provided > MPI_THREAD_SINGLE && *provided < MPI_THREAD_MULTIPLE) {
    switches.ships_calls.store(true, std::memory_order_relaxed);
    *provided = MPI_THREAD_MULTIPLE;
  }
  return code;
}

int finalise_mpi() {
  State& now = state();
  if (!now.serves) return PMPI_Finalize();
  int code = MPI_SUCCESS;
  ship([&] { code = PMPI_Finalize(); });
  switches.ships_calls.store(false, std::memory_order_relaxed);
  the_thread().stop();
  return code;
}

int is_thread_main(int* flag) {
  if (!state().serves) return PMPI_Is_thread_main(flag);
  *flag = base::is_this_thread(state().main) ? 1 : 0;
  return MPI_SUCCESS;
}

int query_thread(int* provided) {
  const int code = PMPI_Query_thread(provided);
  if (code == MPI_SUCCESS && switches.ships_calls.load(std::memory_order_relaxed)) {
    *provided = MPI_THREAD_MULTIPLE;
  }
  return code;
}

// ---- the mode ----------------------------------------------------------------------------------

void start(detail::Poller& poller) {
  State& now = state();
  const Mode asked = asked_mode();
  Obstacles obstacles;
  if (has_callback(asked)) obstacles.callback = start_noticing();
  obstacles.own_processor = obstacle_to_own_processor();
  now.choice = choose(asked, obstacles);
  now.runs = true;
  if (!has_callback(now.choice.runs)) stop_noticing();
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && !now.choice.why.empty()) {
    print("progress: " + describe(now.choice));
  }
  prepare(poller, now.choice.runs);
  detail::add_poller(poller);
  start_thread(poller, now.choice.runs);
}

void stop(detail::Poller& poller) {
  if (!state().runs) return;
  state().runs = false;
  if (state().serves) {
    ship([] { the_thread().change(ProgressThread::serving); });
  } else {
    the_thread().stop();
  }
  stop_noticing();
  if (detail::started()) detail::remove_poller(poller);
}

void begin_poll() noexcept { forget_notices(); }

void report(const bool prints) {
  struct Row {
    char mode[400];
    double polls, seconds, notices;
  };
  Row mine{};
  const ProgressReport own = progress_report();
  std::snprintf(mine.mode, sizeof mine.mode, "%s", own.mode.c_str());
  mine.polls = static_cast<double>(own.polls);
  mine.seconds = own.seconds;
  mine.notices = static_cast<double>(own.notices);
  int ranks = 1;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<Row> rows(static_cast<std::size_t>(ranks));
  PMPI_Gather(&mine, sizeof mine, MPI_BYTE, rows.data(), sizeof mine, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (!prints) return;

  struct Sum {
    int ranks = 0;
    Row row{};
  };
  std::map<std::string, Sum> sums;
  for (const Row& row : rows) {
    Sum& sum = sums[row.mode];
    ++sum.ranks;
    sum.row.polls += row.polls;
    sum.row.seconds += row.seconds;
    sum.row.notices += row.notices;
  }
  for (const auto& [mode, sum] : sums) {
    print(fmt::format("progress of {} of {} ranks: {}; progress thread: {:.0f} polls, {:.3f} s; "
                      "{:.0f} completions noticed inside MPI",
                      sum.ranks, ranks, mode, sum.row.polls, sum.row.seconds, sum.row.notices));
  }
}

}  // namespace imbrex::mpi::progress

namespace imbrex {

void time_progress() noexcept { mpi::progress::timing.store(true, std::memory_order_relaxed); }

ProgressReport progress_report() {
  using namespace mpi::progress;
  const State& now = state();
  return {.asked = std::string(name_of(now.choice.asked)),
          .runs = std::string(name_of(now.choice.runs)),
          .mode = describe(now.choice),
          .polls = the_thread().polls(),
          .seconds = the_thread().seconds(),
          .notices = notices(),
          .timed_polls = polls_spent.count.load(std::memory_order_relaxed),
          .timed_polls_s = polls_spent.seconds(),
          .timed_callbacks = callbacks_spent.count.load(std::memory_order_relaxed),
          .timed_callbacks_s = callbacks_spent.seconds()};
}

}  // namespace imbrex
