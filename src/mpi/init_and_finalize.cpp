// SPDX-License-Identifier: BSD-3-Clause
// MPI_Init, MPI_Init_thread and MPI_Finalize: start and end of the runtime in an MPI program.
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/options.hpp"
#include "imbrex/continue.h"
#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/error.hpp"
#include "mpi/abi/linked.hpp"
#include "mpi/abi/next.hpp"
#include "mpi/abi/request_state.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/active/active.hpp"
#include "mpi/active/post/post.hpp"
#include "mpi/calls/spare.hpp"
#include "mpi/calls/told.hpp"
#include "mpi/calls/twins.hpp"
#include "mpi/check/checks.hpp"
#include "mpi/collectives/blocks/block_channel.hpp"
#include "mpi/collectives/blocks/blocks.hpp"
#include "mpi/collectives/order/order.hpp"
#include "mpi/engine/deaths.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/lifetime.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/engine/progress.hpp"
#include "mpi/engine/timing.hpp"
#include "mpi/interfaces/tampi/tampi.hpp"
#include "mpi/messages/calls/sending_calls.hpp"
#include "mpi/messages/matching/communicators.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/messages/sends/outgoing.hpp"
#include "mpi/phasers/phaser_communicators.hpp"
#include "mpi/phasers/rank_phaser.hpp"
#include "mpi/recording/message_records.hpp"
#include "mpi/recording/paths.hpp"
#include "mpi/report/look.hpp"
#include "mpi/report/waits/private_world.hpp"
#include "mpi/report/watchdog.hpp"

namespace imbrex::mpi {

namespace {

using Clock = std::chrono::steady_clock;


std::string describe_open() {
  std::string text;
  for (const std::string& line : report::open_operations()) text += "\n  " + line;
  for (const std::string& line : order::describe_waiting()) text += "\n  " + line;
  for (const std::string& line : blocks::describe_open()) text += "\n  " + line;
  return text;
}

// While MPI_Finalize waits for the last tasks: the time of the last completion, else zero. A task
// whose message never comes would keep it for ever, so it reports once what it waits for.
std::atomic<Clock::rep> finalize_waits_since{0};
constexpr std::chrono::seconds finalize_patience{5};

void watch_finalize(int completed) noexcept {
  Clock::rep since = finalize_waits_since.load(std::memory_order_relaxed);
  if (since == 0) return;
  const Clock::rep now = Clock::now().time_since_epoch().count();
  if (completed != 0) {
    finalize_waits_since.compare_exchange_strong(since, now, std::memory_order_relaxed);
  } else if (Clock::duration(now - since) > finalize_patience &&
             finalize_waits_since.compare_exchange_strong(since, 0, std::memory_order_relaxed)) {
    const std::string open = describe_open();
    say(open.empty() ? "MPI_Finalize waits for tasks of this rank or of other ranks"
                     : "MPI_Finalize waits for tasks that wait in MPI:" + open);
  }
}

int poll_engine(void*) noexcept {
  const progress::Timed timed(progress::polls_spent);
  progress::begin_poll();
  int completed = engine().poll();
  paths::send();
  check::poll_ranks();
  if (active::post().is_open()) completed += active::post().poll();
  watch_finalize(completed);
  return completed;
}
detail::Poller poller{.poll = &poll_engine,
                      .context = nullptr,
                      .outstanding = &engine().outstanding(),
                      .watched = &engine().held()};

// ---- do programs reach this library? -----------------------------------------------------------

// The file of `function` if that is not this library, else empty.
std::string foreign_file_of(const char* function) {
  void* const address = dlsym(RTLD_DEFAULT, function);
  Dl_info here;
  Dl_info there;
  ElfW(Sym)* symbol = nullptr;
  if (dladdr(reinterpret_cast<void*>(&poll_engine), &here) == 0) return "";
  if (address == nullptr ||
      dladdr1(address, &there, reinterpret_cast<void**>(&symbol), RTLD_DL_SYMENT) == 0) {
    return "nowhere";
  }
  if (there.dli_fbase == here.dli_fbase) return "";
  // A jump of libimbrex_preload.so, which leads here.
  Dl_info preload;
  void* const next = dlsym(RTLD_DEFAULT, "imbrex_preload_next");
  if (next != nullptr && dladdr(next, &preload) != 0 && preload.dli_fbase == there.dli_fbase) {
    return "";
  }
  // If a program is not position-independent and takes the function's address, dlsym() finds the
  // program's jump to the definition, which is no definition itself.
  if (symbol != nullptr && symbol->st_shndx == SHN_UNDEF) return "";
  return there.dli_fname;
}

// Empty if programs reach this library by `functions`, each a PMPI_X and the MPI_X in its name;
// else the error and the remedy. A tool may be above this library: it calls PMPI_X, which is this
// library's, too, or the MPI_X behind its own.
template <std::size_t Size>
std::string describe_bypass(const std::array<const char*, Size>& functions) {
  for (const char* const profiled : functions) {
    const char* const function = profiled + 1;
    const std::string file = foreign_file_of(function);
    if (file.empty() || foreign_file_of(profiled).empty()) continue;
    return std::string(function) + " comes from " + file +
           ", not from libimbrex_mpi: blocking calls in tasks would block their workers. Link "
           "libimbrex_mpi before the MPI library (c++ ... -limbrex_mpi -limbrex -lmpi; with CMake "
           "name imbrex::mpi first and no MPI::MPI_* before it), or preload libimbrex_mpi.so.";
  }
  return "";
}

// If this library is linked behind the MPI library, its MPI_Init is never called: that is reported
// when the library is loaded. Loaded after MPI_Init, the library waits for imbrex_attach().
[[gnu::constructor]] void check_that_init_is_ours() {
  const std::string bypass = describe_bypass(std::array{"PMPI_Init", "PMPI_Init_thread"});
  if (bypass.empty()) return;
  // The program's MPI is asked itself: behind it, this library would find no MPI.
  using Ask = int(int*);
  auto* const ask = reinterpret_cast<Ask*>(dlsym(RTLD_DEFAULT, "PMPI_Initialized"));
  int initialised = 0;
  (void)(ask != nullptr ? ask(&initialised) : PMPI_Initialized(&initialised));
  if (initialised != 0) return;
  say(bypass);
  std::_Exit(1);
}

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
  detail::set_rank(rank, ranks);
  detail::start_or_throw();
}

// How the program has come to imbrex.
enum class Entry : std::uint8_t {
  by_init,  // its MPI_Init is that of this library
  late      // imbrex_attach(), after an MPI_Init of the MPI's: MPI_X may be the MPI's own
};

// The error of this rank, and the exit status; empty if there is none.
struct Wrong {
  std::string text = {};
  int status = 1;
};
Wrong try_to_start(const int level, const Entry entry) {
  if (level < MPI_THREAD_MULTIPLE) {
    return {std::string("MPI_Init: this MPI gives only ") + name_of_level(level) +
           ", and tasks that call MPI need MPI_THREAD_MULTIPLE. Use an MPI that is built with "
           "thread support (and do not restrict it by the environment or a tool)" +
           (level == MPI_THREAD_SINGLE
                ? "."
                : ", or set IMBREX_PROGRESS=dedicated-thread: then one thread makes all calls.")};
  }
  const std::string bypass =
      entry == Entry::late ? "" : describe_bypass(std::array{"PMPI_Recv", "PMPI_Wait",
                                                             "PMPI_Allreduce", "PMPI_Finalize"});
  if (!bypass.empty()) return {"MPI_Init: " + bypass};
  try {
    start_runtime();  // first, since all ranks take part in it
    static_cast<void>(blocks::setting_by_options());
  } catch (const base::OptionError& error) {
    return {"MPI_Init: " + unprefixed(error), 2};
  } catch (const Error& error) {
    return {"MPI_Init: " + unprefixed(error)};
  }
  return {};
}

// The answers of all ranks together: each number is the minimum.
struct Agreement {
  int well;               // their start has not failed
  int learns_paths;       // by their policy
  int is_quiet;           // no rank wants active messages
  int calls_nobody;       // no rank wants calls of other ranks
  int checks;             // IMBREX_CHECK is on
  int attached;           // imbrex_attach() has brought imbrex to a program that is not linked with
                          // it, so that no task calls MPI
  int partial_least;      // of the value of IMBREX_PARTIAL; the next field is the largest one,
                          // negated
  int partial_negated;
  int parts_least;  // the same for IMBREX_PARTIAL_PARTS
  int parts_negated;
  int first_well;         // a rank
  int first_failed;       // a rank
  int why_least;          // of a number for the error; INT_MAX if there is none
  int why_least_negated;  // of the negated number
  int status_negated;     // exit status, negated; 0 if there is no error
};

// A malformed option counts as a request: the start reports it.
bool main_is_task() {
  try {
    return detail::number_option("MAIN_AS_TASK") != 0;
  } catch (const Error&) {
    return true;
  }
}

std::atomic<bool> attached{false};  // by imbrex_attach(); relaxed: MPI_Init comes after it

// The answer of this rank. `wrong` has the error of its start, and is empty if there was none.
Agreement view_of(const Wrong& wrong) {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int paths = detail::learns_paths() ? 1 : 0;
  const int quiet = active::wishes.messages.load(std::memory_order_relaxed) ? 0 : 1;
  const int no_calls = active::wishes.calls.load(std::memory_order_relaxed) ? 0 : 1;
  const int checks = wrong.text.empty() && detail::number_option("CHECK") != 0 ? 1 : 0;
  const bool brought = attached.load(std::memory_order_relaxed) && !linked_with_imbrex();
  const int alone = brought && !main_is_task() ? 1 : 0;
  if (wrong.text.empty()) {
    const blocks::Setting setting = blocks::setting_by_options();
    const int partial = static_cast<int>(setting.mode);
    return {1,       paths,   quiet,          no_calls,       checks,  alone,   partial,
            -partial, setting.parts, -setting.parts, rank, INT_MAX, INT_MAX, INT_MAX, 0};
  }
  const int why = static_cast<int>(std::hash<std::string>()(wrong.text) >> 34);  // not negative
  return {0,       paths,   quiet, no_calls, checks, alone,   INT_MAX, INT_MAX, INT_MAX,
          INT_MAX, INT_MAX, rank,  why,      -why,   -wrong.status};
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
      say("MPI_Init has waited 20 s for the other ranks. Is every program of this mpirun linked "
          "with imbrex::mpi? Link all of them: collectives of a program without it do not match.");
      warned = true;
    }
  }
  return all;
}

// An error that is equal on every failed rank is printed once: its cause is mostly in the
// environment of all.
void say_what_failed(const std::string& wrong, const Agreement& mine, const Agreement& all) {
  const bool same = all.why_least == -all.why_least_negated;
  if (!wrong.empty() && (!same || mine.first_failed == all.first_failed)) say(wrong);
  if (wrong.empty() && mine.first_well == all.first_well) say("MPI_Init failed on another rank.");
}

// ---- preloaded under a program that has no tasks ------------------------------------------------

// True if MPI_Init must change nothing.
bool must_pass_through() {
  passes_through = !linked_with_imbrex() && !detail::started() &&
                   !attached.load(std::memory_order_relaxed) && !main_is_task();
  return passes_through;
}

// The first line of MPI's version text.
std::string name_of_library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  PMPI_Get_library_version(text, &length);
  const std::string_view all(text, static_cast<std::size_t>(length));
  return std::string(all.substr(0, all.find('\n')));
}

// A launcher of another MPI starts the processes, and each finds itself alone: nothing fails, and
// all of them compute the same.
void warn_of_launcher() {
  struct Launcher {
    const char* name;
    const char* size;
    const char* rank;
  };
  constexpr Launcher launchers[] = {
      {"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
      {"a launcher that speaks PMI (mpiexec of MPICH or Intel MPI, srun)", "PMI_SIZE", "PMI_RANK"}};
  int ranks = 0;
  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_size(MPI_COMM_WORLD, &ranks);
  PMPI_Comm_get_parent(&parent);
  if (ranks != 1 || parent != MPI_COMM_NULL) return;
  const auto number = [](const char* const variable) {
    const char* const text = std::getenv(variable);
    return text == nullptr ? 0L : std::strtol(text, nullptr, 10);
  };
  for (const Launcher& it : launchers) {
    if (number(it.size) <= 1 || number(it.rank) != 0) continue;
    say(std::string("MPI_Init: ") + it.name + " has started " + std::to_string(number(it.size)) +
        " processes, but each is alone in MPI_COMM_WORLD: the program's MPI is " +
        name_of_library() + ", which does not know that launcher. Use the mpirun or mpiexec of "
        "the program's MPI.");
    return;
  }
}

int passed(const int code) {
  if (code == MPI_SUCCESS) {
    tell_process();
    warn_of_launcher();
  }
  return code;
}

void explain_passing() {
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0 || detail::number_option("SUMMARY") == 0) return;
  say("IMBREX_SUMMARY has nothing to print: no part of this program was linked with imbrex, so "
      "imbrex passed all calls on to MPI. IMBREX_MAIN_AS_TASK=1 makes main a task.");
}

// ---- an end without MPI_Finalize ---------------------------------------------------------------

// At exit(0) in main the core waits for all tasks. Tasks that wait in MPI may wait for ever, since
// this rank sends no more: once nothing has moved for a moment, they are left.
void leave_tasks_at_exit(const int status) {
  constexpr std::chrono::milliseconds patience{200};
  if (!switches.is_active.load(std::memory_order_relaxed)) return;
  if (status != EXIT_SUCCESS || !detail::in_main()) return;
  report::Mark last;
  Clock::time_point since = Clock::now();
  while (!detail::main_is_last()) {
    detail::yield();
    sched_yield();
    const report::Mark now = report::mark();
    if (!(now == last)) {
      last = now;
      since = Clock::now();
    } else if (Clock::now() - since > patience) {
      if (!detail::situation().at_rest) continue;  // a long task
      if (now.open == 0) return;                   // other ranks could end it
      say("the program ends without MPI_Finalize, which would have waited for tasks that wait in "
          "MPI:" + describe_open());
      detail::leave_tasks();
      return;
    }
  }
}

void leave_at_exit(const int status) {
  leave_tasks_at_exit(status);
  if (active::post().is_open()) active::post().abandon();
}

// The letters of paths.hpp are active messages.
void open_paths() {
  constexpr auto id = active::Id::paths;
  active::set_handler(
      id,
      [](void*, const int from, const std::span<const std::byte> letter) noexcept {
        paths::take(from, letter);
      },
      nullptr);
  static_assert(paths::letter_bytes_max <= active::message_bytes_max);
  paths::open({.send = [](const int to, const std::span<const std::byte> letter) noexcept {
                 return active::post().outbox.try_send(to, static_cast<std::uint32_t>(id), letter,
                                                       {});
               },
               .poll = []() noexcept { (void)active::post().poll(); }});
}

// No other thread calls MPI yet.
void make_a_topology() {
  const int one = 1;
  const int periodic = 0;
  MPI_Comm made;
  if (PMPI_Cart_create(MPI_COMM_SELF, 1, &one, &periodic, 0, &made) == MPI_SUCCESS) {
    PMPI_Comm_free(&made);
  }
}

int initialise_library(int* argc, char*** argv, int* provided) {
  const detail::LibraryThreads threads;
  return progress::initialise_mpi(argc, argv, provided);
}

// MPI is initialised, with this thread level.
int begin_service(const int level, const Entry entry) {
  learn_quirks();
  const Wrong wrong = try_to_start(level, entry);
  if (wrong.text.empty()) tell_process();
  warn_of_launcher();
  const Agreement mine = view_of(wrong);
  const Agreement all = agree(mine);
  const bool modes_differ = all.partial_least != -all.partial_negated;
  const bool differ = modes_differ || all.parts_least != -all.parts_negated;
  if (all.well == 0 || differ) {
    if (all.well == 0) {
      say_what_failed(wrong.text, mine, all);
    } else if (mine.first_well == all.first_well) {
      const std::string option = modes_differ ? "IMBREX_PARTIAL" : "IMBREX_PARTIAL_PARTS";
      say("MPI_Init: " + option + " differs between ranks, but all ranks must divide a "
          "collective alike: give all ranks one value, as by mpirun -x " + option + "=...");
    }
    PMPI_Barrier(MPI_COMM_WORLD);  // every rank comes here; the first abort would silence the
                                   // others
    end_all(MPI_COMM_WORLD, std::max(1, -all.status_negated));
  }
  MPI_Comm parent = MPI_COMM_NULL;
  PMPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) switches.other_processes.store(true, std::memory_order_relaxed);
  begin_errors();
  learn_to_read_requests();
  check::start();
  switches.learns_senders = detail::learns_sends();
  private_world::open();
  if (has<Quirk::first_topologies_crash>()) make_a_topology();
  if (all.checks != 0) check::start_comparing();
  sends::start();
  const blocks::Setting setting = blocks::setting_by_options();
  blocks::start(setting);
  active::wishes.calls_agreed = all.calls_nobody == 0;
  if (all.is_quiet == 0 || all.learns_paths != 0) active::post().open();
  if (all.learns_paths != 0) open_paths();
  start_messages();
  if (check::on() || switches.learns_senders || switches.traces_messages) {
    switches.tells_calls.store(true, std::memory_order_relaxed);
  }
  progress::start(poller);
  if (active::calls_are_open()) active::wishes.take_calls();
  report::start_watchdog();
  if (detail::text_option("OMP_SUSPEND") != "all") {
    switches.some_task_blocks.store(true, std::memory_order_relaxed);
  }
  collectives_have_twins = all.attached == 0 || all.checks != 0;
  switches.is_active.store(true, std::memory_order_relaxed);
  detail::in_child_of_fork(&leave_calls_to_mpi);
  detail::before_end(&leave_at_exit);
  if (setting.mode == blocks::Mode::off) return MPI_SUCCESS;
  return blocks::prepare({.name = "MPI_Init", .comm = MPI_COMM_WORLD}, MPI_COMM_WORLD);
}

// Called by MPI_Init and MPI_Init_thread.
int initialise(int* argc, char*** argv, int* provided) {
  report::remember_signal();
  const int code = initialise_library(argc, argv, provided);
  return code == MPI_SUCCESS ? begin_service(*provided, Entry::by_init) : code;
}

// ---- end -------------------------------------------------------------------------------------

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
    say("MPI: " + name_of_library());
    detail::print_summary(totals);
  }
  progress::report(anyone);
}

// Other ranks may wait for messages that a failed task would have sent.
void end_if_a_task_failed() {
  if (!detail::report_failures()) return;
  say("MPI_Finalize: a task has failed, and other ranks may wait for its messages: all ranks "
      "are ended.");
  end_all(MPI_COMM_WORLD, 1);
}

void finish_runtime() {
  finalize_waits_since.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  if (detail::in_task()) detail::drain();
  end_if_a_task_failed();
  sends::finish();
  phasers::RankPhaser::end_all();
  if (paths::are_open()) paths::close();
  if (active::post().is_open()) {
    active::post().close();
    end_if_a_task_failed();  // a late message may have made a task
  }
  if (switches.compares_ranks) check::end_comparing();
  order::end_all_orders();
  blocks::end();
  finalize_waits_since.store(0, std::memory_order_relaxed);
  end_spare_threads();
  // An operation that is counted and not described is about to be uncounted by the thread that
  // completed it.
  const std::atomic<int>& outstanding = engine().outstanding();
  int open = outstanding.load(std::memory_order_acquire);
  while (open != 0 && describe_open().empty()) {
    sched_yield();
    open = outstanding.load(std::memory_order_acquire);
  }
  if (open != 0) {
    say("MPI_Finalize: " + std::to_string(open) +
        (open == 1 ? " operation is" : " operations are") +
        " still in flight, and MPI_Finalize does not wait for them:" + describe_open());
  }
  report_summary();
}

void end_service() {
  if (!switches.is_active.load(std::memory_order_relaxed)) return;
  report::note_finalize(true);
  if (detail::started()) finish_runtime();
  if (paths::are_open()) paths::close();
  if (active::post().is_open()) active::post().close();
  if (switches.compares_ranks) check::end_comparing();
  check::count_findings();
  report::stop_watchdog();
  report::note_finalize(false);
  switches.is_ending.store(true, std::memory_order_relaxed);
  switches.is_active.store(false, std::memory_order_relaxed);
  phasers::end_pools();
  private_world::close();
  messages::end_communicators();
  end_messages();
  progress::stop(poller);
  end_errors();
  end_reading_requests();
}

// ---- imbrex_attach -----------------------------------------------------------------------------

// MPI_Finalize deletes the attributes of MPI_COMM_SELF before it ends anything else.
int end_at_finalize(MPI_Comm, int, void*, void*) {
  end_service();
  return MPI_SUCCESS;
}

int attach_late() {
  int level = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&level);
  if (level < MPI_THREAD_MULTIPLE) {
    say(std::string("imbrex_attach: MPI has been initialised with ") + name_of_level(level) +
        ", and imbrex needs MPI_THREAD_MULTIPLE. Ask MPI_Init_thread for it, or call "
        "imbrex_attach() before MPI_Init.");
    return MPI_ERR_OTHER;
  }
  passes_through = false;
  const int code = begin_service(level, Entry::late);
  if (code != MPI_SUCCESS) return code;
  int key = MPI_KEYVAL_INVALID;
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &end_at_finalize, &key, nullptr);
  return PMPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
}

int attach() {
  int initialised = 0;
  int finalised = 0;
  PMPI_Initialized(&initialised);
  PMPI_Finalized(&finalised);
  if (finalised != 0) {
    say("imbrex_attach is called after MPI_Finalize: call it before MPI_Finalize");
    return MPI_ERR_OTHER;
  }
  attached.store(true, std::memory_order_relaxed);
  const bool active = switches.is_active.load(std::memory_order_relaxed);
  return initialised == 0 || active ? MPI_SUCCESS : attach_late();
}

}  // namespace

}  // namespace imbrex::mpi

extern "C" [[gnu::visibility("default")]] int imbrex_attach(void) { return imbrex::mpi::attach(); }

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
