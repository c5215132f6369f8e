// SPDX-License-Identifier: BSD-3-Clause
// The waist for plug-ins, which make events fire by calling something again and again, and have a
// say in how the runtime starts and ends. Used by mpi/, by omp/ in part, and by no public header.
//
// Thread safety: unless a function says otherwise, any thread may call it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <vector>

#include "imbrex/detail/waist.hpp"

#pragma GCC visibility push(default)

namespace imbrex::detail {

// ---- scopes ----------------------------------------------------------------------------------

// What the program has written to open a scope, for messages.
enum class ScopeKind : std::uint8_t {
  finish,     // of C++, which no body leaves open
  of_c,       // imbrex_finish_begin()
  of_hcmpi,   // hc_finish_begin()
  taskgroup   // of OpenMP
};
// As open_scope(memory, where) for ScopeKind::finish.
void open_scope(ScopeMemory& memory, const std::source_location& where, ScopeKind kind);
// The code that has run since `outermost` was the innermost scope of the running task (null: since
// the task began) has ended. Ends the scopes that it has left open: an error, which `code` names
// ("the body of task"), and which the next scope around has. Suspends.
void end_scopes(ScopeMemory* outermost, const char* code) noexcept;
// What is wrong with `memory` as the innermost scope of the running task ("is not ..."); empty if
// nothing is. Of `memory` nothing but the address is used.
[[nodiscard]] std::string why_not_innermost(const ScopeMemory* memory);

// ---- pollers --------------------------------------------------------------------------------

// Something that must be called again and again to make events fire. poll() is called by any
// number of threads at once, never with a lock of ours held, never suspends; it returns how many
// operations it completed. While `outstanding` is above zero there is no stall, and workers call
// it: one idle worker all the time, busy ones between tasks, for 2 % of their time at most, and all
// at yields.
struct Poller {
  int (*poll)(void* context) noexcept;
  void* context;
  const std::atomic<int>* outstanding;
  // False: a thread of its own calls poll(), and tasks do not poll in place.
  bool by_workers = true;
  // Null, or true when something is known to have completed: then busy workers call at once.
  const std::atomic<bool>* noticed = nullptr;
  // Null, or called when something is outstanding and a task suspends: a thread that sleeps while
  // nothing is outstanding shall wake.
  void (*ring)(void* context) noexcept = nullptr;
  // Null, or called by a worker that has found nothing to run in this process: at each look of an
  // idle one, and so at least once before it sleeps, whatever is outstanding. By any number of
  // workers at once, under the rules of poll(). True if it has made something ready. A worker that
  // has gone to sleep is not asked again until it wakes: what comes later comes by poll().
  bool (*seek)(void* context) noexcept = nullptr;
  // Null, or counts what is open and no poll brings forward. While it is above zero the runtime
  // reports no stall: the plug-in does, since only it can name what is waited for.
  const std::atomic<int>* watched = nullptr;
  Poller* next = nullptr;  // the runtime's
};
void add_poller(Poller& poller);
// Something has become outstanding by a caller that goes on: somebody shall look after it.
void wake_poller() noexcept;
// A sleeping worker shall look whether there is something to poll, unless another one does.
void wake_worker() noexcept;
void remove_poller(Poller& poller);  // returns when no worker is in it any more

// Threads that poll beside the workers ask these: when the workers have polled; whether any worker
// sleeps; which processor was reserved for such a thread, -1 if none was.
struct WorkerPolls {
  std::uint64_t age_us;    // since the last one
  std::uint64_t apart_us;  // between two, while tasks ran: the longest of late
};
[[nodiscard]] WorkerPolls worker_polls() noexcept;
[[nodiscard]] bool worker_idles() noexcept;
[[nodiscard]] int reserved_processor() noexcept;

// True if this worker knows of nothing else to run: then a wait that will be short may poll in
// place. A hint, cheap enough to be asked at each round.
[[nodiscard]] bool nothing_ready() noexcept;
// True if the thread of another worker may wait for this one's processor.
[[nodiscard]] bool workers_share() noexcept;

// To be called between two looks of a thread that waits and spins; `last`, 0 at first, is the
// caller's. False if the thread shall sleep instead: it has lost its processor to somebody else
// since the last look, or has of late. What spins then uses up the share of the threads that it
// waits for.
[[nodiscard]] bool may_spin(std::uint64_t& last) noexcept;

// ---- questions that are asked again and again ---------------------------------------------------

// A plug-in's call has found out that something is not there yet, or that it is: code that loops on
// such a call must not keep its worker for ever. The first returns true each time that the running
// task has asked fruitless_asks times in a row: then the plug-in calls go_on_asking(). A thousand
// answers begin no row anew: code may find one thing again and again while it waits for another.
inline constexpr unsigned fruitless_asks = 100;
[[nodiscard]] bool asked_in_vain() noexcept;
void asked_with_success() noexcept;
// Polls, and lets another task run if one is ready, before the running task goes on. Not where
// nothing can be suspended, not if the task blocks (set_blocking()) or has a lock of
// OpenMP's, and only if `may_suspend`. `call`, a literal, names the question in reports. Suspends.
void go_on_asking(const char* call, bool may_suspend) noexcept;

// True if main runs, has had no children, and no thread of the program's own has used imbrex: then
// nothing of this process waits for the calling thread, and a call may block it.
[[nodiscard]] bool main_is_alone() noexcept;

// True if main runs, in no callback.
[[nodiscard]] bool in_main() noexcept;
// True if main runs, in no callback, and every other task has ended, whoever spawned it. Threads of
// the program's own count as no tasks. Takes as long as looking at all descriptors.
[[nodiscard]] bool main_is_last() noexcept;

// Brackets a callback that MPI makes while it progresses: within, in_task() is false. `call`, a
// literal, is what the program calls, for messages; outside of callbacks callback_call() is null.
void enter_callback() noexcept;
void enter_callback(const char* call) noexcept;
void leave_callback() noexcept;
[[nodiscard]] const char* callback_call() noexcept;

// Lets functions that a poller calls, and that stand in no task, spawn tasks: between these two the
// calling thread counts as one of the program's own, in a callback, so it can wait for nothing.
// `guest` is the same each time, and has one thread at a time in it. Nothing if no runtime runs.
// REQUIRES: nobody enters any more when the runtime begins to end; MPI_Finalize is before that.
struct Guest {
  void* worker = nullptr;  // the runtime's, as is the next
  void* before = nullptr;
  bool inside = false;
};
void enter_as(Guest& guest);
void leave_as(Guest& guest) noexcept;

// A task may ask that a plug-in blocks its worker where it would suspend the task. Kept until the
// task ends; on a thread of the program's own, until the thread does.
void set_blocking(bool blocks);
[[nodiscard]] bool is_blocking() noexcept;

// ---- accesses that end as data come -----------------------------------------------------------

// From now on a plug-in may end accesses of the running task as the data that they name arrive, or
// have left. REQUIRES: in_task().
void release_by_blocks();
[[nodiscard]] bool releases_by_blocks() noexcept;

// An access of the running task to memory that has not ended, and does not end by an event.
struct OpenAccess {
  const void* address;
  std::size_t bytes;  // 1 where only an address was named
  bool range;         // it was named with its bounds: so has release_access_after() to name it
};
// Those by in, out and inout, in the order in which they were declared. None outside of tasks.
[[nodiscard]] std::vector<OpenAccess> open_accesses();

// ---- life cycle ------------------------------------------------------------------------------

// Which share of the process's processors the workers may use: ranks of one node that may run on
// the same processors divide them. Before start() only.
struct Place {
  int index = 0;  // this process among those with the same affinity mask
  int count = 1;
  bool reserve = false;  // leave one of several processors to a thread that is no worker
};
void set_place(const Place& place);
void set_rank(int rank, int ranks);  // for messages, trace and summary

// The value of IMBREX_<name>, by the environment or options.def. Throws Error if that or any other
// option is malformed. REQUIRES: such an option of that kind.
[[nodiscard]] std::string text_option(const char* name);
[[nodiscard]] std::int64_t number_option(const char* name);  // booleans too

// Starts the runtime if it does not run; main then becomes worker 0, and its code a task. From here
// on the calling thread is one that uses tasks. Throws Error if the environment is wrong, but ends
// the process, with a message and status 2, where that is the value of an option.
void start();
// The same for a plug-in that tells of refused options itself: that throws, too, from now on.
void start_or_throw();
[[nodiscard]] bool started() noexcept;

// Waits until no task is left, of whatever thread, nor a thread of the program's own in a call or
// within finish(). Suspends. In a spawned task: until it has no descendants.
void drain() noexcept;
// Prints the errors that nobody has taken, outside of any finish(). True if there have been any,
// now or before: then the process shall fail.
[[nodiscard]] bool report_failures() noexcept;
// Tells those errors, and those of any finish() that is open: the caller ends the program.
void report_all_failures() noexcept;
// At exit() nobody waits for tasks any more: what they wait for may never come.
void leave_tasks() noexcept;
// Called in main at exit(0), before the core waits for tasks; perhaps more than once.
void before_end(void (*hook)(int status));

// ---- tasks that may run elsewhere ------------------------------------------------------------

// Takes tasks out of the queues that are ready and have not begun, of the kind that their BodyOps
// name, and belong to no place or group of a plug-in: as many as `closures` has room for, and of
// those that one worker has queued the ones that it would run last. All other tasks stay where they
// are. How many, whose closures are then the caller's: each until give_back(), after which it runs
// here, which may mean no more than to take over what was computed elsewhere. Until then it counts
// as live, and what waits for it waits. Never suspends; but a queue is searched under its lock, so
// not for each task. REQUIRES: `outstanding` of a poller is above zero while the caller has any,
// since they look like tasks that nobody runs.
[[nodiscard]] std::size_t take_ready(const void* kind, std::span<void*> closures) noexcept;
void give_back(void* closure) noexcept;

// ---- the end of many tasks -------------------------------------------------------------------

// How many tasks that were spawned in the open scope `memory` are not complete with all their
// descendants, and how many operations that it owns (hold_finish()) are not: 0 if nothing of it is
// left. For whoever has to find out that a computation over many processes has ended; exact for
// what has ended before the call. Called by the task that opened the scope, or by others as long as
// that one neither spawns nor begins to close the scope: before it goes on it waits for them.
[[nodiscard]] std::uint32_t live_in_scope(const ScopeMemory& memory) noexcept;

// ---- policies that learn ---------------------------------------------------------------------

// Whether the policy learns which tasks send, and also how long the paths are behind messages;
// constant from start() on.
[[nodiscard]] bool learns_sends() noexcept;
[[nodiscard]] bool learns_paths() noexcept;
// The running task is about to send. These never suspend.
void about_to_send() noexcept;
// The running task sends, or has received, what the ranks know by this number.
void message_leaves(std::uint64_t message) noexcept;
void message_arrives(std::uint64_t message) noexcept;
// The runtime calls `report` for each path that a message from elsewhere has opened here. It does
// so from any worker, so the call must not wait. Null: nobody is told.
using PathReport = void (*)(std::uint64_t message, float length_us) noexcept;
void report_paths(PathReport report) noexcept;
// When what the running task sends to that rank of MPI_COMM_WORLD (-1: none of these) shall go, if
// other messages go there too: a larger urgency first, by the policy; then an earlier task.
struct Precedence {
  int urgency;
  std::uint64_t task;
};
[[nodiscard]] Precedence precedence_of_message(int rank) noexcept;
// Another rank has told how long the path is that a message from here has opened there.
void learn_path(std::uint64_t message, float length_us) noexcept;

}  // namespace imbrex::detail

#pragma GCC visibility pop
