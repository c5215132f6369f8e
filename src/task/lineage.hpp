// SPDX-License-Identifier: BSD-3-Clause
// Lineage: which tasks precede a task that has not begun, and how priority flows up to them:
// Algorithm 1 of Pereira et al. 2021, one task at a time as they are made. Where no task is marked,
// it also learns which tasks send, by their profiles. Kept only under a policy that needs it. Knows
// no queue: the owner of a queue is called back.
//
// The predecessors of a task are found from its edges (Waiter::follows), each with a lock of its
// own, and from its past: the futures among its accesses, and completions that it waits for without
// having declared them, which are listed while it waits. The past has one lock, in
// AccessBlock::past.
//
// Thread safety: any thread calls raise(), for a task that the caller keeps alive, and catch_up().
// The task itself calls sends(), wait() and hold(). The thread that completes a task calls
// forget_edges() for its followers; the thread that begins a task calls begins() and end_lineage().
// The creator calls the rest until the task is submitted.
// Invariants:
//   (1) the holder of the lock of an edge, or of a past, may use the task that it leads to. A task
//       that completes is taken out of all edges that follow it before its own reference is
//       dropped. A list owns a reference to each task in it; an access owns one to its future,
//       until end_lineage().
//   (2) both lead to tasks created earlier: there is no cycle, and no thread holds two of these
//       locks.
//   (3) no raise is lost. The thread that makes a task ready sets its state, then reads the
//       priority by a read-modify-write (queued_priority). A thread that raises the task changes
//       the priority by a read-modify-write, then reads the state. If the raise comes first, the
//       queue reads the new priority. Otherwise the raise has read the other one's write, so it
//       sees the state and asks for a second entry.
//   (4) no task runs twice: of several entries one claims the task, by a compare-and-swap, since
//       mark() says that priority flows to it (Reach::flow).
//   (5) no task is missed: sends() changes the profile, then sets `behind_`, which catch_up()
//       clears before it visits all remembered tasks. Either the visit finds a task there, or the
//       task was added after the visit; remember() then sees the changed profile and sets `behind_`
//       again. (Both take the lock of `recent`.)
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/slab.hpp"
#include "task/access_block.hpp"
#include "task/profile.hpp"
#include "task/recent.hpp"

namespace imbrex::task {

// How a policy uses the priorities that a program gives.
struct Flow {
  int marked = 0;        // the priority of a task with one above 0; all others have 0; 0:
                         // priorities as given
  bool upward = false;   // predecessors get its priority, minus `step`
  int step = 0;
  bool control = false;  // so do tasks that a task creates, or waits for without declaring it
  bool learns = false;   // only tasks whose profile leads to a send are marked
  int urgent = 0;        // how much a send counts more for each degree of its urgency; 0: no times
  int untried = 0;       // if it learns: for a task of a kind of which none has begun, in each
                         // round
  [[nodiscard]] bool times() const noexcept { return urgent != 0; }
  // Whether priorities can rise at all after a task has been submitted.
  [[nodiscard]] bool raises() const noexcept { return marked == 0 || upward || control; }
};

// Up to six tasks that one task waits for; each node of the list fills one slot.
struct Predecessors {
  Predecessors* next;
  std::uint64_t count;
  Task* tasks[6];
};
static_assert(sizeof(Predecessors) == 64);

// The priority by which a queue that raises tasks orders a new task; (3).
[[nodiscard]] inline int queued_priority(Task& task) noexcept {
  return task.priority.fetch_add(0, std::memory_order_acq_rel);
}

class Lineage {
 public:
  // Gives a task that is ready to begin a second queue entry, at a higher place. The caller keeps
  // the task alive meanwhile. Must not wait.
  using Requeue = void (*)(void* context, Task& task, int priority);

  // For the whole run of the program: raises waiting tasks, and keeps nothing else.
  Lineage() = default;
  void use(const Flow& flow, Requeue requeue, void* context);
  [[nodiscard]] const Flow& flow() const noexcept { return flow_; }
  // Whether the policy itself sets the priorities of tasks.
  [[nodiscard]] bool marks() const noexcept { return flow_.marked != 0; }
  // Calls rise(task, priority) whenever a priority has risen, or begins with another value than was
  // given.
  using Rise = void (*)(const Task& task, int priority);
  void tell(const Rise rise) noexcept { rise_ = rise; }

  // Gives `task`, which no other thread can reach yet, its initial priority.
  void mark(Task& task) noexcept;
  // The priority of a marked task by what is known now, without those of its followers. `given`:
  // the priority that the program gave it.
  [[nodiscard]] int own_priority(const Task& task, int given) const noexcept;
  // `task` may later turn out to send. Call it once the edges of `task` are added, while the caller
  // keeps `task` alive.
  void remember(Task& task, Outcome& outcome) noexcept;

  // `edge`, of a task that no other thread can reach, will lead to `predecessor`, which is raised
  // if need be.
  void precede(detail::Completion& predecessor, const Waiter& edge, Outcome& outcome) noexcept;

  // The running task `waiting` will wait for `other`, of which it holds a reference, without having
  // declared it. Call end_lineage() after the wait, unless `other` only belongs to a completion.
  void wait(Task& waiting, detail::Completion& other, base::SlabCache& slots, Outcome& outcome);
  // The completion of the running task will wait for `other`.
  void hold(const Task& held, detail::Completion& other, Outcome& outcome) noexcept;

  // Raises `task`, and its predecessors, to at least this priority, minus the steps between. The
  // cost is constant for each edge to a task whose priority rises.
  void raise(Task& task, int priority, Outcome& outcome) noexcept;

  // `task` has been claimed and begins.
  void begins(Task& task, Outcome& outcome) noexcept;

  // The running `task` is about to send. REQUIRES: flow().learns.
  void sends(const Task& task) noexcept;
  // Whether sends() or begins() has learned something that does not apply to tasks created before
  // yet.
  [[nodiscard]] bool is_behind() const noexcept {
    return behind_.load(std::memory_order_relaxed);
  }
  void catch_up(Outcome& outcome) noexcept;

  // This function and all that follow do nothing unless flow().times(). `message`: the other rank
  // in the upper half, and a number that both ranks know; messages that they cannot tell apart
  // share it.
  void sends(Task& task, std::uint64_t message) noexcept;
  void receives(Task& task, std::uint64_t message) noexcept;
  // The body of `task` has ended, after so many nanoseconds (0 if it was suspended). The tasks that
  // its end makes ready then follow it; afterwards it leaves its trail.
  [[nodiscard]] Step ends(Task& task, std::uint64_t duration_ns) noexcept;
  void follow(const Step& step, const ReadyList& ready) noexcept;
  void leave(Step step) noexcept;
  // `told` is called for each path that a message from another rank has opened here; learn() is for
  // a path that a message of this rank has opened on another one. `told` must not wait, nor call
  // this class.
  using Told = void (*)(std::uint64_t message, float length_us) noexcept;
  void report(const Told told) noexcept { told_.store(told, std::memory_order_release); }
  void learn(std::uint64_t message, float behind_us) noexcept;
  // How much more than others a task counts that sends to `rank`, as far as it is known.
  [[nodiscard]] int worth_of_rank(std::uint32_t rank) const noexcept;

 private:
  struct Knowledge {
    Profiles profiles;
    Recent recent;
    Trails trails;
  };

  [[nodiscard]] bool lift(Task& task, int priority) noexcept;
  // The priority of a task whose profile is known to lead to a send. It is lower, but above 0, if
  // no task of its kind has begun: where no send is known, the way to a send leads through such a
  // task. Else 0.
  [[nodiscard]] int worth(const Task& task, const Profile& profile) const noexcept;
  void try_others() noexcept;
  static constexpr int rounds_max = 64;  // each round visits all remembered tasks

  Flow flow_;
  Requeue requeue_ = nullptr;
  Rise rise_ = nullptr;  // null: no call
  void* context_ = nullptr;
  std::unique_ptr<Knowledge> knowledge_;  // only if flow_.learns
  std::atomic<int> rounds_{0};            // number of kinds that have begun since the first one,
                                          // about
  std::atomic<bool> behind_{false};       // (5)
  std::atomic<Told> told_{nullptr};
};

// Forgets the task that `edge` follows: it is complete, or has released the access. REQUIRES: the
// waiter has not been released yet.
void forget_edge(Waiter& edge) noexcept;
// forget_edge() for all edges among the waiters from `first` on.
void forget_edges(Waiter* first) noexcept;

// Ends the past of a task that begins, or has waited; returns its list.
[[nodiscard]] Predecessors* take_past(AccessBlock& block) noexcept;

// `task` begins, or has waited. Calls release(task) for the reference to each task in its list.
template <class Release>
void end_lineage(Task& task, base::SlabCache& slots, Release release) noexcept {
  for (Predecessors* list = take_past(*task.accesses); list != nullptr;) {
    for (std::uint64_t i = 0; i < list->count; ++i) release(*list->tasks[i]);
    slots.give(std::exchange(list, list->next), base::slab_class(sizeof(Predecessors)));
  }
}

}  // namespace imbrex::task
