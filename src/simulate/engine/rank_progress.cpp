// SPDX-License-Identifier: BSD-3-Clause
// When a simulated rank finds arrived messages, and the notes that its policy gets of messages.
#include <algorithm>
#include <memory>
#include <utility>

#include "simulate/engine/closure.hpp"
#include "simulate/engine/rank.hpp"

namespace imbrex::simulate {

namespace {

// As measured for the runtime: docs/design/progress.md.
constexpr Time gap_of_workers_ns = 50'000;     // between two polls of busy workers
constexpr Time dedicated_ns = 1000;            // until a thread of its own has seen an arrival
constexpr Time letter_ns = 1'000'000;          // between two letters of `ga`

// The rank whose lineage calls told(), which has no argument for it. One thread simulates.
Rank* reporter = nullptr;

[[nodiscard]] std::uint64_t message_of(const int peer, const int tag) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(peer)) << 32 |
         static_cast<std::uint32_t>(tag);
}

}  // namespace

// A message has arrived. An idle worker polls all the time; without one, a later poll finds it.
void Rank::arrived() {
  if (poll_is_due_) return;
  const bool is_idle = idle_worker() != sched::no_worker;
  const bool naps = !is_idle && std::ranges::any_of(workers_, [this](const Worker& worker) {
    return !seats_.is_spare(worker.id) && worker.stage == Stage::idle;
  });
  Time when = events_.now();
  if (naps) {
    when = seats_.next_poll(last_completion_);
  } else if (!is_idle) {
    if (setup_.progress == Progress::poll) return;
    when = setup_.progress == Progress::automatic ? next_poll_of_thread() : when + dedicated_ns;
  }
  poll_is_due_ = true;
  events_.at(when, [](void* const rank, const std::uint64_t by_worker) {
    auto& here = *static_cast<Rank*>(rank);
    here.poll_is_due_ = false;
    here.poll(by_worker != 0 ? 0 : sched::no_worker);
  }, this, is_idle ? 1 : 0);
}

// The first poll of the thread after a worker's comes after an eighth of the gap, the next after
// half of it more.
Time Rank::next_poll_of_thread() const noexcept {
  const Time since = events_.now() - last_poll_;
  Time next = setup_.thread_gap_ns / 8;
  if (since > next) next += setup_.thread_gap_ns / 2;
  if (since > next) next += (since - next + setup_.thread_gap_ns - 1) / setup_.thread_gap_ns *
                            setup_.thread_gap_ns;
  return last_poll_ + next;
}

// `worker`: the idle worker that polls, or no_worker.
void Rank::poll(int worker) {
  if (worker != sched::no_worker) worker = idle_worker();
  poll_as(worker);
}

int Rank::idle_worker() const noexcept {
  const auto idle = std::ranges::find_if(workers_, [this](const Worker& worker) {
    return worker.stage == Stage::idle && seats_.has_processor(worker.id);
  });
  return idle != workers_.end() ? idle->id : sched::no_worker;
}

void Rank::poll_if_due(const Worker& worker) {
  if (events_.now() - last_poll_ >= gap_of_workers_ns) poll_as(worker.id);
  seats_.look();
}

void Rank::poll_as(const int worker) {
  last_poll_ = events_.now();
  complete_.clear();
  mpi_.poll(rank_, complete_);
  if (!complete_.empty()) last_completion_ = last_poll_;
  for (Task* const task : complete_) goes_on(worker, *task);
  program_.poll(rank_);
}

void Rank::complete_protocol(Task& task) {
  if (!task.release()) return;
  task.fiber = nullptr;
  task::change_state(task, task::State::suspended, task::State::running);
  complete_posted(idle_worker(), task);
}

// What `task` has sent or received is complete.
void Rank::goes_on(const int worker, Task& task) {
  if (!task.release()) return;
  if (is_by_library(task)) {
    task.fiber = nullptr;
    task::change_state(task, task::State::suspended, task::State::running);
    return complete_posted(worker, task);
  }
  task::change_state(task, task::State::suspended, task::State::resumable);
  enqueue(worker, task, sched::Origin::resumed);
}

// ---- notes for the policy --------------------------------------------------------------------

void Rank::mark(Task& task) {
  lineage_.mark(task);
  if (!lineage_.flow().learns) return;
  task::Outcome outcome;
  lineage_.remember(task, outcome);
  while (Task* const dead = outcome.dead.pop()) recycle(*dead);
}

// As in sched/waist/notices.cpp.
detail::SendWorth Rank::worth_of_sending_to(const int rank) const noexcept {
  const task::Flow& flow = lineage_.flow();
  if (!flow.learns) return {0, 0, 0};
  return {flow.marked, lineage_.worth_of_rank(static_cast<std::uint32_t>(rank)), flow.step};
}

void Rank::note_send(Task& task, const TaskPlan& plan) {
  if (!lineage_.flow().learns || task.is_root()) return;
  lineage_.sends(task);
  lineage_.sends(task, message_of(plan.peer, plan.tag));
}

void Rank::note_receive(Task& task, const TaskPlan& plan) {
  if (!lineage_.flow().times() || task.is_root()) return;
  reporter = this;
  lineage_.receives(task, message_of(plan.peer, plan.tag));
}

// The end of `task` has made `outcome` ready.
void Rank::note_end(const task::Step& step, const task::Outcome& outcome) {
  if (step.trail == 0) return;
  reporter = this;
  lineage_.follow(step, outcome.ready);
  lineage_.leave(step);
}

// A path that a message has opened here has ended: its length goes to the sender of the message.
void Rank::report_length(const std::uint64_t message, const float length_us) noexcept {
  reporter->send_length(message, length_us);
}

void Rank::send_length(const std::uint64_t message, const float length_us) {
  struct Letter {
    Rank* to;
    std::uint64_t message;
    float length_us;
  };
  const auto from = static_cast<std::size_t>(message >> 32);
  const int tag = static_cast<int>(static_cast<std::uint32_t>(message));
  auto letter = std::make_unique<Letter>(
      Letter{(*ranks_)[from].get(), message_of(rank_, tag), length_us});
  events_.at(events_.now() + letter_ns, [](void* const its_letter, std::uint64_t) {
    const std::unique_ptr<Letter> arrived(static_cast<Letter*>(its_letter));
    arrived->to->lineage_.learn(arrived->message, arrived->length_us);
  }, letter.release(), 0);
}

}  // namespace imbrex::simulate
