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

// (2)
void take_back_others(Joint& joint, Outcome& outcome) noexcept {
  if (joint.cleaned.exchange(true, std::memory_order_acq_rel)) return;
  add_reference(joint);  // the parts' own may be the last
  for (std::size_t position = 0; position < joint.count; ++position) {
    Joint::Part& part = joint.parts[position];
    if (event::remove(part.of->event, part)) lose_any(joint, outcome);
  }
  lose_any(joint, outcome);
}

void let_go_part(Joint::Part& part, Outcome& outcome) noexcept {
  Joint& joint = *part.joint;
  if (joint.all) {
    part_of_all_done(joint, outcome);
  } else if (!joint.decided.exchange(true, std::memory_order_seq_cst)) {
    joint.index = part.position;
    event::fire(joint.event, outcome);
    if (joint.armed.load(std::memory_order_seq_cst)) take_back_others(joint, outcome);
  }
  lose_any(joint, outcome);
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
  // Ours, the caller's, and each part's.
  joint.references.store(static_cast<std::uint32_t>(parts.size()) + 2, std::memory_order_relaxed);
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
    if (joint.decided.load(std::memory_order_seq_cst)) take_back_others(joint, outcome);
  }
  [[maybe_unused]] const bool last = drop(joint);  // the caller's remains
  return joint;
}

void destroy_other(detail::Completion& completion, Outcome& outcome) noexcept {
  if (completion.kind == detail::CompletionKind::joint) {
    const std::unique_ptr<Joint> joint(static_cast<Joint*>(&completion));
    for (std::size_t position = 0; position < joint->count; ++position) {
      lose_any(*joint->parts[position].of, outcome);
    }
  } else {
    auto& promise = static_cast<detail::PromiseState&>(completion);
    promise.destroy(promise);
  }
}

}  // namespace imbrex::task
