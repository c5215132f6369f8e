// SPDX-License-Identifier: BSD-3-Clause
#include "task/cycle/node.hpp"

#include <mutex>
#include <utility>

namespace imbrex::task {

bool Gate::let_through(Node& node, const std::int64_t iteration) noexcept {
  const std::lock_guard guard(lock_);
  if (open_ >= iteration) return true;
  waiting_.push(*node.task);
  return false;
}

ReadyList Gate::decide() noexcept {
  const std::lock_guard guard(lock_);
  if (--left_ != 0) return {};
  left_ = deciders_;
  open_ += period_;
  return std::exchange(waiting_, {});
}

void Cycle::end_before(const std::int64_t iteration) noexcept {
  for (std::atomic<std::int64_t>* const each : {&limit, &look_at}) {
    std::int64_t now = each->load(std::memory_order_relaxed);
    while (iteration < now &&
           !each->compare_exchange_weak(now, iteration, std::memory_order_relaxed)) {
    }
  }
}

void Arrivals::arrive_slowly(Node& node) noexcept {
  if (node.retired) return;
  Gate* const gate = node.extras != nullptr ? node.extras->gate : nullptr;
  // The gate is that of the last iteration before this one in which tasks decide: at most a round
  // ago. Who is to be skipped waits there, too: a task that decides would otherwise be counted for
  // an iteration in which others have not decided yet.
  if (gate != nullptr && !gate->let_through(node, node.iteration - node.cycle->period)) return;
  if (node.iteration >= node.cycle->limit.load(std::memory_order_relaxed)) {
    skipped_.push(*node.task);
  } else {
    make_ready(node);
  }
}

void Arrivals::decide(Gate& gate) noexcept {
  ReadyList through = gate.decide();
  while (const Task* const task = through.pop()) all_arrived(node_of(*task));
}

void Arrivals::retire(Node& node) noexcept {
  node.retired = true;
  at_followers(node);
  if (node.extras != nullptr && node.extras->decides != nullptr) decide(*node.extras->decides);
  ++retired_;
}

void Arrivals::skip_all() noexcept {
  while (const Task* const task = skipped_.pop()) retire(node_of(*task));
}

}  // namespace imbrex::task
