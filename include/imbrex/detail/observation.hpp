// SPDX-License-Identifier: BSD-3-Clause
// The waist for observers: the running task, the state of the workers, trace, summary, and reports.
// Used by plug-ins, and by no public header.
//
// Thread safety: unless a function says otherwise, any thread may call it.
#pragma once

#include <cstdint>
#include <exception>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "imbrex/detail/waist.hpp"

#pragma GCC visibility push(default)

namespace imbrex::detail {

// ---- tasks -----------------------------------------------------------------------------------

// Names the running task and its place, for messages: `"name" (file:line)`, or "no task".
[[nodiscard]] std::string describe_current_task();

// Names a task in reports, also after its end: the pointers are literals of the program.
struct TaskLabel {
  const char* name = nullptr;  // null: no task; else only describe() reads it
  std::source_location where;
  std::uint64_t id : 44 = 0;
  std::uint64_t iteration : 20 = 0;  // of a task of iterate(): one more than it, or `many`; else 0
  static constexpr std::uint64_t many = (1 << 20) - 1;
};
[[nodiscard]] TaskLabel current_task() noexcept;

// The parts of a suspended task's memory, beside the end of its stack, that its resumption touches.
// A thread that is about to wake the task can prefetch them.
struct Footprint {
  const void* task = nullptr;   // two cache lines; null: no task
  const void* fiber = nullptr;  // two
};
// The footprint of the running task; empty outside of tasks.
[[nodiscard]] Footprint footprint() noexcept;

[[nodiscard]] std::string describe(const TaskLabel& task);

// A place of the program, for messages: "stencil.cpp:31", and " (stencil.cpp:31)". C and Fortran
// may give a file alone, or nothing: the text is then "an unknown place", or empty.
[[nodiscard]] std::string text_of(const std::source_location& where);
// A place that is looked up on demand: that of `code`, in the debug information. Its file is empty,
// and its line 0. It lives for ever. code_at() returns the code; null for any other place.
[[nodiscard]] std::source_location place_of_code(const void* code);
[[nodiscard]] const void* code_at(const std::source_location& where) noexcept;
extern const char code_mark[];  // for tools/gdb: the function's name in such a place
[[nodiscard]] std::string in_parentheses(const std::source_location& where);

// A view of the state of the workers, for a watching thread. It is cheap, and true for a moment.
struct Situation {
  // Grows whenever a task begins, resumes, or gets a positive answer; but not when a task resumes
  // whose question was answered in the negative (go_on_asking()).
  std::uint64_t begun = 0;
  bool at_rest = false;     // no worker runs a task, and none is ready
  // A task polls again and again without success, with no more than a few microseconds of computing
  // in between, and no worker runs any other task.
  bool only_asks = false;
  bool keeps_others = false;  // the polling task keeps its worker from ready tasks
  // With IMBREX_STALL=abort: a report of this process has said that no task goes on, no task has
  // gone on since, and there are several ranks. The plug-in that knows the ranks then has to
  // decide.
  bool halted = false;
};
[[nodiscard]] Situation situation() noexcept;

// The state of the threads of this process, as a text that stays the same while no thread goes on.
// Empty if a thread may go on by itself: it runs code of the program, the system does not tell what
// it sleeps in, or it sleeps for a time. The calling thread does not count. `waiting_task`: the id
// of a task that waits though its thread may run; 0: none.
[[nodiscard]] std::string standstill(std::uint64_t waiting_task);

// One wait of a task, as data.
struct TaskWait {
  const char* kind;                       // a word of src/diagnosis/facts.hpp
  std::string text;
  std::vector<std::uint64_t> tasks = {};  // ids of tasks that must all act first
};

// One live task, as reports show it.
struct TaskView {
  TaskLabel task;
  bool runs = false;       // on a worker, or ready to run
  bool in_mpi = false;     // waits in a call of MPI
  std::string waits_for;   // empty if the task runs, or if its wait cannot be described
  std::vector<TaskWait> waits = {};
};
// With `at_rest` it follows the graph to describe each wait. That is safe only if situation() has
// reported rest twice, and while the caller prevents the events that the tasks wait for.
[[nodiscard]] std::vector<TaskView> view_tasks(bool at_rest);

// One text for each of the last 16 tasks that have failed or did not run: a waiting task may wait
// for their effects.
[[nodiscard]] std::vector<std::string> recent_failures();

// ---- order -----------------------------------------------------------------------------------

// With IMBREX_CHECK the runtime keeps the order of tasks that the program makes by spawns,
// accesses, futures and waits, whatever the schedule is. In doubt, two actions are ordered. The
// order of code outside of tasks, except main, is not known.

// A moment in the life of a task.
struct Moment {
  std::uint64_t task = 0;  // its id; 0: the moment is not known
  std::uint64_t at = 0;    // grows with each moment
};
// The present moment of the running task.
[[nodiscard]] Moment this_moment() noexcept;
// Whether the program puts everything that the running task does from now on behind `earlier`.
[[nodiscard]] bool is_behind(const Moment& earlier) noexcept;
// The running task has learned something that may depend on everything that happened before, such
// as a message from another rank.
void follow_everything() noexcept;

// ---- threads ---------------------------------------------------------------------------------

// While it lives, the calling thread is a thread of imbrex that runs no code of the program:
// reports do not show it. Each thread that a plug-in starts makes and destroys one.
class OwnThread {
 public:
  OwnThread() noexcept;
  ~OwnThread();
  OwnThread(const OwnThread&) = delete;
  OwnThread& operator=(const OwnThread&) = delete;
};
// The threads that exist when it is destroyed, and did not when it was made, belong to another
// library, which the caller has started in between.
class LibraryThreads {
 public:
  LibraryThreads();
  ~LibraryThreads();
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

 private:
  std::vector<int> before_;
};

// ---- reports ---------------------------------------------------------------------------------

// The text of `error`, of any class: its what(), or a sentence where what() is null or missing; and
// the task that threw it, if it is one of the last tasks that failed.
[[nodiscard]] std::string thrown_text(const std::exception_ptr& error);

// Writes `text` to standard error. Reports no error and raises no signal, whatever standard error
// is.
void print(std::string_view text) noexcept;
// Ends the program by SIGABRT, after a message with the reason; an MPI prints no backtrace after
// it.
[[noreturn]] void abort() noexcept;

// Keeps a text with the calling thread; the last text replaces the one before. A thread that imbrex
// does not know has no room for it: the text is then printed at once, and the kept text says so.
void keep_message(const std::string& text) noexcept;
[[nodiscard]] const char* kept_message() noexcept;

// ---- trace -----------------------------------------------------------------------------------

[[nodiscard]] bool tracing() noexcept;  // one load of a constant after start
// A message that a task has sent or received. `communicator` is any number that the ranks agree on.
// `task`: an id; 0: the running task.
struct MessageRecord {
  bool sent;
  int peer;
  int tag;
  std::uint64_t bytes;
  std::uint32_t communicator;
  std::uint64_t task = 0;
  std::uint64_t waited_ns = 0;  // not 0: the message has left, after it waited this long for its
                                // turn
  std::uint32_t request = 0;    // the number of its request; 0: of a blocking call
  bool by_library = false;      // of no task
};
void trace_message(const MessageRecord& message) noexcept;
// The running task begins, or has ended, a blocking collective in which this rank gives `bytes`; or
// it has begun a non-blocking one.
enum class CollectiveStep : std::uint8_t { begins, ends, begun };
struct CollectiveRecord {
  CollectiveStep step;
  const char* call;  // a literal
  std::uint64_t bytes;
  std::uint32_t communicator;
  int root;                   // in ranks of MPI_COMM_WORLD; -1: none
  std::uint32_t request = 0;  // the number of its request; 0: it is blocking
};
void trace_collective(const CollectiveRecord& collective) noexcept;
// A step in the life of the request with the number `request`.
enum class RequestStep : std::uint8_t {
  receive_posted,  // `bytes` at most, from `peer` with `tag`; -1: any
  awaited,         // the running task is about to wait in `call`; `bytes`: 0 for all, 1 for any, 2
                   // for some of the requests that this call names
  ended,           // a call of the running task, or of `task`, has found it complete
  given            // the program has handed it over; `bytes`: the address of the future
};
struct RequestRecord {
  RequestStep step = RequestStep::ended;
  std::uint32_t request = 0;
  const char* call = nullptr;  // a literal
  int peer = -1;
  int tag = -1;
  std::uint64_t bytes = 0;
  std::uint32_t communicator = 0;
  std::uint64_t task = 0;      // an id; 0: the running task
};
void trace_request(const RequestRecord& request) noexcept;
// `joint` is complete when all `parts` are.
void trace_joins(const Completion& joint, std::span<Completion* const> parts) noexcept;
// Counts an operation that has no records. `what`: a literal, in the plural.
void trace_unrecorded(const char* what) noexcept;
// A datum with an owner, by its name in the trace. `key`: any number that the ranks agree on, below
// 2^40.
void trace_datum(std::string_view name, std::uint64_t key);
// A copy of a datum leaves this rank for another, or has arrived at its reader here.
struct CopyRecord {
  bool sent;
  int peer;              // the receiving rank; for an arrived copy, the root
  int root;              // the rank that sent it first; a rank of MPI_COMM_WORLD, as is the peer
  std::uint32_t ticket;  // numbers the copies from this root to that rank
  std::uint64_t bytes;
  std::uint64_t datum;   // the key of the datum
};
void trace_copy(const CopyRecord& copy) noexcept;

// Between these two calls trace and summary show the running task as idle, and reports show it as
// waiting: it polls in place for `call`, a literal.
void begin_idle(const char* call) noexcept;
void end_idle() noexcept;

// ---- flight recorder -------------------------------------------------------------------------

// What the running task has begun, or begins, for the file of the flight recorder
// (src/flight/format.hpp): `call`, a literal; the peer and the tag as the call names them, or -1; a
// number of items.
enum class FlightEvent : std::uint8_t {
  none,
  resumed,         // it has waited, and goes on
  sent,
  receive_posted,
  collective,
  locks,           // a window
  phaser,          // a step; its items are the number of the phase
  completed,       // an operation of MPI that a task, which need not run now, has begun
  task_begin,      // these two only with IMBREX_FLIGHT=tasks
  task_end
};
void note_flight(FlightEvent event, const char* call, int peer, int tag,
                 std::int64_t items) noexcept;
// An operation that `task` has begun is complete. One thread at a time.
void note_completed(std::uint64_t task, const char* call, int peer, int tag) noexcept;
// Gives the number of operations in flight to the thread that fills the file in, from now on. Null:
// there are none any more.
void show_in_flight(std::int64_t (*count)() noexcept) noexcept;
// What a report would say of this process at this moment, as facts of src/diagnosis/. One thread.
void keep_flight_facts(std::string_view facts) noexcept;

// ---- summary ---------------------------------------------------------------------------------

// Workers measure their times from the start on even if no option asks for it. Before start() only.
void want_times();

// Sums over this process, for the summary that is printed at the end.
struct Totals {
  double in_task_s, idle_s, overhead_s;  // over all workers; 0 unless want_times() or an option
  double tasks, steals, suspensions, polls;
  double workers;
  double elapsed_s;
  double lends;                          // 1: this process lends processors; else 0
  double lent_s, borrowed_s;             // processor time of its processors, and of others
};
[[nodiscard]] Totals totals() noexcept;
[[nodiscard]] bool summary_wanted() noexcept;
// Prints one row for each rank; rank 0 of the MPI library gathers them and calls it. The runtime
// then prints no summary of its own. `ranks` is empty where another rank prints.
void print_summary(std::span<const Totals> ranks);

}  // namespace imbrex::detail

#pragma GCC visibility pop
