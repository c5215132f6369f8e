// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/life/agreement.hpp"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <functional>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "mpi/active/post/post.hpp"
#include "mpi/engine/mpi_errors.hpp"

namespace imbrex::mpi {

namespace {

using Clock = std::chrono::steady_clock;

// An error that is equal on every failed rank is printed once: its cause is mostly in the
// environment of all.
void report_failure(const std::string& wrong, const Agreement& mine, const Agreement& all) {
  const bool same = all.why_least == -all.why_least_negated;
  if (!wrong.empty() && (!same || mine.first_failed == all.first_failed)) print(wrong);
  if (wrong.empty() && mine.first_well == all.first_well) print("MPI_Init failed on another rank.");
}

}  // namespace

Agreement view_of(const Wrong& wrong, const blocks::Setting& partial, const bool brought) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int paths = detail::learns_paths() ? 1 : 0;
  const int quiet = active::wishes.messages.load(std::memory_order_relaxed) ? 0 : 1;
  const int no_calls = active::wishes.calls.load(std::memory_order_relaxed) ? 0 : 1;
  const int lends_nobody = wrong.text.empty() && detail::totals().lends != 0 ? 0 : 1;
  const int checks = wrong.text.empty() && detail::number_option("CHECK") != 0 ? 1 : 0;
  const int attached = brought ? 1 : 0;
  if (wrong.text.empty()) {
    const int mode = static_cast<int>(partial.mode);
    return {1,    paths, quiet,         no_calls,       lends_nobody, checks,  attached,
            mode, -mode, partial.parts, -partial.parts, rank,         INT_MAX, INT_MAX,
            INT_MAX, 0};
  }
  const int why = static_cast<int>(std::hash<std::string>()(wrong.text) >> 34);  // not negative
  return {0,       paths,   quiet,   no_calls, lends_nobody, checks, attached, INT_MAX,
          INT_MAX, INT_MAX, INT_MAX, INT_MAX,  rank,         why,    -why,     -wrong.status};
}

// All ranks must use one kind of collectives. A rank of another program that does not know imbrex
// never answers, so a message says what this rank waits for.
Agreement agree(const Agreement& mine) {
  Agreement all{};
  int done = 0;
  MPI_Request request;
  constexpr int words = sizeof(Agreement) / sizeof(int);
  PMPI_Iallreduce(&mine, &all, words, MPI_INT, MPI_MIN, MPI_COMM_WORLD, &request);
  const Clock::time_point begin = Clock::now();
  for (bool warned = false; done == 0;) {
    PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (done == 0) sched_yield();
    if (!warned && Clock::now() - begin > std::chrono::seconds(20)) {
      print("MPI_Init has waited 20 s for the other ranks. Is every program of this mpirun linked "
            "with imbrex::mpi? Link all of them: collectives of a program without it do not "
            "match.");
      warned = true;
    }
  }
  return all;
}

void end_unless_well(const Wrong& wrong, const Agreement& mine, const Agreement& all) {
  const bool modes_differ = all.partial_least != -all.partial_negated;
  const bool differ = modes_differ || all.parts_least != -all.parts_negated;
  if (all.well != 0 && !differ) return;
  if (all.well == 0) {
    report_failure(wrong.text, mine, all);
  } else if (mine.first_well == all.first_well) {
    const std::string option = modes_differ ? "IMBREX_PARTIAL" : "IMBREX_PARTIAL_PARTS";
    print("MPI_Init: " + option + " differs between ranks, but all ranks must divide a "
          "collective alike: give all ranks one value, as by mpirun -x " + option + "=...");
  }
  PMPI_Barrier(MPI_COMM_WORLD);  // every rank comes here; the first abort would silence the others
  abort_all(MPI_COMM_WORLD, std::max(1, -all.status_negated));
}

}  // namespace imbrex::mpi
