// SPDX-License-Identifier: BSD-3-Clause
// When a simulated rank finds arrived messages, the notes that its policy gets of messages, and the
// processors that it lends and borrows.
#include <algorithm>
#include <memory>
#include <utility>

#include "sched/lend/rule.hpp"
#include "simulate/engine/closure.hpp"
#include "simulate/engine/rank.hpp"

namespace imbrex::simulate {

namespace {

// As measured for the runtime: docs/design/progress.md.
constexpr Time gap_of_workers_ns = 50'000;     // between two polls of busy workers
constexpr Time dedicated_ns = 1000;            // until a thread of its own has seen an arrival
constexpr Time letter_ns = 1'000'000;          // between two letters of `ga`
constexpr Time spin_ns = 100'000;              // IMBREX_SPIN_US
constexpr Time wake_up_ns = 5000;              // of a worker that has got a processor
constexpr Time look_gap_ns = 10'000;           // between two looks for processors of other ranks

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
  const bool naps = !is_idle && std::ranges::any_of(workers_, [](const Worker& worker) {
    return !worker.spare && worker.stage == Stage::idle;
  });
  Time when = events_.now();
  if (naps) {
    when = next_poll_without_processor();
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
    return worker.stage == Stage::idle && has_processor(worker);
  });
  return idle != workers_.end() ? idle->id : sched::no_worker;
}

void Rank::poll_if_due(const Worker& worker) {
  if (events_.now() - last_poll_ >= gap_of_workers_ns) poll_as(worker.id);
  if (setup_.node != nullptr) look_for_processors();
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

// ---- processors that ranks lend ----------------------------------------------------------------

void Rank::add_spare_workers() {
  number_in_node_ = setup_.node->join(
      {.got = [](void* const its, const int processor) { static_cast<Rank*>(its)->got(processor); },
       .wanted = [](void* const its) {
         auto& here = *static_cast<Rank*>(its);
         for (Worker& worker : here.workers_) {
           if (!worker.spare) here.lend_if_idle(worker, worker.idle_since);
         }
       },
       .object = this});
  const int first = number_in_node_ * setup_.workers;
  for (Worker& worker : workers_) {
    worker.spare = worker.id >= setup_.workers;
    worker.processor = !worker.spare                        ? first + worker.id
                       : worker.id - setup_.workers < first ? worker.id - setup_.workers
                                                            : worker.id;
  }
}

bool Rank::take_processor(Worker& worker) {
  if (has_processor(worker)) return true;
  if (worker.spare) return !worker.inbox.empty();  // a tied task goes on beside the owner
  if (!has_work(worker)) return false;
  worker.awaits_processor = !setup_.node->take_back(number_in_node_, worker.processor);
  if (worker.awaits_processor) borrow_for(static_cast<std::int64_t>(policy_->size()));
  return !worker.awaits_processor;
}

// The rank has got the processor, from its owner or, of its own, from a borrower.
void Rank::got(const int processor) {
  const auto worker = std::ranges::find(workers_, processor, &Worker::processor);
  worker->awaits_processor = false;
  if (worker->spare) return begin_loan(*worker);
  worker->idle_since = events_.now();
  wake(*worker);
}

void Rank::begin_loan(Worker& worker) {
  worker.borrowed_since = events_.now();
  wake_at(events_.now() + wake_up_ns, worker);
}

void Rank::end_loan(Worker& worker) {
  worker.stage = Stage::idle;
  worker.task = nullptr;
  flush(worker);
  if (!has_processor(worker)) return;
  sums_.borrowed_ns += static_cast<double>(events_.now() - worker.borrowed_since);
  setup_.node->give_back(number_in_node_, worker.processor);
  if (policy_->size() > 0) wake_one();
}

void Rank::begin_idle(Worker& worker) {
  if (!has_processor(worker)) return;
  worker.idle_since = events_.now();
  setup_.node->want(number_in_node_, 0);
  for (const Time after : {static_cast<Time>(sched::lend::rule::soon_ns), spin_ns}) {
    struct Look {
      Rank* rank;
      int worker;
      Time since;
    };
    auto look = std::make_unique<Look>(Look{this, worker.id, worker.idle_since});
    events_.at(events_.now() + after, [](void* const its, std::uint64_t) {
      const std::unique_ptr<Look> one(static_cast<Look*>(its));
      Worker& idle = one->rank->workers_[static_cast<std::size_t>(one->worker)];
      one->rank->lend_if_idle(idle, one->since);
    }, look.release(), 0);
  }
}

// A worker that is idle since that time gives its processor up, as idle() of the runtime does. The
// last idle one polls for its rank, and so lends its processor last.
void Rank::lend_if_idle(Worker& worker, const Time idle_since) {
  if (worker.stage != Stage::idle || worker.is_woken || worker.idle_since != idle_since ||
      !has_processor(worker) || worker.task != nullptr || has_work(worker)) {
    return;
  }
  const Time idle = events_.now() - idle_since;
  if (worker.spare) {
    if (idle >= spin_ns) end_loan(worker);
    return;
  }
  const bool polls = std::ranges::none_of(workers_, [&](const Worker& other) {
    return other.id != worker.id && other.stage == Stage::idle && has_processor(other);
  });
  if (idle >= spin_ns ||
      sched::lend::rule::lends_now({.ns = static_cast<std::uint64_t>(idle),
                                    .polls = polls,
                                    .wanted = setup_.node->others_want(number_in_node_)},
                                   static_cast<std::uint64_t>(spin_ns))) {
    setup_.node->lend(number_in_node_, worker.processor);
  }
}

// As look_for_processors() of the runtime, between two tasks.
void Rank::look_for_processors() {
  const Time spent = events_.now() - looked_at_;
  if (spent < look_gap_ns) return;
  looked_at_ = events_.now();
  const std::uint64_t begun = begun_ - std::exchange(begun_then_, begun_);
  const bool one_sleeps = std::ranges::any_of(workers_, [this](const Worker& worker) {
    return !worker.spare && worker.stage == Stage::idle && !has_processor(worker);
  });
  borrow_for(sched::lend::rule::wanted_processors(
      {.ready = one_sleeps ? 0 : static_cast<std::int64_t>(policy_->size()),
       .ns_each = static_cast<std::uint64_t>(spent) / std::max<std::uint64_t>(begun, 1)}));
}

void Rank::borrow_for(const std::int64_t wanted) {
  Processors& node = *setup_.node;
  std::int64_t left = wanted;
  for (Worker& worker : workers_) {
    if (left == 0) break;
    if (!worker.spare || !node.borrow(number_in_node_, worker.processor)) continue;
    begin_loan(worker);
    --left;
  }
  node.want(number_in_node_, left);
}

// The worker that polls for its rank has lent its processor, and naps between its polls: half a
// pause goes by until one has seen an arrival.
Time Rank::next_poll_without_processor() const noexcept {
  const Time silence = events_.now() - last_completion_;
  const std::uint64_t pause_us =
      sched::lend::rule::poll_pause_us(static_cast<std::uint64_t>(silence / 1000));
  return events_.now() + static_cast<Time>(pause_us) * 500;
}

}  // namespace imbrex::simulate
