// SPDX-License-Identifier: BSD-3-Clause
// The narrow waist: the few plain functions that the public headers and the plug-ins (mpi/, later
// omp/ and dist/) reduce to. Nothing else of the runtime is visible to them.
//
// Thread safety: unless a function says otherwise, any thread may call it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "imbrex/detail/completion.hpp"

#pragma GCC visibility push(default)

namespace imbrex::detail {

// ---- tasks -----------------------------------------------------------------------------------

enum class AccessKind : std::uint8_t {
  in,             // reads
  out,            // writes; ordered like inout, as in OpenMP
  inout,          // reads and writes
  mutexinoutset,  // any order among neighbours of this kind, one at a time
  inoutset,       // any order among neighbours of this kind, together
  after,          // `address` is a Completion that must have completed
  everything      // excludes all siblings with accesses, before and after; no address
};

struct AccessSpec {
  const void* address;
  AccessKind kind;
};

struct TaskSpec {
  const char* name;  // not copied: a string literal, or one that outlives the program's tasks
  std::source_location where;
  int priority = 0;
  bool tied = false;
  std::span<const AccessSpec> accesses = {};
  bool distinct = false;  // the caller knows that no address is given twice
};

// What the runtime does with the memory that create() returned.
struct BodyOps {
  void (*run)(void* closure);               // runs the body, then destroys it; may throw
  void (*drop)(void* closure) noexcept;     // destroys a body that never ran
  void (*destroy)(void* closure) noexcept;  // destroys the result; null if there is nothing to do
  // What run() calls, where many kinds of tasks share it: for policies that learn by kind.
  const void* (*code)(const void* closure) noexcept = nullptr;
};

// A task's memory: `bytes` for its closure, aligned to 64. The caller constructs the closure there,
// then calls submit(), or discard() if it could not. May let other tasks run first, when the
// caller is IMBREX_WINDOW tasks ahead. Suspends. Throws Error after shutdown. The first takes a
// `spec` without accesses, the second one with some, and throws Error if it names one address with
// two kinds.
[[nodiscard]] void* create(const TaskSpec& spec, const BodyOps& ops, std::size_t bytes);
[[nodiscard]] void* create_with_accesses(const TaskSpec& spec, const BodyOps& ops,
                                         std::size_t bytes);
void discard(void* closure) noexcept;

// Gives the task, from the function of the same kind above, to the scheduler. With `keep`, returns
// a reference that the caller owns; else nothing that may be used.
Completion* submit(void* closure, bool keep) noexcept;
Completion* submit_with_accesses(void* closure, bool keep);

void retain(Completion& completion) noexcept;
void release(Completion& completion) noexcept;

// ---- waiting ---------------------------------------------------------------------------------

// Why a task is suspended, for reports. Lives on the waiting stack. `what` is a literal.
struct WaitReason {
  const char* what;
  const Completion* completion = nullptr;  // if it waits for one
  bool mpi = false;                        // then the rest is filled where the call has it
  int peer = -1;
  int tag = -1;
  std::size_t bytes = 0;
};

// True if this thread stands in a task (main included) and waiting would suspend that task.
[[nodiscard]] bool in_task() noexcept;

// True if that task is one that was spawned: not main, nor the code of another thread.
[[nodiscard]] bool in_spawned_task() noexcept;

// A task may ask that a plug-in blocks its worker where it would suspend the task. Kept until the
// task ends; on a thread of the program's own, until the thread does.
void set_blocking(bool blocks);
[[nodiscard]] bool is_blocking() noexcept;

// Suspends the running task until `event` fires. REQUIRES: in_task(), else throws Error. A thread
// of the program's own that waits is blocked instead.
void await(EventWord& event, const WaitReason& reason);

// As await(completion.event), but an unstarted task may be run in place.
void await(Completion& completion);

// Fires; the waiters become ready. REQUIRES: not fired before.
void fire(EventWord& event) noexcept;

// The running task, once its body has ended, is complete only after `event` has fired.
// REQUIRES: in_spawned_task(); the event lives until it has fired.
void release_after(EventWord& event);
// The same for what may fail: then the task fails, as if its body had thrown that error.
void release_after(Completion& completion);
// The running task, with a reference for the caller, if release_after() was called for it; else
// null.
[[nodiscard]] Completion* held_task() noexcept;

// Ends the running task's access to `address`: those that wait for it alone become ready.
void release_access(const void* address);

void yield();          // Suspends.
void wait_children();  // Suspends. Children, not their descendants; rethrows nothing.
void wait_descendants();  // Suspends. REQUIRES: in_task(). As above, and their descendants.

// A finish scope on the stack of the running task. Opaque: the memory of a task::Scope.
struct alignas(64) ScopeMemory {
  std::byte bytes[128];
};
void open_scope(ScopeMemory& memory, const std::source_location& where);
// Suspends until all tasks of the scope and their descendants are complete; then returns the first
// exception among them, or null.
[[nodiscard]] std::exception_ptr close_scope(ScopeMemory& memory) noexcept;
// The one that close_scope() would have to close first; null if the running task has none open.
[[nodiscard]] ScopeMemory* innermost_scope() noexcept;

// ---- completions that are no tasks -----------------------------------------------------------

// One that completes when all of `parts` have (its error: their first), or when any has; `index`
// is then the position of the first. The caller owns the reference. REQUIRES: `parts` not empty.
[[nodiscard]] Completion* join_all(std::span<Completion* const> parts);
[[nodiscard]] Completion* join_any(std::span<Completion* const> parts);
[[nodiscard]] std::size_t joint_index(const Completion& joint) noexcept;

// Promises are allocated by the public header. `destroy` is called at reference count zero.
struct PromiseState : Completion {
  std::atomic<std::uint32_t> holders{1};          // promises; at zero and unset: broken
  std::atomic<bool> taken{false};                 // someone has begun to set it
  void (*destroy)(PromiseState& state) noexcept;  // deletes the whole
  const char* name;
  std::source_location where;
};
// True once; then the caller stores the value or `error` and calls complete().
[[nodiscard]] bool take(PromiseState& state) noexcept;
void complete(PromiseState& state) noexcept;
[[noreturn]] void throw_set_twice(const PromiseState& state);
void drop_holder(PromiseState& state) noexcept;

// ---- named events ----------------------------------------------------------------------------

struct EventName {
  std::string_view text;
  std::int64_t number = 0;
};
// The event that the name means now (trigger.hpp), which somebody waits for from here on. The
// caller owns the reference. Throws Error in a callback.
[[nodiscard]] Completion* name_event(const EventName& name, const std::source_location& where);
// Throws Error if that event has been triggered before.
void trigger(const EventName& name);

// Where an address says what a task accesses (OpenMP's depend), one that no object has can stand
// for a named event. REQUIRES: name.number is below 2^36, and no more than 2^16 texts are used.
inline constexpr std::uintptr_t name_address_mark = 0x1b4;  // its upper 12 bits
[[nodiscard]] const void* address_of(const EventName& name);
[[nodiscard]] inline bool is_name(const void* const address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) >> 52 == name_address_mark;
}
[[nodiscard]] EventName name_at(const void* address) noexcept;  // REQUIRES: from address_of()

struct ProgressSpec {
  int (*call)(void* argument);  // 0: not again; may throw
  void* argument;
  void (*destroy)(void* argument) noexcept;  // called once, after the last call; null: nothing
  std::source_location where;
};
// For the innermost finish() that the running task has open. Throws Error, and takes nothing over,
// if there is none.
void add_progress(const ProgressSpec& spec);

// ---- plug-ins --------------------------------------------------------------------------------

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
  Poller* next = nullptr;  // the runtime's
};
void add_poller(Poller& poller);
// Something has become outstanding by a caller that goes on: somebody shall look after it.
void wake_poller() noexcept;
// A sleeping worker shall look whether there is something to poll, unless another one does.
void wake_worker() noexcept;
void remove_poller(Poller& poller);  // returns when no worker is in it any more

// For threads that poll beside the workers: when those do; whether any worker sleeps; the processor
// that was reserved for such a thread, -1 if there is none.
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

// Between two looks of a thread that waits and spins; `last`, 0 at first, is the caller's. False if
// it shall sleep instead: it has lost its processor to somebody else since the last look, or has of
// late. What spins then uses up the share of the threads that it waits for.
[[nodiscard]] bool may_spin(std::uint64_t& last) noexcept;

// True if main runs, has had no children, and no thread of the program's own has used imbrex: then
// nothing of this process waits for the calling thread, and a call may block it.
[[nodiscard]] bool main_is_alone() noexcept;

// True if main runs, in no callback, and every other task has ended, whoever spawned it. Threads of
// the program's own count as no tasks. Takes as long as looking at all descriptors.
[[nodiscard]] bool main_is_last() noexcept;

// Between these two the running task is shown as idle in trace and summary (it polls in place).
void begin_idle() noexcept;
void end_idle() noexcept;

// Brackets a callback that MPI makes while it progresses: within, in_task() is false. `call`, a
// literal, is what the program calls, for messages; outside of callbacks callback_call() is null.
void enter_callback() noexcept;
void enter_callback(const char* call) noexcept;
void leave_callback() noexcept;
[[nodiscard]] const char* callback_call() noexcept;

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

// Starts the runtime if it does not run; the calling thread becomes worker 0 and what it runs the
// root task. Throws Error if the environment is wrong.
void start();
[[nodiscard]] bool started() noexcept;

// The value of IMBREX_<name> as options.def and the environment have it. Throws Error if that or
// any other option is malformed. REQUIRES: such an option of that kind.
[[nodiscard]] std::string text_option(const char* name);
[[nodiscard]] std::int64_t number_option(const char* name);  // booleans too

// Suspends the root task until no task is left. REQUIRES: called from the root task.
void drain() noexcept;

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

// ---- threads of the program's own as workers, and groups of them --------------------------------

// Before start() only: so many threads may join at the same time. The processors of the runtime are
// those that the calling thread may use now, even if it is bound to one later. Unless
// IMBREX_WORKERS and IMBREX_STACK_SIZE say otherwise, the runtime makes none of its own, and tasks
// have stacks of `stack_bytes` (16 KiB to 1 GiB).
void expect_joiners(int most, std::size_t stack_bytes);

// Starts the runtime if it does not run. The calling thread becomes a worker, if it is none, and
// its code a task on its native stack: where that waits, the thread runs tasks of its groups. Until
// the thread ends. Throws Error if there are too many, and where start() does.
void join_runtime();

// A group: workers that run each other's tasks, and nobody else's. A task belongs to the group of
// its parent, or to the one that enter() names. The program's first task belongs to a group of the
// workers that the runtime has made.
struct Group;
[[nodiscard]] Group& take_group(int size);  // Throws Error. REQUIRES: in_task().
// REQUIRES: it has no task, nor members. Nothing where the runtime has ended, and all groups.
void give_group(Group& group) noexcept;

// One place of a group, in the memory of the calling worker's code.
struct Membership {
  Group* group = nullptr;
  int index = 0;  // below the group's size; nobody else's
  Membership* outer = nullptr;
};
// REQUIRES: join_runtime(). Both by the same thread; groups may be left in any order.
void join_group(Membership& place) noexcept;
void leave_group(Membership& place) noexcept;
// The calling worker's index in `group`, -1 if it does not belong to it.
[[nodiscard]] int place_in(const Group& group) noexcept;

// What the running task was created with.
struct RunningBody {
  const BodyOps* ops = nullptr;  // null for the code of a thread, and outside of workers
  void* closure = nullptr;       // if there are ops
};
[[nodiscard]] RunningBody running_body() noexcept;
// The same, and whether a further task may as well be a call, which has then been counted as run:
// the calling worker has 64 tasks queued for each member of its group, or a window's worth, that
// others may take, and neither the policy nor a trace has to see each task.
[[nodiscard]] RunningBody running_body(bool& enough_queued) noexcept;

// The code that follows, up to leave(), is the task of `closure` (from create()), on this stack. It
// is tied to this thread, and so is meanwhile whatever else stands on this stack. With `group`, it
// belongs to that. Its BodyOps::run is not called. Calls nest.
struct Entered {
  void* task;  // that runs again after leave()
  void* tied_to;
};
void enter(void* closure, Group* group, Entered& entered) noexcept;
void leave(const Entered& entered) noexcept;

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

// ---- reports ---------------------------------------------------------------------------------

// Keeps a text with the calling thread, the last one only. A thread that imbrex does not know has
// no place for it: then it is reported at once, and the kept one says so.
void keep_message(const std::string& text) noexcept;
[[nodiscard]] const char* kept_message() noexcept;

// ---- policies that learn -----------------------------------------------------------------------

// Whether the policy learns which tasks send, and also how long the paths are behind messages;
// constant from start() on.
[[nodiscard]] bool learns_sends() noexcept;
[[nodiscard]] bool learns_paths() noexcept;
// The running task is about to send. These never suspend.
void about_to_send() noexcept;
// The running task sends, or has received, what the ranks know by this number.
void message_leaves(std::uint64_t message) noexcept;
void message_arrives(std::uint64_t message) noexcept;
// How paths are told that messages have opened here; from any worker, must not wait. Null: not.
using PathReport = void (*)(std::uint64_t message, float length_us) noexcept;
void report_paths(PathReport report) noexcept;
// What another rank has told of a message from here.
void learn_path(std::uint64_t message, float length_us) noexcept;

// Where the running task is, for messages: `"name" (file:line)`, or "no task".
[[nodiscard]] std::string describe_current_task();

// Names a task in reports, also when it is gone: what it points to are literals of the program.
struct TaskLabel {
  const char* name = nullptr;  // null: no task
  std::source_location where;
  std::uint64_t id = 0;
};
[[nodiscard]] TaskLabel current_task() noexcept;

// What of a suspended task's memory, beside the end of its stack, is touched when it is resumed:
// for a prefetch by who is about to wake it.
struct Footprint {
  const void* task = nullptr;   // two cache lines; null: no task
  const void* fiber = nullptr;  // two
};
// Of the running task; none outside of tasks.
[[nodiscard]] Footprint footprint() noexcept;

[[nodiscard]] std::string describe(const TaskLabel& task);

// What the workers do, for somebody who watches them. Cheap; a moment's view.
struct Situation {
  std::uint64_t begun = 0;  // grows whenever a task begins or goes on
  bool at_rest = false;     // no worker runs a task, and none is ready
};
[[nodiscard]] Situation situation() noexcept;

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

}  // namespace imbrex::detail

#pragma GCC visibility pop
