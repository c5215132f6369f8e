// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/pool/search.hpp"

#include <algorithm>

namespace imbrex::distributed {

Search::Search(const std::size_t place, const std::size_t ranks, const std::uint32_t victims)
    : place_(place), ranks_(ranks),
      victims_(std::min(victims, static_cast<std::uint32_t>(ranks - 1))),
      random_(static_cast<std::uint32_t>(place * 7919 + 1)) {
  for (std::size_t bit = 1; bit < ranks; bit *= 2) {
    if ((place ^ bit) < ranks) lifelines_.push_back({place ^ bit});
  }
}

bool Search::next(Request& request) {
  last_request_ = nullptr;
  if (tries_ < victims_) {
    ++tries_;
    const std::size_t other = random_() % (ranks_ - 1);
    request = {other < place_ ? other : other + 1, false};
    return true;
  }
  while (next_lifeline_ < lifelines_.size()) {
    Lifeline& lifeline = lifelines_[next_lifeline_++];
    if (lifeline.requested) continue;
    last_request_ = &lifeline;
    request = {lifeline.place, true};
    return true;
  }
  return false;
}

void Search::brought_none() {
  if (last_request_ != nullptr) last_request_->requested = true;
  last_request_ = nullptr;
}

void Search::got_items() noexcept {
  tries_ = 0;
  next_lifeline_ = 0;
  worked_ = false;
}

void Search::got_push(const std::size_t from) {
  Lifeline* const lifeline = find(from);
  if (lifeline == nullptr) return;
  lifeline->requested = false;
  // Its sent items may overtake its answer: it then does not keep the request either.
  if (lifeline == last_request_) last_request_ = nullptr;
}

void Search::all_idle() noexcept {
  if (worked_ && next_lifeline_ == lifelines_.size()) got_items();
}

void Search::begin(const std::uint32_t round) {
  round_ = round;
  got_items();
  for (Lifeline& lifeline : lifelines_) lifeline.requested = false;
}

void Search::keep(const std::size_t from, const std::uint32_t round) {
  if (Lifeline* const lifeline = find(from)) lifeline->owed = round;
}

bool Search::owes() const noexcept {
  return std::ranges::any_of(lifelines_,
                             [this](const Lifeline& one) { return one.owed == round_; });
}

bool Search::take_owed(std::size_t& to) noexcept {
  for (std::size_t i = 0; i < lifelines_.size(); ++i) {
    Lifeline& lifeline = lifelines_[next_owed_++ % lifelines_.size()];
    if (lifeline.owed != round_) continue;
    lifeline.owed = 0;
    to = lifeline.place;
    return true;
  }
  return false;
}

Search::Lifeline* Search::find(const std::size_t place) noexcept {
  const auto found = std::ranges::find(lifelines_, place, &Lifeline::place);
  return found == lifelines_.end() ? nullptr : &*found;
}

}  // namespace imbrex::distributed
