// SPDX-License-Identifier: BSD-3-Clause
#include "task/joint.hpp"

namespace imbrex::task {

namespace {

void lose_any(detail::Completion& completion, Outcome& outcome) noexcept {
  if (is_task(completion)) {
    lose(static_cast<Task&>(completion), outcome);
  } else if (drop(completion)) {
    destroy_other(completion, outcome);
  }
}

void part_of_all_done(Joint& joint, Outcome& outcome) noexcept {
  // acq_rel: the last one sees the errors of all.
  if (joint.remaining.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  for (std::size_t position = 0; position < joint.count && !joint.error; ++position) {
    joint.error = joint.parts[position].of->error;
  }
  event::fire(joint.event, outcome);
}

void take_back(Joint::Part& part) noexcept {
  if (part.done.load(std::memory_order_acquire)) return;
  // release: whoever ends the joint sees that we are through
  if (event::remove(part.of->event, part)) part.done.store(true, std::memory_order_release);
}

// (2)
void take_back_others(Joint& joint) noexcept {
  if (joint.cleaned.exchange(true, std::memory_order_acq_rel)) return;
  for (std::size_t position = 0; position < joint.count; ++position) {
    take_back(joint.parts[position]);
  }
}

void let_go_part(Joint::Part& part, Outcome& outcome) noexcept {
  Joint& joint = *part.joint;
  if (joint.all) {
    part_of_all_done(joint, outcome);
  } else if (!joint.decided.exchange(true, std::memory_order_seq_cst)) {
    joint.index = part.position;
    event::fire(joint.event, outcome);
    if (joint.armed.load(std::memory_order_seq_cst)) take_back_others(joint);
  }
  part.done.store(true, std::memory_order_release);  // the last touch
}

void notify_part(Waiter& waiter, Outcome& outcome) noexcept {
  let_go_part(static_cast<Joint::Part&>(waiter), outcome);
}

}  // namespace

Joint& join(const std::span<detail::Completion* const> parts, const bool all, Outcome& outcome) {
  auto made = std::make_unique<Joint>();
  made->parts = std::make_unique<Joint::Part[]>(parts.size());
  Joint& joint = *made.release();  // from here on nothing throws
  joint.kind = detail::CompletionKind::joint;
  joint.references.store(1, std::memory_order_relaxed);
  joint.all = all;
  joint.count = parts.size();
  joint.remaining.store(parts.size() + 1, std::memory_order_relaxed);
  for (std::size_t position = 0; position < parts.size(); ++position) {
    Joint::Part& part = joint.parts[position];
    part.notify = &notify_part;
    part.joint = &joint;
    part.of = parts[position];
    part.position = position;
    add_reference(*part.of);
  }
  for (std::size_t position = 0; position < parts.size(); ++position) {
    Joint::Part& part = joint.parts[position];
    if (!event::add(part.of->event, part)) let_go_part(part, outcome);
  }
  if (all) {
    part_of_all_done(joint, outcome);
  } else {
    joint.armed.store(true, std::memory_order_seq_cst);
    if (joint.decided.load(std::memory_order_seq_cst)) take_back_others(joint);
  }
  return joint;
}

void destroy_other(detail::Completion& completion, Outcome& outcome) noexcept {
  if (completion.kind == detail::CompletionKind::joint) {
    const std::unique_ptr<Joint> joint(static_cast<Joint*>(&completion));
    for (std::size_t position = 0; position < joint->count; ++position) {
      Joint::Part& part = joint->parts[position];
      take_back(part);
      for (int round = 0; !part.done.load(std::memory_order_acquire); ++round) {
        round < 64 ? base::pause() : static_cast<void>(sched_yield());
      }
      lose_any(*joint->parts[position].of, outcome);
    }
  } else {
    auto& promise = static_cast<detail::PromiseState&>(completion);
    promise.destroy(promise);
  }
}

}  // namespace imbrex::task
