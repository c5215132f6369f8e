// SPDX-License-Identifier: BSD-3-Clause
// The waist for plug-ins that poll to make events fire, and that take part in the start and the end
// of the runtime. Used by mpi/, by omp/ in part, and by no public header.
//
// Thread safety: unless a function says otherwise, any thread may call it.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "imbrex/detail/stop.hpp"
#include "imbrex/detail/waist.hpp"

#pragma GCC visibility push(default)

namespace imbrex::detail {

// ---- scopes ----------------------------------------------------------------------------------

// The construct of the program that opened a scope, for messages.
enum class ScopeKind : std::uint8_t {
  finish,     // of C++; no body leaves it open
  of_c,       // imbrex_finish_begin()
  of_hcmpi,   // hc_finish_begin()
  taskgroup,  // of OpenMP
  recording,  // iterate(), while its body runs: the tasks are not run, but become nodes
  iterate
};
// open_scope(memory, where) opens a scope of ScopeKind::finish.
void open_scope(ScopeMemory& memory, const std::source_location& where, ScopeKind kind);
// Likewise for open_stoppable_scope() (stop.hpp).
[[nodiscard]] std::stop_source open_stoppable_scope(ScopeMemory& memory, bool on_error,
                                                    const std::source_location& where,
                                                    ScopeKind kind);
// Ends the scopes that the running task has opened since `outermost` (null: since the task began)
// and left open when its code ended. An open scope is an error of the next scope around; `code`
// names the code ("the body of task"). Suspends.
void end_scopes(ScopeMemory* outermost, const char* code) noexcept;
// Says why `memory` is not the innermost scope of the running task ("is not ..."); empty if it is.
// Reads only the address `memory`.
[[nodiscard]] std::string why_not_innermost(const ScopeMemory* memory);

// ---- pollers --------------------------------------------------------------------------------

// A plug-in that must be polled to make its events fire. Any number of threads call poll() at once,
// never with a lock of the runtime held; it never suspends, and returns the number of operations
// that it completed. While `outstanding` is above zero there is no stall, and workers call poll():
// one idle worker all the time, busy workers between tasks, for 2 % of their time at most, and all
// at yields.
struct Poller {
  int (*poll)(void* context) noexcept;
  void* context;
  const std::atomic<int>* outstanding;
  // False: a thread of the plug-in calls poll(), and tasks do not poll in place.
  bool by_workers = true;
  // Null, or true when an operation is known to have completed: busy workers then call poll() at
  // once.
  const std::atomic<bool>* noticed = nullptr;
  // Null, or called when an operation is outstanding and a task suspends: it wakes a polling thread
  // that sleeps while nothing is outstanding.
  void (*wake)(void* context) noexcept = nullptr;
  // Null, or called by a worker that has found nothing to run in this process: at each round of an
  // idle worker, and so at least once before it sleeps, whatever is outstanding. Any number of
  // workers call it at once, under the rules of poll(). Returns true if it has made something
  // ready. A sleeping worker does not call it: later work comes by poll().
  bool (*seek)(void* context) noexcept = nullptr;
  // Null, or the number of open waits that no poll brings forward. While it is above zero the
  // runtime reports no stall; the plug-in reports it, because only the plug-in can name the cause.
  const std::atomic<int>* watched = nullptr;
  Poller* next = nullptr;  // for the runtime
};
void add_poller(Poller& poller);
// An operation has become outstanding, and its caller goes on: wakes a thread that polls.
void wake_poller() noexcept;
// Wakes a sleeping worker to poll, unless another worker polls.
void wake_worker() noexcept;
void remove_poller(Poller& poller);  // returns when no worker is in it any more

// For threads that poll beside the workers: when the workers have polled last, whether a worker
// sleeps, and the processor that is reserved for such a thread (-1: none).
struct WorkerPolls {
  std::uint64_t age_us;    // since the last poll
  std::uint64_t apart_us;  // between two polls, while tasks ran: the longest of late
};
[[nodiscard]] WorkerPolls worker_polls() noexcept;
[[nodiscard]] bool worker_idles() noexcept;
[[nodiscard]] int reserved_processor() noexcept;

// True if this worker knows of nothing else to run: a short wait may then poll in place. A hint,
// cheap enough for each round.
[[nodiscard]] bool nothing_ready() noexcept;
// True if the thread of another worker may wait for this one's processor.
[[nodiscard]] bool workers_share() noexcept;

// Call it between two polls of a spinning thread; `last`, 0 at first, belongs to the caller. False
// if the thread shall sleep instead: it has lost its processor to another thread since the last
// poll, or recently. Spinning would then take processor time from the threads that it waits for.
[[nodiscard]] bool may_spin(std::uint64_t& last) noexcept;

// ---- repeated polls by the program -----------------------------------------------------------

// A call of a plug-in reports that an operation is not complete yet, or that it is. Code that loops
// on such a call must not keep its worker for ever. asked_in_vain() returns true each time that the
// running task has asked fruitless_asks times in a row without success: the plug-in then calls
// go_on_asking(). A thousand successes begin no new row: code may find one operation complete
// again and again while it waits for another.
inline constexpr unsigned fruitless_asks = 100;
[[nodiscard]] bool asked_in_vain() noexcept;
void asked_with_success() noexcept;
// Polls, and lets a ready task run, before the running task goes on. It does not suspend in a
// callback, if the task blocks (set_blocking()) or holds a lock of OpenMP, or without
// `may_suspend`. `call`, a literal, names the question in reports. Suspends.
void go_on_asking(const char* call, bool may_suspend) noexcept;

// True if main runs, has had no children, and no other thread of the program has used imbrex:
// nothing in this process waits for the calling thread, and a call may block it.
[[nodiscard]] bool only_main_uses_imbrex() noexcept;

// True if main runs, in no callback.
[[nodiscard]] bool in_main() noexcept;
// True if main runs, in no callback, and every other task has ended. Threads of the program do not
// count as tasks. Looks at all descriptors.
[[nodiscard]] bool main_is_last() noexcept;

// Bracket a callback that MPI makes while it progresses: within, in_task() is false. `call`, a
// literal, is the program's call, for messages; outside of callbacks callback_call() is null.
void enter_callback() noexcept;
void enter_callback(const char* call) noexcept;
void leave_callback() noexcept;
[[nodiscard]] const char* callback_call() noexcept;

// Let functions that a poller calls, outside of tasks, spawn tasks. Between the two calls the
// thread counts as a thread of the program in a callback, so it must not wait. `guest` is the same
// each time, and has one thread at a time in it. No effect if no runtime runs. REQUIRES: no thread
// enters after the runtime begins to end; MPI_Finalize comes before.
struct Guest {
  void* worker = nullptr;  // for the runtime, as is the next field
  void* before = nullptr;
  bool inside = false;
};
void enter_as(Guest& guest);
void leave_as(Guest& guest) noexcept;

// The plug-in blocks the worker of the running task where it would suspend the task. Valid until
// the task ends; on a thread of the program, until the thread ends.
void set_blocking(bool blocks);
[[nodiscard]] bool is_blocking() noexcept;

// ---- accesses that end as data come -----------------------------------------------------------

// From now on a plug-in may end accesses of the running task as their data arrive, or have left.
// REQUIRES: in_task().
void release_by_blocks();
[[nodiscard]] bool releases_by_blocks() noexcept;

// An access of the running task to memory that has not ended, and that no event ends.
struct OpenAccess {
  const void* address;
  std::size_t bytes;  // 1 where only an address was named
  bool range;         // named with its bounds, as release_access_after() must name it
};
// The accesses in, out and inout, in the order of their declaration. Empty outside of tasks.
[[nodiscard]] std::vector<OpenAccess> open_accesses();

// ---- life cycle ------------------------------------------------------------------------------

// The processors that this process may use, whichever of them the calling thread is bound to.
[[nodiscard]] cpu_set_t allowed_processors() noexcept;
// The processes of a node that divide its processors. The workers use this process's share.
struct Place {
  std::vector<cpu_set_t> allowed = {};  // of each process; empty: this process is alone
  std::size_t index = 0;                // this process's position in `allowed`
  bool reserve = false;  // leave one of several processors to a thread that is no worker
};
void set_place(Place place);  // before start() only
// For messages, trace, summary and flight recorder. `world`: the handle of MPI_COMM_WORLD, as a
// number.
void set_rank(int rank, int ranks, std::uint64_t world);

// The number of threads that use the time that control groups grant this process, by the smallest
// CPU quota; INT_MAX if there is none. Reads files at the first call.
[[nodiscard]] int threads_by_quota();

// The value of IMBREX_<name>, from the environment or options.def. Throws Error if this or any
// other option is malformed. REQUIRES: an option of this name and type exists.
[[nodiscard]] std::string text_option(const char* name);
[[nodiscard]] std::int64_t number_option(const char* name);  // booleans too

// Starts the runtime if it does not run; main then becomes worker 0, and its code a task. The
// calling thread counts as a thread that uses tasks. Throws Error if the environment is wrong; a
// malformed option ends the process, with a message and status 2.
void start();
// start() for a plug-in that reports malformed options itself: it throws for them, too, from now
// on.
void start_or_throw();
[[nodiscard]] bool started() noexcept;

// Waits until no thread has a task left, and no thread of the program is in a call or within
// finish(). Suspends. In a spawned task: until it has no descendants.
void drain() noexcept;
// Prints the errors that neither get() nor finish() has rethrown. True if there are any, now or
// before: the process shall then fail.
[[nodiscard]] bool report_failures() noexcept;
// Prints those errors, and the errors of each open finish(): the caller ends the program.
void report_all_failures() noexcept;
// At exit() no thread waits for tasks any more, because the events that they wait for may never
// come.
void leave_tasks() noexcept;
// Calls `hook` in each child of fork() from now on, before the core forgets the parent's runtime:
// the running code is still the task that has forked. The hook must neither wait nor call functions
// that may start the runtime. At most four hooks.
void in_child_of_fork(void (*hook)() noexcept);
// Called in main at exit(0), before the core waits for tasks; perhaps more than once.
void before_end(void (*hook)(int status));

// ---- tasks that may run elsewhere ------------------------------------------------------------

// Takes ready tasks out of the queues that have not begun: of the kind that their BodyOps name,
// without a place and without a group of a plug-in. It takes as many as `closures` has room for; of
// the tasks of one worker's queue, those that the worker would run last. Returns their number. The
// caller owns each closure until give_back(), after which the task runs here; it may then only take
// over a result that was computed elsewhere. Until then the task counts as live, and its dependents
// wait. Never suspends, but searches queues under their locks, so do not call it for each task.
// REQUIRES: `outstanding` of a poller is above zero while the caller owns tasks, since no worker
// runs them.
[[nodiscard]] std::size_t take_ready(const void* kind, std::span<void*> closures) noexcept;
void give_back(void* closure) noexcept;

// ---- the end of many tasks -------------------------------------------------------------------

// The number of tasks spawned in the open scope `memory` that are not complete with all their
// descendants, and of incomplete operations that it owns (hold_finish()); 0 if nothing is left. For
// code that detects the end of a computation over many processes; exact for everything that ended
// before the call. Called by the task that opened the scope, or by others while that task neither
// spawns nor begins to close the scope, and waits for them before it goes on.
[[nodiscard]] std::uint32_t live_in_scope(const ScopeMemory& memory) noexcept;

// ---- policies that learn ---------------------------------------------------------------------

// Whether the policy learns which tasks send, and the length of the paths behind messages; constant
// from start() on.
[[nodiscard]] bool learns_sends() noexcept;
[[nodiscard]] bool learns_paths() noexcept;
// The running task is about to send. The three functions never suspend.
void about_to_send() noexcept;
// The running task sends, or has received, the message of this number, which the ranks agree on.
void message_leaves(std::uint64_t message) noexcept;
void message_arrives(std::uint64_t message) noexcept;
// The runtime calls `report` for each path that a message from another rank has opened here. Any
// worker calls it, so it must not wait. Null: no report.
using PathReport = void (*)(std::uint64_t message, float length_us) noexcept;
void report_paths(PathReport report) noexcept;
// The order of messages of the running task to that rank of MPI_COMM_WORLD (-1: no such rank),
// among other messages to it: a larger urgency first, by the policy; then an earlier task.
struct Precedence {
  int urgency;
  std::uint64_t task;
};
[[nodiscard]] Precedence precedence_of_message(int rank) noexcept;
// The priorities that the policy gives to tasks that send, and to tasks before them; all 0 unless
// the policy learns sends.
struct SendWorth {
  int any;      // of a task that sends, to whatever rank
  int of_rank;  // how much more of a task that sends to that rank
  int step;     // how much less of its predecessors, at each step
};
[[nodiscard]] SendWorth worth_of_sending_to(int rank) noexcept;
// Another rank has reported the length of the path that a message from here has opened there.
void learn_path(std::uint64_t message, float length_us) noexcept;

}  // namespace imbrex::detail

#pragma GCC visibility pop
