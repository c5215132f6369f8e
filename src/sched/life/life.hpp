// SPDX-License-Identifier: BSD-3-Clause
// The data that outlives a runtime, and the parts of a runtime's life: start.cpp, threads.cpp,
// end.cpp, life.cpp. Only for the files of this folder; other code calls runtime() and
// current_worker().
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "base/guarded.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/runtime.hpp"
#include "fiber/stack.hpp"
#include "sched/life/blocked.hpp"
#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

// Whether the program is about to end, so that no runtime starts any more.
enum class Ended : std::uint8_t {
  no,
  but_for_threads,  // except for threads of the runtime that have left it and still destroy
                    // thread-locals
  for_all
};

// A child of fork(), until it has forked itself: life.cpp.
struct Forked {
  bool is_child = false;
  fiber::Stack stack;              // the forking code runs on it; null: the thread's own
  task::Family* family = nullptr;  // of the forking code, for its first Worker here; may be null
};

// The data that outlives a RuntimeState.
struct Life {
  std::atomic<RuntimeState*> runtime{nullptr};  // first, because tools/gdb finds it there
  std::mutex lock;               // held to start and stop
  std::atomic<bool> closed{false};  // the door of visit.hpp; closed under the lock
  std::mutex end_lock;           // held to set `runtime` to null before it is destroyed
  Ended ended IMBREX_GUARDED_BY(lock) = Ended::no;
  bool leaves_tasks = false;     // detail::leave_tasks()
  void (*before_end)(int status) = nullptr;  // detail::before_end()
  bool hooked = false;           // on_exit is registered
  std::atomic<pid_t> process{0}; // the process that started it; 0: none, or only a parent has
  RuntimeOptions config;         // of the running runtime, or of the parent's: see life.cpp
  Forked forked;
  detail::Place place;
  int rank = 0;
  std::atomic<int> ranks{1};     // main writes
  std::uint64_t world = 0;       // the handle of MPI_COMM_WORLD, as a number; 0: no MPI
  int joiners_max = 0;           // detail::expect_joiners(), as are the next two
  std::size_t stack_bytes = 0;   // 0: the option's default
  std::uint32_t runtimes = 0;    // that have been started
  cpu_set_t processors{};        // if joiners are expected
  bool want_times = false;
  bool start_throws = false;     // detail::start_or_throw() has been called
  bool summary_printed = false;
  std::string quota_text;        // for the summary: how a quota limits the workers; empty: not
  BlockedWatch blocked_watch;
  std::atomic<pid_t> ending_thread{0};  // the thread that waits for the runtime to come to rest
  std::atomic<bool> failed{false};  // untaken errors have been printed; any thread
};
[[nodiscard]] Life& life() noexcept;

[[nodiscard]] bool is_main_thread() noexcept;

// Starts a runtime if none runs. If the calling thread is main, it becomes worker 0; otherwise
// worker 0 is a thread of the runtime, because only main stays to the end. Throws Error.
void start_if_none() IMBREX_REQUIRES(life().lock);
// Whether the end of the program has begun, for the calling thread.
[[nodiscard]] bool has_ended() noexcept IMBREX_REQUIRES(life().lock);

// From now on the end of the program is noticed.
void hook_once();
// The threads of the runtime leave it. The caller joins them, without Life::lock and after the end
// of the runtime: destructors of their thread-locals may use tasks of another runtime. REQUIRES:
// they run no task.
[[nodiscard]] std::vector<std::thread> stop_threads(RuntimeState& runtime);

// The thread of main begins to end the program, or itself; which of the two is not known yet.
void main_ends();
// Main calls it: an end of main by pthread_exit() is then reported, since its thread is a worker.
void notice_pthread_exit() noexcept;

// Writes the counts and records of the runtime, at its end.
void finish_records(RuntimeState& runtime);

// Writes the trace, up to the end of `time`. `cut`: why the program ends early; empty if it does
// not. A write error is reported and has no other effect.
void write_trace(RuntimeState& runtime, const trace::TimeBase& time,
                 const std::string& cut) noexcept;
// From now on the trace is written if a signal ends the program, too.
void keep_trace();
// In a child of fork: the parent's trace is not the child's.
void forget_kept_trace() noexcept;
// Writes the trace now, because of `cut`, if there is a trace. Any thread, at any time; other
// threads may go on.
void save_trace(const std::string& cut) noexcept;

// ---- threads of the program's own ------------------------------------------------------------

// Fills in `fiber` for the calling thread's code, on its own stack or on the one that it forked on.
void adopt_stack(fiber::Fiber& fiber) noexcept;
// The calling thread's code becomes a task on that stack.
void adopt_thread(Worker& worker, const char* name);
// The door is closed, and the thread is outside, or waits and stays behind. `actor` is the worker
// of the thread that ends the runtime.
void end_visitor(Worker& worker, Worker& actor) noexcept;

}  // namespace imbrex::sched
