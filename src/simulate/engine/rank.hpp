// SPDX-License-Identifier: BSD-3-Clause
// One rank of a simulation: its workers, and the library's own dependency table, lineage and
// policy, driven by virtual time. It repeats the parts of sched/run that use threads: the loop of
// a worker, the creator of tasks, and the polls. docs/design/simulator.md compares the two.
//
// Thread safety: none.
// Invariants:
//   (1) a worker is idle, or runs a task or a creator; a busy one has one event to come.
//   (2) a task in a queue owns one reference, as in the runtime (task/descriptor.hpp).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/slab.hpp"
#include "sched/policy/policy.hpp"
#include "sched/policy/rules.hpp"
#include "simulate/time/event_queue.hpp"
#include "simulate/engine/point_to_point.hpp"
#include "simulate/engine/program.hpp"
#include "simulate/lend/rank_seats.hpp"
#include "task/access/depend.hpp"
#include "task/ending/complete.hpp"
#include "task/lineage.hpp"

namespace imbrex::simulate {

// As IMBREX_PROGRESS.
enum class Progress : std::uint8_t { poll, automatic, dedicated_thread };

struct RankSetup {
  int workers = 1;
  std::string policy = "default";
  std::uint32_t window = 512;      // IMBREX_TASKS_AHEAD; 0: none
  Time creator_ns = 200;           // to create a task
  Time task_ns = 200;              // to begin and end one, of a worker
  Time overhead_ns = 500;          // of a call that sends or receives
  double copy_ns_per_byte = 0;     // of one that sends an eager message
  std::int64_t eager_bytes = 0;
  Progress progress = Progress::automatic;
  Time thread_gap_ns = 2'000'000;  // between two polls of the thread of `auto`
  double slowness = 1;             // so many times as long as they are given do kernels take
  Processors* node = nullptr;      // that the ranks of the node lend; null: they lend none
};

// For tests, and for code that records a simulation.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void began(int rank, int worker, const Task& task, Time when) = 0;
  virtual void ended(int rank, int worker, const Task& task, Time when) = 0;
};

class Rank final : private SeatUser {
 public:
  struct Sums {
    double in_task_ns = 0;       // of all workers: may be more than a Time holds
    double overhead_ns = 0;
    std::int64_t tasks = 0;      // that have begun
    std::int64_t created = 0;
    std::int64_t ended = 0;
    std::int64_t live_most = 0;  // tasks created and not ended at once
    Time end = 0;                // when the creator had waited for all
    double borrowed_ns = 0;      // in which workers had processors of other ranks
  };

  Rank(EventQueue& events, PointToPoint& mpi, Program& program, int rank, const RankSetup& setup,
       Observer* observer);
  ~Rank();
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  // The other ranks, for the messages of the policy `ga` between ranks. Before start().
  void meet(const std::vector<std::unique_ptr<Rank>>& ranks) noexcept { ranks_ = &ranks; }
  void start();
  [[nodiscard]] bool is_done() const noexcept { return is_done_; }
  // As Host.
  void complete_protocol(Task& task);
  void resume_creator();
  void arrived();
  [[nodiscard]] detail::SendWorth worth_of_sending_to(int rank) const noexcept;
  [[nodiscard]] Sums sums() const noexcept {
    Sums now = sums_;
    now.borrowed_ns = seats_.borrowed_ns();
    return now;
  }
  // The closure of a task: the plan from which it was created.
  [[nodiscard]] static const TaskPlan& plan_of(const Task& task) noexcept;

 private:
  enum class Stage : std::uint8_t {
    idle,
    creates,    // a creator
    starts,     // a task that sends or receives is in its call
    ends        // a task, or the rest of one that has waited, is about to end
  };
  // Main, or a task that creates others: which, and how far it is.
  struct Creator {
    explicit Creator(Task& its_task) noexcept : task(&its_task) {
      family.children.owner = &its_task;
      family.current = &family.children;
      its_task.family = &family;
    }
    Task* task;
    task::Family family;
    std::unique_ptr<task::DependTable> table;
    Batch batch;
    bool created_all = false;
    bool checked_ahead = false;    // for the next task
    // The steps of a task that has them, the next step, and whether that step has begun.
    const TaskSteps* steps = nullptr;
    std::size_t position = 0;
    bool in_step = false;
    Time owed = 0;                 // what the call takes that has just ended
    bool receives = false;         // that call is a receive
    TaskPlan received;             // by that call
    int worker = 0;                // a tied task resumes here
    std::vector<std::unique_ptr<task::Scope>> scopes;  // open ones, outermost first
    std::deque<task::Waiter> waits;  // of its present wait for signals
    std::deque<task::Hold> holds;
  };
  // Sets a signal when the event happens with which it waits.
  struct Forward : task::Waiter {
    detail::Completion* to = nullptr;
  };
  using Creators = std::unordered_map<const Task*, std::unique_ptr<Creator>>;
  struct Worker {
    int id = 0;
    Stage stage = Stage::idle;
    Creator* creator = nullptr;    // while it creates
    Time owed = 0;                 // what calls of the library take, before its next task
    bool is_woken = false;         // an event that lets it look is on its way
    Task* task = nullptr;
    Time began = 0;                // of the task's last piece
    bool was_suspended = false;
    sched::rules::TurnOfOthers turn_of_others;
    task::Tally tally;
    std::deque<Task*> inbox;       // tasks that must resume here: main, and tied ones
    std::deque<sched::Behind> behind;
  };

  // ---- the loop (sched/run/loop) ----
  void look(Worker& worker, bool eager);
  void rest(Worker& worker, bool eager);
  void run(Worker& worker, Task& task);
  void begin(Worker& worker, Task& task);
  void go_on(Worker& worker);                 // its event has come
  void call(Worker& worker);
  void end(Worker& worker);
  void suspend(Worker& worker);
  [[nodiscard]] Task* find_claimed(Worker& worker, bool eager);
  [[nodiscard]] task::Entry find(Worker& worker, bool eager);
  [[nodiscard]] task::Entry take_others(Worker& worker);
  void flush(Worker& worker);

  // ---- ready tasks (sched/run/ready) ----
  void act_on(int worker, task::Outcome& outcome);
  void enqueue(int worker, Task& task, sched::Origin origin);
  void wake(Worker& worker);
  void wake_at(Time when, Worker& worker);
  void recycle(Task& task);
  void drop_reference(Task& task);

  // ---- creators (sched/waist/tasks) ----
  void create(Worker& worker);
  void begin_creator(Worker& worker, Task& task, const TaskPlan& plan);
  void end_creator(Worker& worker);
  [[nodiscard]] bool refill(Worker& worker);
  [[nodiscard]] bool gives_way(Worker& worker);
  void wait_for_all(Worker& worker);
  // Why a creator leaves its worker: tasks go first, or it waits for all its tasks, for those that
  // it has created itself, or for an event.
  enum class Leaves : std::uint8_t { ahead, waits_for_all, waits_for_children, waits_for_event };
  void leave_creator(Worker& worker, std::uint64_t half_window, Leaves why);
  void put_behind(Worker& worker, Task& task, std::uint64_t before);
  [[nodiscard]] Task& make_task(const Creator& creator, const TaskPlan& plan,
                                std::size_t accesses);
  void submit(int worker, Creator& creator);
  [[nodiscard]] bool is_by_library(const Task& task) const noexcept {
    return &task != &root_ && plan_of(task).by_library;
  }

  // ---- tasks that take steps ----
  void take_steps(Worker& worker);
  // These return whether the task goes on now, with its next step.
  [[nodiscard]] bool take_step(Worker& worker, const TaskStep& step);
  [[nodiscard]] bool create_task(Worker& worker, const TaskStep& step);
  [[nodiscard]] bool call_operation(Worker& worker, const TaskStep& step);
  [[nodiscard]] bool begin_operation(Worker& worker, const TaskStep& step);
  [[nodiscard]] bool await_signals(Worker& worker, const TaskStep& step);
  [[nodiscard]] bool await_tasks(Worker& worker, task::Await what);
  [[nodiscard]] bool close_scope(Worker& worker);
  [[nodiscard]] bool take_time(Worker& worker, Time time);
  [[nodiscard]] bool leave_steps(Worker& worker, int count);
  static void open_scope(Creator& creator);
  void hold(Creator& creator, std::uint32_t number);
  void release(const Worker& worker, const TaskStep& step);
  void end_steps(Worker& worker);
  [[nodiscard]] detail::Completion& signal(std::uint32_t number);
  void set_signal(int worker, std::uint32_t number);
  void name_signal(Task& task, std::uint32_t number);
  void translate_signals(std::span<const detail::AccessSpec> accesses);
  void drop_signals();

  // ---- messages of the library ----
  void post(int worker, Task& task);
  void complete_posted(int worker, Task& task);

  // ---- progress (mpi/engine) ----
  void poll(int worker);
  void goes_on(int worker, Task& task);
  void poll_if_due(const Worker& worker);
  void poll_as(int worker);
  [[nodiscard]] Time next_poll_of_thread() const noexcept;
  // An idle worker with a processor; no_worker if there is none.
  [[nodiscard]] int idle_worker() const noexcept;

  // ---- seats: a worker's number is its seat's ----
  [[nodiscard]] bool is_idle(const int seat) const noexcept override {
    const Worker& worker = workers_[static_cast<std::size_t>(seat)];
    return worker.stage == Stage::idle && !worker.is_woken && worker.task == nullptr;
  }
  [[nodiscard]] bool has_work(const int seat) const noexcept override {
    const Worker& worker = workers_[static_cast<std::size_t>(seat)];
    return !worker.inbox.empty() || ready() > 0 || !worker.behind.empty() || !behind_.empty();
  }
  [[nodiscard]] std::int64_t ready() const noexcept override {
    return static_cast<std::int64_t>(policy_->size());
  }
  [[nodiscard]] std::uint64_t begun() const noexcept override { return begun_; }
  void look_at(const Time when, const int seat) override {
    wake_at(when, workers_[static_cast<std::size_t>(seat)]);
  }
  [[nodiscard]] bool may_look(const Worker& worker);
  void end_loan(Worker& worker);

  // ---- notes for the policy (sched/run/notes) ----
  void mark(Task& task);
  void note_send(Task& task, const TaskPlan& plan);
  void note_receive(Task& task, const TaskPlan& plan);
  void note_end(const task::Step& step, const task::Outcome& outcome);
  static void report_length(std::uint64_t message, float length_us) noexcept;
  void send_length(std::uint64_t message, float length_us);

  void at(Time when, Worker& worker);

  EventQueue& events_;
  PointToPoint& mpi_;
  Program& program_;
  const int rank_;
  const RankSetup setup_;
  const std::uint32_t window_;
  Observer* const observer_;
  const std::vector<std::unique_ptr<Rank>>* ranks_ = nullptr;
  base::SlabPool task_slots_;                // of nothing but tasks
  base::SlabPool small_slots_;
  base::SlabCache tasks_{task_slots_};
  base::SlabCache small_{small_slots_};
  std::unique_ptr<sched::Policy> policy_;
  sched::OrderedQueue* only_queue_ = nullptr;
  task::Lineage lineage_;
  std::vector<detail::BodyOps> ops_;        // of each kernel
  std::vector<Kernel> kernels_;
  Task root_;                                // main
  std::unique_ptr<Creator> main_;
  Creators creators_;                        // tasks that create tasks, or that take steps
  Task library_root_;                        // the parent of what the library does for steps
  std::unique_ptr<Creator> library_;
  std::vector<detail::Completion*> signals_;  // by number; null: nobody has named it yet
  std::deque<detail::Completion> promises_;   // signals that no task of its own stands for
  std::deque<Forward> forwards_;
  std::vector<detail::AccessSpec> translated_;  // kept for its memory
  std::vector<Worker> workers_;
  Seats seats_;
  std::deque<sched::Behind> behind_;         // tasks that gave way, for any worker
  std::uint32_t expected_ = 0;               // live tasks of the library that only receive
  bool is_done_ = false;
  std::uint64_t next_id_ = 1;
  std::uint64_t begun_ = 0;
  Time last_poll_ = 0;
  Time last_completion_ = 0;                 // that a poll has found
  bool poll_is_due_ = false;                 // an event that polls
  std::vector<Task*> complete_;              // of a poll: kept for its memory
  Sums sums_;
};

}  // namespace imbrex::simulate
