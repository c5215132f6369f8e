// SPDX-License-Identifier: BSD-3-Clause
// Lineage: which tasks precede one that has not begun, and how priority flows up to them: Algorithm
// 1 of Pereira et al. 2021, one task at a time as they are made; and, where nothing is marked,
// which tasks send, by their profiles. Kept only under a policy that asks for it. Knows no queue:
// who has one is called back.
//
// The tasks that precede another one are found from its edges (Waiter::follows), each with a lock
// of its own, and from its past: the futures among its accesses, and what it waits for without
// having declared it, which is listed for that time. The past has one lock, in AccessBlock::past.
//
// Thread safety: raise() by any thread, for a task that the caller keeps alive; catch_up() by any
// thread; sends(), wait() and hold() by the task; forget_edges() by who completes what they follow;
// begins() and end_lineage() by who begins it; the rest by its creator until it is submitted.
// Invariants:
//   (1) who holds the lock of an edge, or of a past, may use what it leads to. One that completes
//       is taken out of all edges that follow it before its own reference is dropped; what a list
//       leads to has a reference of the list's, a future one of the access's, to end_lineage().
//   (2) both lead to tasks created earlier: no cycle, and nobody holds two of these locks.
//   (3) no raise is lost. Who makes a task ready sets its state, then reads the priority by a
//       read-modify-write (queued_priority); who raises it changes the priority by one, then reads
//       the state. If the raise comes first in the order of these two, the queue reads the new
//       priority; else the raise has read what the other wrote, so it sees the state and asks for
//       a second entry.
//   (4) nothing runs twice: of several entries one claims the task, by a compare-and-swap, since
//       mark() says that priority flows to it (Reach::flow).
//   (5) no task is left behind: sends() changes the profile, then sets `behind_`, which catch_up()
//       clears before it looks at all that are remembered. Either it finds a task there, or the
//       task was put there after it had looked, and then remember() sees the changed profile and
//       sets `behind_` again. (Both take the lock of `recent`.)
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

// Says what a policy makes of the priorities that a program gives.
struct Flow {
  int marked = 0;        // of a task with a priority above 0, all others have 0; 0: all as given
  bool upward = false;   // what a task depends on has its priority too, but for `step`
  int step = 0;
  bool control = false;  // so do those that a task creates, or waits for without declaring it
  bool learns = false;   // marked is what has a profile of tasks that send, and nothing else
  int urgent = 0;        // a send counts so much more for each degree of its urgency; 0: no times
  int untried = 0;       // if it learns: of a task of whose kind none has begun, for each round
  [[nodiscard]] bool times() const noexcept { return urgent != 0; }
  // Whether priorities can rise at all once a task has been submitted.
  [[nodiscard]] bool raises() const noexcept { return marked == 0 || upward || control; }
};

// Up to six tasks that one waits for; a list of these fills one slot each.
struct Predecessors {
  Predecessors* next;
  std::uint64_t count;
  Task* tasks[6];
};
static_assert(sizeof(Predecessors) == 64);

// The priority by which a queue that raises tasks orders one that it gets; (3).
[[nodiscard]] inline int queued_priority(Task& task) noexcept {
  return task.priority.fetch_add(0, std::memory_order_acq_rel);
}

class Lineage {
 public:
  // Gives a task that is ready to begin a second entry, at a higher place. The caller keeps it
  // alive meanwhile. Must not wait.
  using Requeue = void (*)(void* context, Task& task, int priority);

  // As long as the program runs: what waits is raised, nothing is kept.
  Lineage() = default;
  void use(const Flow& flow, Requeue requeue, void* context);
  [[nodiscard]] const Flow& flow() const noexcept { return flow_; }
  // Whether the policy itself gives the tasks their priorities.
  [[nodiscard]] bool marks() const noexcept { return flow_.marked != 0; }
  // Calls rise(task, priority) whenever one has risen, or begins with another than was given.
  using Rise = void (*)(const Task& task, int priority);
  void tell(const Rise rise) noexcept { rise_ = rise; }

  // Gives `task`, which nobody else can reach yet, the priority that it begins with.
  void mark(Task& task) noexcept;
  // It may turn out later on that `task` sends. To be called once its edges are added, while the
  // caller keeps it alive.
  void remember(Task& task, Outcome& outcome) noexcept;

  // `edge`, of a task that nobody else can reach, will lead to `predecessor`: raised if need be.
  void precede(detail::Completion& predecessor, const Waiter& edge, Outcome& outcome) noexcept;

  // The running task `waiting` will wait for `other`, of which it holds a reference, though it has
  // not declared so. end_lineage() follows when it has waited, unless `other` is completion's only.
  void wait(Task& waiting, detail::Completion& other, base::SlabCache& slots, Outcome& outcome);
  // The completion of the running task will wait for `other`.
  void hold(const Task& held, detail::Completion& other, Outcome& outcome) noexcept;

  // `task`, and what precedes it, has this priority at least, but for the steps between. The cost
  // is constant for each edge to a task whose priority rises.
  void raise(Task& task, int priority, Outcome& outcome) noexcept;

  // `task` has been claimed to begin.
  void begins(Task& task, Outcome& outcome) noexcept;

  // The running `task` is about to send. REQUIRES: flow().learns.
  void sends(const Task& task) noexcept;
  // Whether sends() or begins() has learned what tasks created before do not know.
  [[nodiscard]] bool is_behind() const noexcept {
    return behind_.load(std::memory_order_relaxed);
  }
  void catch_up(Outcome& outcome) noexcept;

  // This function and all that follow do nothing unless flow().times(). `message`: the other rank,
  // in the upper half, and any number by which the two know it, the same for those that they cannot
  // tell apart.
  void sends(Task& task, std::uint64_t message) noexcept;
  void receives(Task& task, std::uint64_t message) noexcept;
  // The body of `task` has ended, after so many nanoseconds, 0 if it was suspended. Then those that
  // its end makes ready follow it; then it leaves its trail.
  [[nodiscard]] Step ends(Task& task, std::uint64_t duration_ns) noexcept;
  void follow(const Step& step, const ReadyList& ready) noexcept;
  void leave(Step step) noexcept;
  // `told` is called for each path that a message from another rank has opened here; learn() is for
  // a path that a message from here has opened elsewhere. The call must not wait, nor come back
  // here.
  using Told = void (*)(std::uint64_t message, float length_us) noexcept;
  void report(const Told told) noexcept { told_.store(told, std::memory_order_release); }
  void learn(std::uint64_t message, float behind_us) noexcept;
  // The priority of what is sent to `rank`, by what has been learned; 0 if nothing can be.
  [[nodiscard]] int worth_of_sending_to(std::uint32_t rank) const noexcept;

 private:
  struct Knowledge {
    Profiles profiles;
    Recent recent;
    Trails trails;
  };

  [[nodiscard]] bool lift(Task& task, int priority) noexcept;
  // The priority of a task with a profile of which is known that it leads to a send. Less, but more
  // than 0, if none of its kind has begun: where no send is known, the way to one leads through
  // such a task. Else 0.
  [[nodiscard]] int worth(const Task& task, const Profile& profile) const noexcept;
  void try_others() noexcept;
  static constexpr int rounds_max = 64;  // each looks at all that are remembered

  Flow flow_;
  Requeue requeue_ = nullptr;
  Rise rise_ = nullptr;  // null: nobody
  void* context_ = nullptr;
  std::unique_ptr<Knowledge> knowledge_;  // only if flow_.learns
  std::atomic<int> rounds_{0};            // kinds that have begun since the first, about
  std::atomic<bool> behind_{false};       // (5)
  std::atomic<Told> told_{nullptr};
};

// Forgets the task that `edge` follows: it is complete, or has released what the edge waits for.
// REQUIRES: the waiter has not been let go yet.
void forget_edge(Waiter& edge) noexcept;
// The same for all edges among the waiters from `first` on.
void forget_edges(Waiter* first) noexcept;

// Ends the past of a task that begins, or has waited; takes its list.
[[nodiscard]] Predecessors* take_past(AccessBlock& block) noexcept;

// `task` begins, or has waited. Calls release(task) for the reference to each in its list.
template <class Release>
void end_lineage(Task& task, base::SlabCache& slots, Release release) noexcept {
  for (Predecessors* list = take_past(*task.accesses); list != nullptr;) {
    for (std::uint64_t i = 0; i < list->count; ++i) release(*list->tasks[i]);
    slots.give(std::exchange(list, list->next), base::slab_class(sizeof(Predecessors)));
  }
}

}  // namespace imbrex::task
