// SPDX-License-Identifier: BSD-3-Clause
// The running runtime: one struct with one member for each part. Its start and end are in life/.
// The object that a program makes is imbrex::Runtime (imbrex/runtime.hpp), which has no members.
#pragma once

#include <atomic>
#include <cfenv>
#include <cstdint>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

#include "base/guarded.hpp"
#include "base/options.hpp"
#include "base/sleep/parking.hpp"
#include "base/slab.hpp"
#include "base/spin_lock.hpp"
#include "base/topology.hpp"
#include "base/zeros.hpp"
#include "fiber/stack.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "imbrex/runtime.hpp"
#include "sched/run/current.hpp"
#include "sched/run/group.hpp"
#include "sched/run/silence.hpp"
#include "sched/run/worker.hpp"
#include "task/lineage.hpp"
#include "trace/trace.hpp"

namespace imbrex::sched {

// Processors, by the system's numbers.
struct Share {
  std::vector<int> processors;  // for the workers
  int reserved = -1;            // for a thread that is no worker; -1: none
  bool with_others = false;     // other processes of the node share some of them
};

// How urgently the workers must call a poller, or all of them.
enum class Polling : std::uint8_t {
  none,    // nothing is outstanding, or a thread of the plug-in polls
  wanted,  // poll now and then
  noticed  // poll now: an operation has completed
};

// The workers. A worker that joins while the runtime runs is added at the end, and stays. Thread
// safety: any thread reads; one at a time calls `add`.
class WorkerList {
 public:
  explicit WorkerList(const int most)
      : workers_(base::zeros<Worker*>(static_cast<std::size_t>(most))), most_(most) {}
  ~WorkerList() {
    for (Worker* const worker : *this) delete worker;
  }
  WorkerList(const WorkerList&) = delete;
  WorkerList& operator=(const WorkerList&) = delete;
  [[nodiscard]] std::size_t size() const noexcept {
    return static_cast<std::size_t>(count_.load(std::memory_order_acquire));  // pairs with add()
  }
  [[nodiscard]] bool full() const noexcept { return static_cast<int>(size()) == most_; }
  [[nodiscard]] int most() const noexcept { return most_; }
  Worker& add(std::unique_ptr<Worker> worker) noexcept {
    const int count = count_.load(std::memory_order_relaxed);
    Worker* const added = workers_[static_cast<std::size_t>(count)] = worker.release();
    count_.store(count + 1, std::memory_order_release);
    return *added;
  }
  [[nodiscard]] Worker* operator[](const std::size_t index) const noexcept {
    return workers_[index];
  }
  [[nodiscard]] Worker* const* begin() const noexcept { return workers_.get(); }
  [[nodiscard]] Worker* const* end() const noexcept { return begin() + size(); }

 private:
  const base::Zeros<Worker*> workers_;  // room for as many threads as the system may have
  const int most_;
  std::atomic<int> count_{0};
};

// The tasks of the runtime that destroy dead objects, for workers that run no task. They have no
// parent task; the end of the runtime waits for them. Thread safety: any thread, except await():
// main.
class Dead {
 public:
  // The objects that one of those tasks destroys; lies in its closure.
  struct Rest {
    task::ReadyList tasks;
    detail::Completion* other;  // null: none
  };
  // `run` is their body, which gets a Rest and calls ended() last (loop/destructors.cpp).
  explicit Dead(void (*run)(void* rest)) noexcept;
  ~Dead() = default;
  Dead(const Dead&) = delete;
  Dead& operator=(const Dead&) = delete;

  // Queues a task that destroys the tasks of `tasks` and `other`, if it is not null.
  void queue(Worker& worker, task::ReadyList tasks, detail::Completion* other) noexcept;
  void ended() noexcept;
  // False if none of those tasks is left; otherwise `none_left` fires when none is left.
  [[nodiscard]] bool await(detail::EventWord& none_left) noexcept;

 private:
  const detail::BodyOps ops_;
  Task parent_{};         // parent of all of them; not the code of a thread
  task::Scope scope_;     // counts them; one further task never ends, so that no waiter is woken
  base::SpinLock lock_;
  std::uint64_t count_ IMBREX_GUARDED_BY(lock_) = 0;
  detail::EventWord* awaiting_ IMBREX_GUARDED_BY(lock_) = nullptr;
};

class Triggers;

// Functions of the layers above that the workers call; start.cpp sets them.
struct Above {
  // `task` belongs to a callback's stand-in and is ready: runs it as a call (loop/waiting.hpp).
  void (*run_where_spawned)(Worker& worker, Task& task) noexcept;
  // called by a worker, again and again
  void (*before_sleep)(const RuntimeState& runtime) noexcept;
  void (*nothing_to_do)(RuntimeState& runtime) noexcept;  // called by worker 0 after a long sleep
};

struct RuntimeState {
  // `its_lending` may be null.
  RuntimeState(const base::Options& its_options, Share its_share, int workers_wanted,
               int joiners_max, base::Topology& topology, std::unique_ptr<Lending> its_lending);
  ~RuntimeState();

  const base::Options options;
  const std::uint32_t number;         // number among the runtimes of this process, from 1 on
  const std::vector<int> processors;  // that the workers may use
  const int reserved;                 // a processor that the workers do not use; -1: none
  const bool shared;                  // shared with other ranks
  std::atomic<bool> oversubscribed;   // more workers than processors, or shared
  base::SlabPool task_slots;
  base::SlabPool small_slots;
  fiber::StackPool stacks;
  base::Parking parking;
  std::unique_ptr<Lending> lending;   // null: ranks of the node lend no processors; constant while
                                      // workers run
  WorkerList workers;
  const int spare_workers;            // for processors of other ranks: the last ones at the start
  Groups groups;
  task::Lineage lineage;              // as the policy needs it
  bool one_at_a_time = false;         // the policy takes all
  std::fenv_t floating_point;         // control words that tasks start with
  trace::TimeBase time;

  std::atomic<std::uint64_t> next_id{1};        // blocks of task ids
  std::atomic<detail::Poller*> pollers{nullptr};  // pushed under pollers_lock
  base::SpinLock pollers_lock;
  std::atomic<std::uint64_t> last_poll{0};      // ticks; any worker
  std::atomic<std::uint64_t> poll_gap{0};       // ticks between polls of busy workers; the polling
                                                // thread writes
  std::atomic<std::uint64_t> polls_apart{0};    // ticks, the longest of late; the polling thread
                                                // writes
  std::uint64_t poll_cost_min = 0;              // ticks; a shorter cost is not believed
  std::uint64_t spin_ticks = 0;                 // time that an idle worker spins
  NapLimits naps;                               // of idle threads that poll
  std::uint64_t patience = 0;                   // ticks before it steals what is alone
  std::uint64_t displaced = 0;                  // ticks between two reads of the clock that show
                                                // that the thread did not run
  std::atomic<std::uint64_t> spin_again_at{0};  // ticks; of may_spin(); joined workers write
  std::uint64_t brief = 0;                      // ticks that a theft costs its owner at least
  std::atomic<bool> watched{false};             // an idle worker polls and holds this
  std::atomic<int> napping{0};                  // idle threads between two polls; each polls soon
  std::atomic<bool> in_place{true};             // tasks may poll in place: no poller forbids it
  std::atomic<bool> stopping{false};
  // The number of tasks within go_on_asking(): suspended there, or about to be; for watching
  // threads, relaxed.
  std::atomic<int> asking{0};
  std::atomic<int> still{0};  // watching threads are reading tasks: no task enters go_on_asking()

  base::SpinLock behind_lock;                   // guards Group::behind of all groups
  std::atomic<std::int64_t> behind_count{0};    // of all groups; written under that lock

  base::SpinLock foreign_lock;                  // guards additions to workers, too
  std::vector<Worker*> foreign IMBREX_GUARDED_BY(foreign_lock);
  // Workers of ended threads, for their records in the trace: as many as threads have ended.
  std::vector<std::unique_ptr<Worker>> ended IMBREX_GUARDED_BY(foreign_lock);
  std::atomic<std::size_t> keepers{1};          // see forget_keeper(); counts itself while it runs
  // Joined workers whose threads have ended.
  Worker* left IMBREX_GUARDED_BY(foreign_lock) = nullptr;
  std::atomic<std::uint64_t> last_progress{0};  // ns; the last time that the stall watch saw
                                                // progress
  std::uint64_t progress_mark = 0;              // stall watch
  bool stall_reported = false;                  // stall watch
  std::uint64_t stall_look_at = 0;              // stall watch; ns; not before this time
  flight::Ring completed;             // of the flight recorder; one thread at a time, of MPI's
  // One more than begun() at the last report that no task goes on, if IMBREX_STALL=abort; else 0.
  // The reporting thread writes; BlockedWatch and the watch of all ranks read.
  std::atomic<std::uint64_t> halted_at{0};
  task::Scope unowned;                          // failures outside of any finish()
  const std::unique_ptr<Triggers> triggers;     // names and progress functions
  const Above above;
  Dead dead;

  // True if the thread of another worker may wait for the caller's processor.
  [[nodiscard]] bool workers_share() const noexcept {
    return oversubscribed.load(std::memory_order_relaxed) &&
           parking.asleep() + 1 < static_cast<int>(workers.size());
  }
  // Many more threads than processors are awake. A thread that finds nothing to run then sleeps at
  // once, because an offer of its processor would be one more switch.
  [[nodiscard]] bool crowded() const noexcept {
    const std::size_t awake = workers.size() - static_cast<std::size_t>(parking.asleep());
    return awake > 4 * processors.size();
  }
  // True while a plug-in has something open, and so looks for stalls itself.
  [[nodiscard]] bool watched_elsewhere(Worker& reader) const noexcept;
  [[nodiscard]] Polling polling(Worker& reader) const noexcept;
  // polling() for a worker between two tasks; also looks whether other ranks lend a processor.
  [[nodiscard]] Polling polling_between_tasks(Worker& reader) noexcept;
  // This number of ticks has passed between two polls while tasks ran.
  void note_polls_apart(const std::uint64_t ticks) noexcept {
    const std::uint64_t before = polls_apart.load(std::memory_order_relaxed);
    polls_apart.store(std::max(ticks, before - before / 8), std::memory_order_relaxed);
  }
  // True if a thread polls soon although none holds `watched`. Acquire: the caller has read
  // `watched` before.
  [[nodiscard]] bool somebody_naps() const noexcept {
    return napping.load(std::memory_order_acquire) != 0;
  }
  // Wakes the polling threads of plug-ins; returns the result of polling().
  Polling ring(Worker& reader) const noexcept;
  [[nodiscard]] std::uint64_t begun() const noexcept;  // tasks that have started or resumed

  // Call it before the first task with a place is queued: the workers look in places from now on.
  // Until then places cost nothing.
  void use_places() noexcept;

 private:
  void prepare_places() noexcept;

  base::SpinLock places_lock_;                  // its holder links
  std::atomic<bool> places_used_{false};        // all are linked
};

// A report has said that no task of `runtime` goes on: the program shall end if IMBREX_STALL says
// so, and if nothing else in it goes on either.
inline void note_halt(RuntimeState& runtime) noexcept {
  if (runtime.options.STALL != "abort") return;
  runtime.halted_at.store(runtime.begun() + 1, std::memory_order_relaxed);
}
[[nodiscard]] inline bool is_halted(const RuntimeState& runtime) noexcept {
  return runtime.halted_at.load(std::memory_order_relaxed) == runtime.begun() + 1;
}

// One keeper of the memory of a stopped runtime is gone: a task that a future refers to, or a
// thread that waited when the runtime ended.
void forget_keeper(RuntimeState& runtime) noexcept;

}  // namespace imbrex::sched
