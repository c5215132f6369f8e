// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/collectives/order/sequence.hpp"

#include <algorithm>

namespace imbrex::mpi::order {

bool Sequence::enter(Start& start) {
  const std::lock_guard guard(lock_);
  if (given_up_) return true;
  if (decides_) {
    decide(start.key, &start);
    untaken_.push_back(start.key);
  } else if (const auto free = free_.find(start.key); free != free_.end()) {
    slots_[static_cast<std::size_t>(free->second.front() - over_)].start = &start;
    free->second.pop_front();
    if (free->second.empty()) free_.erase(free);
  } else {
    undecided_[start.key].push_back(&start);
    return false;
  }
  return next() != nullptr;  // only this start can have become the next
}

Start* Sequence::leave() noexcept {
  const std::lock_guard guard(lock_);
  if (given_up_) return nullptr;
  slots_.pop_front();
  ++over_;
  is_starting_ = false;
  return next();
}

Start* Sequence::learn(const std::span<const std::uint64_t> keys) {
  const std::lock_guard guard(lock_);
  if (given_up_) return nullptr;
  for (const std::uint64_t key : keys) {
    const auto waiting = undecided_.find(key);
    if (waiting == undecided_.end()) {
      free_[key].push_back(over_ + slots_.size());
      decide(key, nullptr);
    } else {
      decide(key, waiting->second.front());
      waiting->second.pop_front();
      if (waiting->second.empty()) undecided_.erase(waiting);
    }
  }
  return next();
}

std::size_t Sequence::take_decisions(const std::span<std::uint64_t> keys) {
  const std::lock_guard guard(lock_);
  const std::size_t count = std::min(keys.size(), untaken_.size());
  const auto end = untaken_.begin() + static_cast<std::ptrdiff_t>(count);
  std::copy(untaken_.begin(), end, keys.begin());
  untaken_.erase(untaken_.begin(), end);
  return count;
}

bool Sequence::lacks_decisions() {
  const std::lock_guard guard(lock_);
  return !undecided_.empty();
}

std::vector<Start*> Sequence::give_up() {
  const std::lock_guard guard(lock_);
  std::vector<Start*> waiting;
  if (given_up_) return waiting;
  given_up_ = true;
  for (std::size_t i = is_starting_ ? 1 : 0; i < slots_.size(); ++i) {
    if (slots_[i].start != nullptr) waiting.push_back(slots_[i].start);
  }
  for (const auto& [key, starts] : undecided_) {
    waiting.insert(waiting.end(), starts.begin(), starts.end());
  }
  slots_.clear();
  free_.clear();
  undecided_.clear();
  untaken_.clear();
  return waiting;
}

void Sequence::for_each_waiting(const std::function<void(const View&)>& visit) {
  const std::lock_guard guard(lock_);
  const Slot first = slots_.empty() ? Slot{0, nullptr} : slots_.front();
  View view{.decided = over_ + slots_.size(),
            .last_key = last_key_,
            .first_is_here = first.start != nullptr,
            .first_key = first.key};
  view.is_decided = true;
  for (std::size_t i = is_starting_ ? 1 : 0; i < slots_.size(); ++i) {
    view.start = slots_[i].start;
    view.ahead = i;
    if (view.start != nullptr) visit(view);
  }
  view.is_decided = false;
  view.ahead = slots_.size();
  for (const auto& [key, starts] : undecided_) {
    for (const Start* const start : starts) {
      view.start = start;
      visit(view);
    }
  }
}

void Sequence::decide(const std::uint64_t key, Start* const start) {
  slots_.push_back({key, start});
  last_key_ = key;
}

// The start whose turn has come by the change of the caller.
Start* Sequence::next() noexcept {
  if (is_starting_ || slots_.empty() || slots_.front().start == nullptr) return nullptr;
  is_starting_ = true;
  return slots_.front().start;
}

}  // namespace imbrex::mpi::order
