// SPDX-License-Identifier: BSD-3-Clause
// The waist for those who look on: what the running task is, what the workers do, trace, summary,
// and reports. Used by plug-ins, and by no public header.
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

// Says where the running task is, for messages: `"name" (file:line)`, or "no task".
[[nodiscard]] std::string describe_current_task();

// Names a task in reports, also when it is gone: what it points to are literals of the program.
struct TaskLabel {
  const char* name = nullptr;  // null: no task; else for describe() alone
  std::source_location where;
  std::uint64_t id = 0;
};
[[nodiscard]] TaskLabel current_task() noexcept;

// The parts of a suspended task's memory, beside the end of its stack, that are touched when it is
// resumed. Whoever is about to wake the task can prefetch them.
struct Footprint {
  const void* task = nullptr;   // two cache lines; null: no task
  const void* fiber = nullptr;  // two
};
// The footprint of the running task; an empty one outside of tasks.
[[nodiscard]] Footprint footprint() noexcept;

[[nodiscard]] std::string describe(const TaskLabel& task);

// A place of the program, for messages: "stencil.cpp:31", and " (stencil.cpp:31)". C and Fortran
// may give a file alone, or nothing: "an unknown place", and no text.
[[nodiscard]] std::string text_of(const std::source_location& where);
[[nodiscard]] std::string in_parentheses(const std::source_location& where);

// A view of what the workers do, for somebody who watches them. It is cheap, and true for a moment.
struct Situation {
  // Grows whenever a task begins, goes on, or is told of something that it has asked for; but not
  // when one goes on that asks in vain (go_on_asking()).
  std::uint64_t begun = 0;
  bool at_rest = false;     // no worker runs a task, and none is ready
  // Some task asks in vain again and again, with no more than a few microseconds of computing in
  // between, and no worker runs any other.
  bool only_asks = false;
  bool keeps_others = false;  // and it keeps its worker from tasks that are ready
  // With IMBREX_STALL=abort: a report of this process has said that no task goes on, none has
  // since, and the ranks are several. Then the plug-in that knows them has to decide.
  bool halted = false;
};
[[nodiscard]] Situation situation() noexcept;

// What the threads of this process do, as a text that stays the same while none of them goes on.
// Empty if one may go on by itself: it runs code of the program's, or the system does not tell what
// it sleeps in, or it sleeps for a time. The calling thread does not count. `waiting_task`: an id
// of one that waits, though its thread may run; 0: none.
[[nodiscard]] std::string standstill(std::uint64_t waiting_task);

// One task that lives, as reports show it.
struct TaskView {
  TaskLabel task;
  bool runs = false;       // on a worker, or it could
  bool in_mpi = false;     // waits in a call of MPI
  std::string waits_for;   // empty if it runs, or if that cannot be told
};
// With `at_rest` it follows the graph to say what each waits for, which is safe only if
// situation() said so, twice, and while the caller keeps what the tasks wait for from happening.
[[nodiscard]] std::vector<TaskView> view_tasks(bool at_rest);

// One text for each of the last 16 tasks that have failed or did not run: what is waited for may be
// what they would have done.
[[nodiscard]] std::vector<std::string> recent_failures();

// ---- threads ---------------------------------------------------------------------------------

// While it lives, the calling thread is one of imbrex's own, which runs no code of the program's:
// reports do not show it. To be made by each thread that a plug-in starts, and destroyed by it.
class OwnThread {
 public:
  OwnThread() noexcept;
  ~OwnThread();
  OwnThread(const OwnThread&) = delete;
  OwnThread& operator=(const OwnThread&) = delete;
};
// The threads that are there when it is destroyed, and were not when it was made, belong to another
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

// What `error`, of any class of the program's, says: its what(), or a sentence where that is null
// or there is none; and which task has thrown it, if that is one of the last to fail.
[[nodiscard]] std::string thrown_text(const std::exception_ptr& error);

// Writes `text` to standard error. No error and no signal comes of it, whatever that leads to.
void print(std::string_view text) noexcept;
// Ends the program by SIGABRT, after a message that says why; no backtrace of an MPI follows.
[[noreturn]] void abort() noexcept;

// Keeps a text with the calling thread, the last one only. A thread that imbrex does not know has
// no place for it: then it is reported at once, and the kept one says so.
void keep_message(const std::string& text) noexcept;
[[nodiscard]] const char* kept_message() noexcept;

// ---- trace -----------------------------------------------------------------------------------

[[nodiscard]] bool tracing() noexcept;  // one load of a constant after start
// A message that a task sent, or has received. `communicator` is any number that the ranks agree
// on. `task`: an id; 0: the running one.
struct MessageRecord {
  bool sent;
  int peer;
  int tag;
  std::uint64_t bytes;
  std::uint32_t communicator;
  std::uint64_t task = 0;
  std::uint64_t waited_ns = 0;  // not 0: it has left, and has waited so long for its turn before
};
void trace_message(const MessageRecord& message) noexcept;
// The running task begins, or has ended, a collective operation, in which this rank gives `bytes`.
struct CollectiveRecord {
  bool begins;
  const char* call;  // a literal
  std::uint64_t bytes;
  std::uint32_t communicator;
};
void trace_collective(const CollectiveRecord& collective) noexcept;
// A datum with an owner, of this name in the trace. `key`: any number that the ranks agree on,
// below 2^40.
void trace_datum(std::string_view name, std::uint64_t key);
// A copy of a datum leaves this rank for another, or has come to its reader here.
struct CopyRecord {
  bool sent;
  int peer;              // to whom; of one that has come, the root
  int root;              // who has sent it first; a rank of MPI_COMM_WORLD, as is the peer
  std::uint32_t ticket;  // numbers the copies from this root to that rank
  std::uint64_t bytes;
  std::uint64_t datum;   // the key
};
void trace_copy(const CopyRecord& copy) noexcept;

// Between these two the running task is shown as idle in trace and summary, and as waiting in
// reports: it polls in place for what `call`, a literal, says.
void begin_idle(const char* call) noexcept;
void end_idle() noexcept;

// ---- summary ---------------------------------------------------------------------------------

// From the start on, workers measure their times though no option asks for it. Before start() only.
void want_times();

// Sums over this process, for the summary that is printed at the end.
struct Totals {
  double in_task_s, idle_s, overhead_s;  // over all workers; 0 unless want_times() or an option
  double tasks, steals, suspensions, polls;
  double workers;
  double elapsed_s;
};
[[nodiscard]] Totals totals() noexcept;
[[nodiscard]] bool summary_wanted() noexcept;
// One row per rank, printed by whoever has gathered them (rank 0 of the MPI library); then the
// runtime prints none of its own. Empty where another rank prints.
void print_summary(std::span<const Totals> ranks);

}  // namespace imbrex::detail

#pragma GCC visibility pop
