// SPDX-License-Identifier: BSD-3-Clause
// The processors of a node as one simulated rank uses them. A rank has a seat for each of its own
// processors, and where ranks lend, a spare one for each other processor of the node, as the
// runtime has spare workers (sched/run/idle.cpp). Decides when a processor is lent, taken back,
// borrowed and given back, by the runtime's rule. Knows no tasks.
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <vector>

#include "simulate/time/event_queue.hpp"
#include "simulate/lend/processors.hpp"

namespace imbrex::simulate {

// What the seats ask their rank.
class SeatUser {
 public:
  // No task runs on the seat, and no event that looks for one is to come.
  [[nodiscard]] virtual bool is_idle(int seat) const noexcept = 0;
  // The seat, or any of the rank, has a task to run.
  [[nodiscard]] virtual bool has_work(int seat) const noexcept = 0;
  // Tasks that are ready, and those that have begun.
  [[nodiscard]] virtual std::int64_t ready() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t begun() const noexcept = 0;
  // The seat looks for a task then, unless it does so already.
  virtual void look_at(Time when, int seat) = 0;

 protected:
  ~SeatUser() = default;
};

class Seats {
 public:
  // `own` processors belong to the rank. `node`: null if its ranks do not lend.
  Seats(EventQueue& events, Processors* node, int own, SeatUser& user);
  Seats(const Seats&) = delete;
  Seats& operator=(const Seats&) = delete;

  // The number of seats of a rank, spare ones included.
  [[nodiscard]] static int count(const Processors* const node, const int own) noexcept {
    return node != nullptr ? node->all() : own;
  }
  [[nodiscard]] bool is_spare(const int seat) const noexcept { return seat >= own_; }
  [[nodiscard]] bool has_processor(const int seat) const noexcept {
    return node_ == nullptr || node_->holds(number_, at(seat).processor);
  }
  // A spare seat whose owner wants the processor begins no other task.
  [[nodiscard]] bool must_leave(const int seat) const noexcept {
    return node_ != nullptr && is_spare(seat) &&
           (!has_processor(seat) || node_->is_awaited(at(seat).processor));
  }
  // Whether a seat that is about to look for a task has a processor for it. If an own one is lent,
  // look_at() follows.
  [[nodiscard]] bool take(int seat);
  // A task is ready: an idle seat looks for it, one without a processor only if no other is idle.
  void wake_one();
  // The seat has no task from now on; it lends its processor after a while.
  void rest(int seat);
  // A spare seat gives its processor back.
  void leave(int seat);
  // Between two tasks: borrows processors for ready tasks.
  void look();
  // When an own seat without a processor polls next, if no message has come since `last`.
  [[nodiscard]] Time next_poll(Time last) const noexcept;
  [[nodiscard]] double borrowed_ns() const noexcept { return borrowed_ns_; }

 private:
  struct Seat {
    int processor = -1;    // of the node
    bool awaits = false;   // its owner, this rank, has asked the borrower for it
    Time idle_since = 0;
    Time borrowed_since = 0;
  };
  [[nodiscard]] Seat& at(const int seat) noexcept {
    return seats_[static_cast<std::size_t>(seat)];
  }
  [[nodiscard]] const Seat& at(const int seat) const noexcept {
    return seats_[static_cast<std::size_t>(seat)];
  }
  void got(int processor);
  void begin_loan(int seat);
  void lend_if_idle(int seat, Time idle_since);
  void borrow_for(std::int64_t wanted);

  EventQueue& events_;
  Processors* const node_;
  const int own_;
  SeatUser& user_;
  std::vector<Seat> seats_;
  int number_ = 0;                // of the rank in the node
  Time looked_at_ = 0;            // for processors of other ranks
  std::uint64_t begun_then_ = 0;  // tasks begun at that time
  double borrowed_ns_ = 0;
};

}  // namespace imbrex::simulate
