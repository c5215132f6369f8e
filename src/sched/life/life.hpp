// SPDX-License-Identifier: BSD-3-Clause
// The data that outlives a runtime, and the parts of a runtime's life: start.cpp, threads.cpp,
// end.cpp. For the files of this folder alone; others ask runtime() and current_worker().
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
#include "sched/life/blocked.hpp"
#include "sched/run/runtime_state.hpp"

namespace imbrex::sched {

// Whether the program is about to end, and no runtime starts any more.
enum class Ended : std::uint8_t {
  no,
  but_for_threads,  // of the runtime's own, which have left it, and whose thread-locals are left
  for_all
};

// The data that outlives a RuntimeState.
struct Life {
  std::atomic<RuntimeState*> runtime{nullptr};  // first: tools/gdb reads it by that
  std::mutex lock;               // held to start and stop
  std::atomic<bool> closed{false};  // the door of visit.hpp; closed under the lock
  std::mutex end_lock;           // held to set `runtime` to null before it is destroyed
  Ended ended IMBREX_GUARDED_BY(lock) = Ended::no;
  bool leaves_tasks = false;     // detail::leave_tasks()
  void (*before_end)(int status) = nullptr;  // detail::before_end()
  bool hooked = false;           // on_exit and atfork are registered
  std::atomic<pid_t> process{0}; // that started it: a child of fork has no threads
  detail::Place place;
  int rank = 0;
  std::atomic<int> ranks{1};     // main writes
  int joiners_max = 0;           // detail::expect_joiners(), as are the next two
  std::size_t stack_bytes = 0;   // 0: the option's default
  std::uint32_t runtimes = 0;    // that have been started
  cpu_set_t processors{};        // if joiners are expected
  bool want_times = false;
  bool start_throws = false;     // detail::start_or_throw() has been called
  bool summary_printed = false;
  BlockedWatch blocked_watch;
  std::atomic<pid_t> ending_thread{0};  // that waits for the runtime to come to rest; itself
  std::atomic<bool> failed{false};  // errors that nobody had taken have been printed; any thread
};
[[nodiscard]] Life& life() noexcept;

[[nodiscard]] bool is_main_thread() noexcept;

// If no runtime runs, starts one. Where the calling thread is main, it becomes worker 0; else
// worker 0 is a thread of the runtime's like the others: the program's come and go, and main alone
// stays. Throws Error.
void start_if_none() IMBREX_REQUIRES(life().lock);

// The end of the program, and fork, are noticed from now on.
void hook_once();
// The threads of the runtime's own leave it. The caller joins them, without Life::lock and when the
// runtime has ended: destructors of their thread-locals may use tasks, by another runtime.
// REQUIRES: they hold no task.
[[nodiscard]] std::vector<std::thread> stop_threads(RuntimeState& runtime);

// The thread of main begins to end the program, or itself: what comes next is not known yet.
void main_ends();
// To be called by main: should main end by pthread_exit(), that is reported, since its thread is a
// worker.
void notice_pthread_exit() noexcept;

// Writes out what the runtime has counted and recorded, at its end.
void finish_records(RuntimeState& runtime);

// Writes the trace, up to the end of `time`. `cut`: why the program ends before its end; empty if
// it does not. What cannot be written is reported: a trace is never worth a program.
void write_trace(RuntimeState& runtime, const trace::TimeBase& time,
                 const std::string& cut) noexcept;
// From now on the trace is written, too, if a signal ends the program.
void keep_trace();
// Writes the trace now, because of `cut`, if there is a trace. Any thread, at any time; others may
// go on.
void save_trace(const std::string& cut) noexcept;

// ---- threads of the program's own ------------------------------------------------------------

// The calling thread's code becomes a task on its native stack.
void adopt_thread(Worker& worker, const char* name);
// The door is closed, and the thread outside, or it waits and stays behind. `actor` is whoever
// ends the runtime.
void end_visitor(Worker& worker, Worker& actor) noexcept;

}  // namespace imbrex::sched
