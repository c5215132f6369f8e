// SPDX-License-Identifier: BSD-3-Clause
#include "task/joint.hpp"

#include <unordered_set>
#include <utility>
#include <vector>

#include "trace/races.hpp"

namespace imbrex::task {

namespace {

// Fires the event of the decided `joint`; returns its waiters.
[[nodiscard]] Waiter* fire_joint(Joint& joint) noexcept {
  Waiter* waiters = nullptr;
  (void)event::try_fire(joint.event, waiters);
  return waiters;
}

// Takes the first failure in the order of the parts, all of which have fired.
void take_over_failure(Joint& joint) noexcept {
  for (std::size_t position = 0; position < joint.count; ++position) {
    Failure* const failure = joint.parts[position].of->failure;
    if (failure == nullptr) continue;
    joint.failure = &share(*failure);
    return;
  }
}

[[nodiscard]] Waiter* part_of_all_done(Joint& joint) noexcept {
  // acq_rel: the last part sees the failures of all parts.
  if (joint.remaining.fetch_sub(1, std::memory_order_acq_rel) != 1) return nullptr;
  take_over_failure(joint);
  return fire_joint(joint);
}

void take_back(Joint::Part& part) noexcept {
  if (part.done.load(std::memory_order_acquire)) return;
  // release: the thread that ends the joint sees that this code is done
  if (event::remove(part.of->event, part)) part.done.store(true, std::memory_order_release);
}

// (2)
void take_back_others(Joint& joint) noexcept {
  if (joint.cleaned.exchange(true, std::memory_order_acq_rel)) return;
  for (std::size_t position = 0; position < joint.count; ++position) {
    take_back(joint.parts[position]);
  }
}

Waiter* let_go_part(Joint::Part& part) noexcept {
  Joint& joint = *part.joint;
  Waiter* waiters = nullptr;
  trace::races::pass(&part.of->event, &joint.event);
  if (joint.all) {
    waiters = part_of_all_done(joint);
  } else if (part.of->failure != nullptr &&
             // acq_rel: the last part sees the failures of all parts
             joint.remaining.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    // Other parts may still have a value.
  } else if (!joint.decided.exchange(true, std::memory_order_seq_cst)) {
    if (part.of->failure != nullptr) {
      take_over_failure(joint);
    } else {
      joint.index.value = part.position;
    }
    waiters = fire_joint(joint);
    if (joint.armed.load(std::memory_order_seq_cst)) take_back_others(joint);
  }
  part.done.store(true, std::memory_order_release);  // the last touch
  return waiters;
}

Waiter* notify_part(Waiter& waiter, Outcome&) noexcept {
  return let_go_part(static_cast<Joint::Part&>(waiter));
}

void await_done(const Joint::Part& part) noexcept {
  for (int round = 0; !part.done.load(std::memory_order_acquire); ++round) {
    round < 64 ? base::pause() : static_cast<void>(sched_yield());
  }
}

// The joints that are still to be destroyed, linked: a chain of joints may be long.
void destroy_one(detail::Completion& completion, Joint*& joints) noexcept {
  if (completion.kind == detail::CompletionKind::joint) {
    auto& joint = static_cast<Joint&>(completion);
    joint.next_dead = joints;
    joints = &joint;
  } else {
    destroy_promise(static_cast<detail::PromiseState&>(completion));
  }
}

}  // namespace

bool Joint::lift(const int priority) noexcept {
  int now = raised.load(std::memory_order_relaxed);
  do {
    if (priority <= now) return false;
  } while (!raised.compare_exchange_weak(now, priority, std::memory_order_relaxed));
  return true;
}

Joint& join(const std::span<detail::Completion* const> parts, const bool all) {
  auto whole = std::make_unique<Joint>();
  whole->parts = std::make_unique<Joint::Part[]>(parts.size());
  Joint& joint = *whole.release();  // from here on nothing throws
  joint.kind = detail::CompletionKind::joint;
  joint.references.store(1, std::memory_order_relaxed);
  joint.all = all;
  joint.count = parts.size();
  joint.failure = nullptr;
  joint.index.value = 0;
  joint.remaining.store(parts.size() + (all ? 1 : 0), std::memory_order_relaxed);
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
    // no task waits for the joint yet
    if (!event::add(part.of->event, part)) (void)let_go_part(part);
  }
  if (all) {
    (void)part_of_all_done(joint);
  } else {
    joint.armed.store(true, std::memory_order_seq_cst);
    if (joint.decided.load(std::memory_order_seq_cst)) take_back_others(joint);
  }
  return joint;
}

void take_all(const detail::Completion& completion) noexcept {
  std::vector<const detail::Completion*> left{&completion};  // no recursion: joints may be a chain
  std::unordered_set<const detail::Completion*> seen;  // a joint may be a part of several joints
  while (!left.empty()) {
    const detail::Completion& one = *left.back();
    left.pop_back();
    if (one.failure == nullptr) continue;
    if (one.kind != detail::CompletionKind::joint) {
      take(*one.failure);
      continue;
    }
    if (!seen.insert(&one).second) continue;
    const Joint& joint = static_cast<const Joint&>(one);
    for (std::size_t position = 0; position < joint.count; ++position) {
      left.push_back(joint.parts[position].of);
    }
  }
}

void destroy_promise(detail::PromiseState& promise) noexcept {
  Failure* const failure = promise.failure;  // `destroy` checks whether there is a failure
  trace::races::after(&promise.references);
  promise.destroy(promise);
  if (failure != nullptr) drop(*failure);
}

void destroy_other(detail::Completion& completion, Outcome& outcome) noexcept {
  Joint* joints = nullptr;
  destroy_one(completion, joints);
  while (joints != nullptr) {
    const std::unique_ptr<Joint> joint(std::exchange(joints, joints->next_dead));
    if (joint->failure != nullptr) drop(*joint->failure);
    for (std::size_t position = 0; position < joint->count; ++position) {
      Joint::Part& part = joint->parts[position];
      take_back(part);
      await_done(part);
      if (is_task(*part.of)) {
        lose(static_cast<Task&>(*part.of), outcome);
      } else if (drop(*part.of)) {
        destroy_one(*part.of, joints);
      }
    }
  }
}

}  // namespace imbrex::task
