// SPDX-License-Identifier: BSD-3-Clause
// MPI_Init, MPI_Finalize and imbrex_attach: who calls them, and with which thread level.
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/options.hpp"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/error.hpp"
#include "mpi/abi/linked.hpp"
#include "mpi/abi/next.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/calls/observed.hpp"
#include "mpi/calls/twins.hpp"
#include "mpi/collectives/blocks/blocks.hpp"
#include "mpi/engine/deaths.hpp"
#include "mpi/engine/guard_mpi.hpp"
#include "mpi/engine/lifetime.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/engine/progress.hpp"
#include "mpi/interfaces/tampi/tampi.hpp"
#include "mpi/life/agreement.hpp"
#include "mpi/life/at_exit.hpp"
#include "mpi/life/parts.hpp"
#include "mpi/life/reach.hpp"
#include "mpi/report/look.hpp"
#include "mpi/report/waits/private_world.hpp"
#include "mpi/report/watchdog.hpp"

namespace imbrex::mpi {

namespace {

// ---- start -----------------------------------------------------------------------------------

const char* name_of_level(int level) {
  if (level == MPI_THREAD_SINGLE) return "MPI_THREAD_SINGLE";
  if (level == MPI_THREAD_FUNNELED) return "MPI_THREAD_FUNNELED";
  return "MPI_THREAD_SERIALIZED";
}

// This process among those of its node.
detail::Place find_place() {
  MPI_Comm node;
  PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  int rank = 0;
  int ranks = 1;
  PMPI_Comm_rank(node, &rank);
  PMPI_Comm_size(node, &ranks);

  const cpu_set_t mine = detail::allowed_processors();
  detail::Place place{.allowed = std::vector<cpu_set_t>(static_cast<std::size_t>(ranks)),
                      .index = static_cast<std::size_t>(rank)};
  PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, place.allowed.data(), sizeof mine, MPI_BYTE, node);
  PMPI_Comm_free(&node);
  return place;
}

threads::Standing standing_at(const detail::Place& place) {
  const cpu_set_t mine = place.allowed[place.index];
  const auto shares_processors = [&mine](const cpu_set_t& other) {
    cpu_set_t both;
    CPU_AND(&both, &mine, &other);
    return CPU_COUNT(&both) != 0;
  };
  return {.started = detail::started(),
          .processors = CPU_COUNT(&mine),
          .of_machine = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)),
          .ranks = static_cast<int>(std::ranges::count_if(place.allowed, shares_processors))};
}

void start_runtime() {
  int rank = 0;
  int ranks = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  detail::Place place = find_place();
  place.reserve = threads::has_own_processor(progress::asked_mode());
  progress::note_standing(standing_at(place));
  if (!detail::started()) detail::set_place(std::move(place));
  detail::set_rank(rank, ranks, (std::uint64_t)MPI_COMM_WORLD);
  detail::start_or_throw();
}

// How the program has come to imbrex.
enum class Entry : std::uint8_t {
  by_init,  // its MPI_Init is that of this library
  late      // imbrex_attach(), after an MPI_Init of the MPI's: MPI_X may be the MPI's own
};

// Sets `partial` from the options, unless it returns an error.
Wrong try_to_start(const int level, const Entry entry, blocks::Setting& partial) {
  if (level < MPI_THREAD_MULTIPLE) {
    return {std::string("MPI_Init: this MPI gives only ") + name_of_level(level) +
           ", and tasks that call MPI need MPI_THREAD_MULTIPLE. Use an MPI that is built with "
           "thread support (and do not restrict it by the environment or a tool)" +
           (level == MPI_THREAD_SINGLE
                ? "."
                : ", or set IMBREX_PROGRESS=dedicated-thread: then one thread makes all calls.")};
  }
  constexpr std::array reached{"PMPI_Recv", "PMPI_Wait", "PMPI_Allreduce", "PMPI_Finalize"};
  const std::string bypass = entry == Entry::late ? "" : describe_bypass(reached);
  if (!bypass.empty()) return {"MPI_Init: " + bypass};
  try {
    start_runtime();  // first, since all ranks take part in it
    partial = blocks::setting_by_options();
  } catch (const base::OptionError& error) {
    return {"MPI_Init: " + unprefixed(error), 2};
  } catch (const Error& error) {
    return {"MPI_Init: " + unprefixed(error)};
  }
  return {};
}

// A malformed option counts as a request: the start reports it.
bool main_is_task() {
  try {
    return detail::number_option("MAIN_AS_TASK") != 0;
  } catch (const Error&) {
    return true;
  }
}

bool some_rank_lends = false;  // MPI_Init writes it

std::atomic<bool> attached{false};  // by imbrex_attach(); relaxed: MPI_Init comes after it

// ---- preloaded under a program that has no tasks ------------------------------------------------

// True if MPI_Init must change nothing.
bool must_pass_through() {
  passes_through = !linked_with_imbrex() && !detail::started() &&
                   !attached.load(std::memory_order_relaxed) && !main_is_task();
  return passes_through;
}

int passed(const int code) {
  if (code == MPI_SUCCESS) {
    report_process();
    warn_of_launcher();
  }
  return code;
}

void explain_passing() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0 || detail::number_option("SUMMARY") == 0) return;
  print("IMBREX_SUMMARY has nothing to print: no part of this program was linked with imbrex, so "
        "imbrex passed all calls on to MPI. IMBREX_MAIN_AS_TASK=1 makes main a task.");
}

// ---- begin and end ------------------------------------------------------------------------------

int initialise_library(int* argc, char*** argv, int* provided) {
  const detail::LibraryThreads threads;
  return progress::initialise_mpi(argc, argv, provided);
}

// MPI is initialised, with this thread level.
int begin_service(const int level, const Entry entry) {
  learn_quirks();
  blocks::Setting partial;
  const Wrong wrong = try_to_start(level, entry, partial);
  if (wrong.text.empty()) report_process();
  warn_of_launcher();
  const bool brought = attached.load(std::memory_order_relaxed) && !linked_with_imbrex();
  const Agreement mine = view_of(wrong, partial, brought && !main_is_task());
  const Agreement all = agree(mine);
  end_unless_well(wrong, mine, all);
  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) switches.other_processes.store(true, std::memory_order_relaxed);
  some_rank_lends = all.lends_nobody == 0;
  begin_parts(all);
  if (detail::text_option("OMP_SUSPEND") != "all") {
    switches.some_task_blocks.store(true, std::memory_order_relaxed);
  }
  collectives_have_twins = all.attached == 0 || all.checks != 0;
  switches.is_active.store(true, std::memory_order_relaxed);
  detail::show_in_flight([]() noexcept -> std::int64_t { return engine().in_flight(); });
  detail::in_child_of_fork(&leave_calls_to_mpi);
  detail::before_end(&leave_at_exit);
  if (partial.mode == blocks::Mode::off) return MPI_SUCCESS;
  return blocks::prepare({.name = "MPI_Init", .comm = MPI_COMM_WORLD}, MPI_COMM_WORLD);
}

// Called by MPI_Init and MPI_Init_thread.
int initialise(int* argc, char*** argv, int* provided) {
  report::remember_signal();
  const int code = initialise_library(argc, argv, provided);
  return code == MPI_SUCCESS ? begin_service(*provided, Entry::by_init) : code;
}

// One table for all ranks, printed by rank 0, if a rank asks for it.
void report_summary() {
  constexpr int wanted = 1;
  constexpr int values = sizeof(detail::Totals) / sizeof(double);
  static_assert(sizeof(detail::Totals) == values * sizeof(double), "sent as doubles");
  struct Row {
    double wanted;
    detail::Totals totals;
  };
  int rank = 0;
  int ranks = 1;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const Row mine{detail::summary_wanted() ? 1.0 : 0.0, detail::totals()};
  std::vector<Row> rows(rank == 0 ? static_cast<std::size_t>(ranks) : 1);
  PMPI_Gather(&mine, values + wanted, MPI_DOUBLE, rows.data(), values + wanted, MPI_DOUBLE, 0,
              MPI_COMM_WORLD);
  if (rank != 0) {
    detail::print_summary({});  // rank 0 does
    progress::report(false);
    return;
  }
  bool anyone = false;
  std::vector<detail::Totals> totals;
  for (const Row& row : rows) {
    anyone = anyone || row.wanted != 0;
    totals.push_back(row.totals);
  }
  if (anyone) {
    print("MPI: " + name_of_library());
    detail::print_summary(totals);
  }
  progress::report(anyone);
}

void end_service() {
  if (!switches.is_active.load(std::memory_order_relaxed)) return;
  // MPI's own end would keep the processor of a rank that waits there for ranks with more work.
  if (some_rank_lends) (void)MPI_Barrier(private_world::comm());
  report::note_finalize(true);
  finish_parts();
  if (detail::started()) report_summary();
  end_parts();
}

// ---- imbrex_attach -----------------------------------------------------------------------------

// MPI_Finalize deletes the attributes of MPI_COMM_SELF before it ends anything else.
int end_at_finalize(MPI_Comm, int, void*, void*) {
  end_service();
  return MPI_SUCCESS;
}

void throw_unless_success(const int code) {
  if (code != MPI_SUCCESS) throw make_error("imbrex_attach", code, "no task");
}

void attach_late() {
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  if (level < MPI_THREAD_MULTIPLE) {
    throw Error(std::string("imbrex: imbrex_attach: MPI has been initialised with ") +
                name_of_level(level) + ", and imbrex needs MPI_THREAD_MULTIPLE. Ask "
                "MPI_Init_thread for it, or call imbrex_attach() before MPI_Init.");
  }
  passes_through = false;
  throw_unless_success(begin_service(level, Entry::late));
  int key = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &end_at_finalize, &key, nullptr);
  throw_unless_success(PMPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr));
}

void attach() {
  int initialised = 0;
  int finalised = 0;
  PMPI_Initialized(&initialised);
  PMPI_Finalized(&finalised);
  if (finalised != 0) {
    throw Error("imbrex: imbrex_attach is called after MPI_Finalize: call it before MPI_Finalize");
  }
  attached.store(true, std::memory_order_relaxed);
  const bool active = switches.is_active.load(std::memory_order_relaxed);
  if (initialised != 0 && !active) attach_late();
}

}  // namespace

}  // namespace imbrex::mpi

extern "C" [[gnu::visibility("default")]] int imbrex_attach(void) {
  return imbrex::mpi::guard_mpi([] { imbrex::mpi::attach(); });
}

IMBREX_FUNCTION(Init)(int* argc, char*** argv) {
  if (imbrex::mpi::must_pass_through()) return imbrex::mpi::passed(PMPI_Init(argc, argv));
  int provided = MPI_THREAD_SINGLE;
  return imbrex::mpi::initialise(argc, argv, &provided);
}

// Whatever level the program asks for, workers need MPI_THREAD_MULTIPLE.
IMBREX_FUNCTION(Init_thread)(int* argc, char*** argv, int required, int* provided) {
  if (imbrex::mpi::must_pass_through()) {
    return imbrex::mpi::passed(PMPI_Init_thread(argc, argv, required, provided));
  }
  const int code = imbrex::mpi::initialise(argc, argv, provided);
  if (code == MPI_SUCCESS) *provided = imbrex::mpi::tampi::level_for(required, *provided);
  return code;
}

IMBREX_FUNCTION(Finalize)() {
  using namespace imbrex;
  if (mpi::passes_through) {
    mpi::explain_passing();
    return PMPI_Finalize();
  }
  mpi::end_service();
  const int code = mpi::progress::finalise_mpi();
  mpi::switches.is_ending.store(false, std::memory_order_relaxed);
  return code;
}

IMBREX_FUNCTION(Is_thread_main)(int* flag) {
  return imbrex::mpi::progress::is_thread_main(flag);
}

IMBREX_FUNCTION(Query_thread)(int* provided) {
  const int code = imbrex::mpi::progress::query_thread(provided);
  if (code == MPI_SUCCESS) *provided = imbrex::mpi::tampi::level_of_query(*provided);
  return code;
}
