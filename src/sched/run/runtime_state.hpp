// SPDX-License-Identifier: BSD-3-Clause
// What runs: one struct with one member for each part. Its life is in life/. The object that a
// program makes is imbrex::Runtime (imbrex/runtime.hpp), which has no members.
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
#include "base/parking.hpp"
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
#include "sched/run/worker.hpp"
#include "task/lineage.hpp"
#include "trace/trace.hpp"

namespace imbrex::sched {

// Processors, by the system's numbers.
struct Share {
  std::vector<int> processors;  // for the workers
  int reserved = -1;            // for a thread that is none; -1: no such
};

// Says how urgently the workers must call a poller, or all of them.
enum class Polling : std::uint8_t {
  none,    // nothing is outstanding, or a thread of its own calls it
  wanted,  // now and then
  noticed  // now: something has completed
};

// The workers. Those that join while the runtime runs are added at its end, and stay.
// Thread safety: read by any thread; `add` by one at a time.
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
  const base::Zeros<Worker*> workers_;  // room for as many as the system may have threads
  const int most_;
  std::atomic<int> count_{0};
};

// The runtime's tasks that destroy what is dead, in place of a worker that stands in no task. They
// are nobody's children; the end of the runtime waits for them.
// Thread safety: any thread, but await(): main's code.
class Dead {
 public:
  // What one of those tasks destroys; lies in its closure.
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
  // False if none of those tasks is left; else `none_left` fires when that is so.
  [[nodiscard]] bool await(detail::EventWord& none_left) noexcept;

 private:
  const detail::BodyOps ops_;
  Task parent_{};         // of all of them; not the code of any thread
  task::Scope scope_;     // where they are counted; one more never ends, so nobody is woken
  base::SpinLock lock_;
  std::uint64_t count_ IMBREX_GUARDED_BY(lock_) = 0;
  detail::EventWord* awaiting_ IMBREX_GUARDED_BY(lock_) = nullptr;
};

class Triggers;

// Functions of the layers above that the workers call; start.cpp says which these are.
struct Above {
  // `task` belongs to a callback's stand-in and is ready: it runs as a call (loop/waiting.hpp).
  void (*run_where_spawned)(Worker& worker, Task& task) noexcept;
  void (*before_sleep)(const RuntimeState& runtime) noexcept;  // by a worker, again and again
  void (*nothing_to_do)(RuntimeState& runtime) noexcept;  // by worker 0, where it has slept long
};

struct RuntimeState {
  RuntimeState(const base::Options& its_options, Share its_share, int workers_wanted,
               int joiners_max, bool shared, base::Topology& topology);
  ~RuntimeState();

  const base::Options options;
  const std::uint32_t number;         // among the runtimes of this process, from 1 on
  const std::vector<int> processors;  // that the workers may use
  const int reserved;                 // a processor that they leave alone; -1: none
  const bool shared;                  // with other ranks
  std::atomic<bool> oversubscribed;   // more workers than processors, or shared
  base::SlabPool task_slots;
  base::SlabPool small_slots;
  fiber::StackPool stacks;
  base::Parking parking;
  WorkerList workers;
  Groups groups;
  task::Lineage lineage;              // as the policy wants it
  bool one_at_a_time = false;         // the policy takes all
  std::fenv_t floating_point;         // control words that tasks start with
  trace::TimeBase time;

  std::atomic<std::uint64_t> next_id{1};        // blocks of task ids
  std::atomic<detail::Poller*> pollers{nullptr};  // pushed under pollers_lock
  base::SpinLock pollers_lock;
  std::atomic<std::uint64_t> last_poll{0};      // ticks; any worker
  std::atomic<std::uint64_t> poll_gap{0};       // ticks between polls of busy workers; who polls
  std::atomic<std::uint64_t> polls_apart{0};    // ticks, the longest of late; who polls
  std::uint64_t poll_cost_min = 0;              // ticks; less is not believed
  std::uint64_t spin_ticks = 0;                 // that an idle worker spins
  std::uint64_t patience = 0;                   // ticks before it steals what is alone
  std::uint64_t displaced = 0;                  // ticks between two looks: the thread did not run
  std::atomic<std::uint64_t> spin_again_at{0};  // ticks; threads of the program's own; any of them
  std::uint64_t brief = 0;                      // ticks that a theft costs its owner at least
  std::atomic<bool> watched{false};             // an idle worker polls; it holds this
  std::atomic<bool> in_place{true};             // tasks may poll in place: no poller forbids it
  std::atomic<bool> stopping{false};
  // Tasks within go_on_asking(): suspended there, or about to be; for who watches, and relaxed.
  std::atomic<int> asking{0};
  std::atomic<int> still{0};  // such threads are looking at tasks: nobody goes into go_on_asking()

  base::SpinLock behind_lock;                   // guards Group::behind of all groups
  std::atomic<std::int64_t> behind_count{0};    // of all groups; written under that lock

  base::SpinLock foreign_lock;                  // guards additions to workers, too
  std::vector<Worker*> foreign IMBREX_GUARDED_BY(foreign_lock);
  std::atomic<std::size_t> keepers{1};          // forget_keeper(); itself, while it runs
  // Joined workers whose threads have ended.
  Worker* left IMBREX_GUARDED_BY(foreign_lock) = nullptr;
  std::atomic<std::uint64_t> last_progress{0};  // ns; when the stall watch last saw any
  std::uint64_t progress_mark = 0;              // stall watch
  bool stall_reported = false;                  // stall watch
  std::uint64_t stall_look_at = 0;              // stall watch; ns; the next not before
  // One more than begun() at the last report that no task goes on, if IMBREX_STALL=abort; else 0.
  // Whoever reports writes; BlockedWatch reads, and who watches all ranks.
  std::atomic<std::uint64_t> halted_at{0};
  task::Scope unowned;                          // what fails outside of any finish()
  const std::unique_ptr<Triggers> triggers;     // names and progress functions
  const Above above;
  Dead dead;

  // True if the thread of another worker may wait for the caller's processor.
  [[nodiscard]] bool workers_share() const noexcept {
    return oversubscribed.load(std::memory_order_relaxed) &&
           parking.asleep() + 1 < static_cast<int>(workers.size());
  }
  // Many more threads than processors are awake: one that finds nothing to run makes room, and does
  // not even offer its processor first, which is one more switch.
  [[nodiscard]] bool crowded() const noexcept {
    const std::size_t awake = workers.size() - static_cast<std::size_t>(parking.asleep());
    return awake > 4 * processors.size();
  }
  // True while a plug-in has something open, and so looks for stalls itself.
  [[nodiscard]] bool watched_elsewhere(Worker& reader) const noexcept;
  [[nodiscard]] Polling polling(Worker& reader) const noexcept;
  // So many ticks have passed between two polls while tasks ran.
  void note_polls_apart(const std::uint64_t ticks) noexcept {
    const std::uint64_t before = polls_apart.load(std::memory_order_relaxed);
    polls_apart.store(std::max(ticks, before - before / 8), std::memory_order_relaxed);
  }
  // Wakes the threads that poll for others; what polling() says.
  Polling ring(Worker& reader) const noexcept;
  // As detail::may_spin(). Asked for joined workers only: of the others there are as many as
  // processors.
  [[nodiscard]] bool may_spin(std::uint64_t& last) noexcept {
    const std::uint64_t now = base::ticks();
    if (last != 0 && now > last + displaced) {
      spin_again_at.store(now + 256 * displaced, std::memory_order_relaxed);
    }
    last = now;
    return now >= spin_again_at.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t begun() const noexcept;  // tasks that have started or gone on

  // To be called before the first task that is given a place is queued: the workers look there from
  // now on. Until then places cost nothing.
  void use_places() noexcept;

 private:
  void prepare_places() noexcept;

  base::SpinLock places_lock_;                  // whoever holds it links
  std::atomic<bool> places_used_{false};        // all are linked
};

// A report has said that no task of `runtime` goes on: the program is to end if IMBREX_STALL says
// so, and if nothing else of it goes on either.
inline void note_halt(RuntimeState& runtime) noexcept {
  if (runtime.options.STALL != "abort") return;
  runtime.halted_at.store(runtime.begun() + 1, std::memory_order_relaxed);
}
[[nodiscard]] inline bool is_halted(const RuntimeState& runtime) noexcept {
  return runtime.halted_at.load(std::memory_order_relaxed) == runtime.begun() + 1;
}

// One of those that keep the memory of a stopped runtime is gone: a task that a future refers to,
// or a thread that waited when it ended.
void forget_keeper(RuntimeState& runtime) noexcept;

}  // namespace imbrex::sched
