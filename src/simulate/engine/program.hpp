// SPDX-License-Identifier: BSD-3-Clause
// A program to be simulated: the tasks that each rank creates, in the order in which it creates
// them. A generator is a Program; the engine knows no other source of tasks.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"
#include "simulate/time/event_queue.hpp"
#include "task/descriptor.hpp"

namespace imbrex::simulate {

class Links;
struct Outcome;

// A kind of task. Policies that learn by kind tell tasks of two kernels apart.
struct Kernel {
  std::string name;
  Time duration = 0;  // of its computation
};

enum class Role : std::uint8_t {
  compute,  // runs for the duration of its kernel
  send,     // sends one message with MPI_Send
  receive,  // receives one message with MPI_Recv
  protocol  // calls Program::call(), which runs a protocol of the library. The worker goes on at
            // once, and the accesses end when the protocol says so
};

struct TaskPlan {
  std::uint16_t kernel = 0;  // position in Program::kernels()
  Role role = Role::compute;
  // The library sends or receives as soon as the accesses allow: this is no task of the program, it
  // takes no worker, and its end releases tasks (MPI_Irecv with when(), futures of other ranks,
  // copies of data with owners, the messages of a collective).
  bool by_library = false;
  bool tied = false;         // it resumes on the worker that began it
  bool is_followed = false;  // a send: another one `follows` it
  // Not 0: instead of computing, the task creates tasks and waits for them, or it takes steps.
  // Program::steps() or Program::expand() knows the task by this number.
  std::uint32_t creates = 0;
  int priority = 0;
  int peer = 0;              // rank; of send and receive, as are the next two
  int tag = 0;
  std::uint32_t message = 0;  // not 0: the number of the message, which alone decides who gets it
  // For sends with a `message`: not 0: its data leave when those of this message of the rank have.
  std::uint32_t follows = 0;
  std::uint32_t signal = 0;   // not 0: the signal that the completion of the task sets
  std::uint32_t accesses = 0;  // how many of the Batch's belong to it
  std::int64_t bytes = 0;
  Time duration = -1;        // of its computation; -1: that of its kernel
  std::uint64_t operation = 0;  // of protocol: by this number Program::call() knows it
};

// The tasks that one rank creates next.
class Batch {
 public:
  // A task without accesses; access() adds to the last one.
  TaskPlan& add(const TaskPlan& plan) { return tasks_.emplace_back(plan); }
  // `datum`: any number but 0; tasks of one rank that name the same one depend on each other.
  void access(const std::uint64_t datum, const detail::AccessKind kind) {
    accesses_.emplace_back(reinterpret_cast<const void*>(datum * 64), kind);
    ++tasks_.back().accesses;
  }
  void access(const detail::AccessSpec& spec) {
    accesses_.push_back(spec);
    ++tasks_.back().accesses;
  }
  // The last task follows a signal.
  void after(const std::uint32_t signal) {
    access({reinterpret_cast<const void*>(std::uintptr_t{signal}), detail::AccessKind::after});
  }
  void give_priority(const int priority) noexcept {
    for (TaskPlan& task : tasks_) task.priority = priority;
  }
  // After these tasks the creator waits until all that it has created are complete.
  void wait_for_all() noexcept { waits_ = true; }
  // After these tasks the creator is busy for this time, before next() is called again.
  void spend(const Time time) noexcept { time_ += time; }
  // After these tasks the creator waits until Host::resume_creator().
  void wait_for_event() noexcept { waits_for_event_ = true; }

  // For the engine: the next task and its accesses, which stay valid until clear().
  [[nodiscard]] bool empty() const noexcept { return next_ == tasks_.size(); }
  [[nodiscard]] bool waits() const noexcept { return waits_; }
  [[nodiscard]] Time take_time() noexcept { return std::exchange(time_, 0); }
  [[nodiscard]] bool take_wait_for_event() noexcept {
    return std::exchange(waits_for_event_, false);
  }
  [[nodiscard]] const TaskPlan& front() const noexcept { return tasks_[next_]; }
  [[nodiscard]] std::span<const detail::AccessSpec> front_accesses() const noexcept {
    return std::span(accesses_).subspan(next_access_, front().accesses);
  }
  void pop() noexcept {
    next_access_ += front().accesses;
    ++next_;
  }
  void clear() noexcept {
    tasks_.clear();
    accesses_.clear();
    next_ = next_access_ = 0;
    waits_ = waits_for_event_ = false;
    time_ = 0;
  }

 private:
  std::vector<TaskPlan> tasks_;
  std::vector<detail::AccessSpec> accesses_;
  std::size_t next_ = 0;
  std::size_t next_access_ = 0;
  bool waits_ = false;
  bool waits_for_event_ = false;
  Time time_ = 0;
};

// What the engine does for a program that runs protocols of the library.
class Host {
 public:
  [[nodiscard]] virtual EventQueue& events() noexcept = 0;
  [[nodiscard]] virtual Links& links() noexcept = 0;
  // The protocol of a `task` for which Program::call() returned false has ended.
  virtual void complete(int rank, task::Task& task) = 0;
  virtual void resume_creator(int rank) = 0;  // which waits for an event
  // Returns the worth of a message from `rank` under the policy of `rank` (plug_ins.hpp).
  [[nodiscard]] virtual detail::SendWorth worth_of_sending(int rank, int to) const = 0;
  virtual void arrived(int rank) = 0;         // a message that Program::poll() handles

 protected:
  ~Host() = default;
};

// What a task with steps does next. A signal is set once: by the completion of a task or of a
// request, or by a step. Each rank numbers its signals from 1. tools/imbrex_trace/steps.py has the
// same numbers of acts.
enum class Act : std::uint8_t {
  compute,       // for `amount`
  create,        // task `number`
  call,          // operation `number`, a send or a receive, and wait for it
  begin,         // operation `number`
  await,         // wait for the `amount` signals of this step and of those behind it
  set,           // set signal `number`
  hold,          // the task is complete when signal `number` is set, not before
  release,       // end the access to the address `amount`; it has `number` bytes if it is a range
  open_scope,
  close_scope,   // wait for all tasks of the scope, and for those that they have created
  await_all      // wait for all tasks created here; `number` 1: and for what they have created
};
struct TaskStep {
  Act act;
  std::uint32_t number;
  std::int64_t amount;
};
using TaskSteps = std::vector<TaskStep>;

class Program {
 public:
  virtual ~Program() = default;
  [[nodiscard]] virtual const std::vector<Kernel>& kernels() const = 0;
  // Adds to the empty `batch` the next tasks of `rank`. False: all tasks of the rank exist. Called
  // for each rank in turn, until it is false for that rank; a batch may stay empty.
  [[nodiscard]] virtual bool next(int rank, Batch& batch) = 0;
  // Adds to the empty `batch` what the task that `plan` describes creates. The data of its tasks
  // are its own.
  virtual void expand([[maybe_unused]] int rank, [[maybe_unused]] const TaskPlan& plan,
                      [[maybe_unused]] Batch& batch) {}

  // ---- for programs with tasks of Role::protocol
  virtual void start([[maybe_unused]] Host& host) {}  // before the first next()
  // Returns true if the protocol of `task` has ended already.
  [[nodiscard]] virtual bool call([[maybe_unused]] int rank, [[maybe_unused]] task::Task& task,
                                  [[maybe_unused]] const TaskPlan& plan) {
    return true;
  }
  // The body of a task that computes has ended.
  virtual void ended([[maybe_unused]] int rank, [[maybe_unused]] const TaskPlan& plan) {}
  // A worker or thread of `rank` handles the messages that have arrived.
  virtual void poll([[maybe_unused]] int rank) {}
  [[nodiscard]] virtual bool has_arrivals([[maybe_unused]] int rank) const { return false; }
  virtual void add_to([[maybe_unused]] Outcome& outcome) const {}

  // ---- programs whose tasks take steps ----

  // The steps of the task with this number in TaskPlan::creates, and of main, which is number 0.
  // Null: the task does what expand() says.
  [[nodiscard]] virtual const TaskSteps* steps([[maybe_unused]] int rank,
                                           [[maybe_unused]] std::uint32_t number) {
    return nullptr;
  }
  // Number of signals of a rank.
  [[nodiscard]] virtual std::uint32_t signals([[maybe_unused]] int rank) const { return 0; }
  // Adds to the empty `batch` the task of Act::create.
  virtual void add_task([[maybe_unused]] int rank, [[maybe_unused]] std::uint32_t number,
                        [[maybe_unused]] Batch& batch) {}
  // Adds to the empty `batch` the tasks of the library that the operation consists of. An operation
  // of Act::call is one send or receive.
  virtual void add_operation([[maybe_unused]] int rank, [[maybe_unused]] std::uint32_t number,
                             [[maybe_unused]] Batch& batch) {}
};

}  // namespace imbrex::simulate
