// SPDX-License-Identifier: BSD-3-Clause
// The effects of a pool's messages, the next action of a rank without items, and its messages.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "imbrex/detail/waist.hpp"
#include "distributed/pool/rank_pool.hpp"

namespace imbrex::distributed {

namespace {
constexpr std::size_t messages_max = 8;  // of items, in one answer
}

void Pool::receive(const int from, const PoolHead& head, const Bytes body) {
  switch (head.kind) {
    case PoolMessage::steal: return answer(from, head);
    case PoolMessage::work:
    case PoolMessage::none: return take_in(from, head, body);
    case PoolMessage::failed:
    case PoolMessage::left: return note_failure(from, head, body);
  }
}

void Pool::answer(const int from, const PoolHead& head) {
  Parcel parcel{from, head.round, {}};
  {
    const std::lock_guard guard(mutex_);
    // A rank that is a round ahead has to wait for this rank's round.
    if (runs_ && head.round == round_ && shared_items() != 0) {
      parcel = pack_half(from);
      note_shared();
    } else if (head.lifeline) {
      search_.keep(place_of(from), head.round);
    }
    if (shared_items() == 0) hungry_.store(true, std::memory_order_relaxed);  // a hint
  }
  if (!parcel.items.empty()) return send(parcel, false);
  send(from, {options_.id, head.round, PoolMessage::none}, {});
}

void Pool::take_in(const int from, const PoolHead& head, const Bytes items) {
  Step step;
  {
    const std::lock_guard guard(mutex_);
    if (head.kind == PoolMessage::none) {
      asks_ = false;
      search_.brought_none();
      ++counters_.failed_steals;
    } else {
      ++received_;
      if (head.pushed) {
        search_.got_push(place_of(from));
      } else if (head.last) {
        asks_ = false;
        ++counters_.steals;
      }
      search_.got_items();
      counters_.items_received += items.size() / options_.item_bytes;
      if (!failed_.load(std::memory_order_relaxed)) shared_.add(items.data(), items.size());
      note_shared();
    }
    const std::size_t chunk = chunk_.load(std::memory_order_relaxed);
    Sleeper* const woken = wake((shared_items() + chunk - 1) / chunk);
    step = next_step();  // wakes no worker: this is not the only rank
    step.woken = woken;
  }
  perform(step);
}

void Pool::note_failure(const int from, const PoolHead& head, const Bytes text) {
  Step step;
  {
    const std::lock_guard guard(mutex_);
    ++received_;
    const std::string_view reason(reinterpret_cast<const char*>(text.data()), text.size());
    const std::string error =
        head.kind == PoolMessage::left
            ? std::string(reason)
            : fmt::format("imbrex: the function of work pool \"{}\" has thrown on rank {}, and all "
                          "its items are dropped: {}", options_.name, from, reason);
    if (head.kind == PoolMessage::left && left_round_ == 0) {
      left_round_ = head.round;
      left_text_ = error;
    }
    errors_elsewhere_.try_emplace(head.round, error);
    if (runs_ && head.round == round_) {
      failed_.store(true, std::memory_order_relaxed);
      shared_.clear();
      note_shared();
      step = next_step();
    }
  }
  perform(step);
}

// The next action of a rank without items: it asks for some, or says that it is passive.
Pool::Step Pool::next_step() {
  Step step;
  if (!runs_ || ended_ || asks_ || shared_items() != 0 || !lacks_items()) return step;
  if (options_.ranks.size() > 1 && !failed_.load(std::memory_order_relaxed)) {
    Search::Request request;
    if (search_.next(request)) {
      asks_ = true;
      step.kind = Kind::ask;
      step.round = round_;
      step.to = options_.ranks[request.to];
      step.lifeline = request.lifeline;
      return step;
    }
  }
  if (active_ != 0 || in_wave_) return step;
  if (options_.ranks.size() == 1) {
    ended_ = true;
    step.kind = Kind::end;
    step.woken = wake(workers_.size());
    return step;
  }
  in_wave_ = true;
  step.kind = Kind::join;
  step.sums = {sent_, received_, 0, 0};
  step.wave = wave_++;
  return step;
}

// REQUIRES: the lock is not held. The pool may be gone after the firing.
void Pool::perform(const Step& step) {
  switch (step.kind) {
    case Kind::ask: {
      PoolHead head{options_.id, step.round, PoolMessage::steal};
      head.lifeline = step.lifeline;
      send(step.to, head, {});
      break;
    }
    case Kind::join:
      waves_.join({options_.id, step.wave}, options_.ranks, step.sums,
                  [](void* const context, const WaveSums& sums) noexcept {
                    static_cast<Pool*>(context)->wave_ended(sums);
                  },
                  this);
      break;
    case Kind::nothing:
    case Kind::end: break;
  }
  fire(step.woken);
}

void Pool::wave_ended(const WaveSums& sums) {
  Step step;
  bool is_over = false;
  {
    const std::lock_guard guard(mutex_);
    in_wave_ = false;
    if (sums[0] == received_before_) {
      ended_ = true;
      is_over = has_left_;
      step.woken = wake(workers_.size());
    } else {
      received_before_ = sums[1];
      step = next_step();
    }
  }
  if (is_over) {
    leaving_.over();
    return over_(over_context_);
  }
  perform(step);
}

Pool::Sleeper* Pool::wake(const std::size_t most) {
  Sleeper* woken = nullptr;
  for (std::size_t i = 0; i < most && sleepers_ != nullptr; ++i) {
    Sleeper* const one = sleepers_;
    sleepers_ = one->next;
    ++active_;
    one->next = woken;
    woken = one;
  }
  return woken;
}

void Pool::fire(Sleeper* woken) noexcept {
  while (woken != nullptr) {
    Sleeper* const next = woken->next;  // its worker's stack is gone as soon as it has fired
    detail::fire(woken->event);
    woken = next;
  }
}

// The older half of the shared items, as far as one answer holds them.
Pool::Parcel Pool::pack_half(const int to) {
  const std::size_t per_message = detail::item_bytes_max / options_.item_bytes;
  const std::size_t some = std::min((shared_items() + 1) / 2, messages_max * per_message);
  const std::size_t bytes = some * options_.item_bytes;
  Parcel parcel{to, round_, {shared_.bottom, shared_.bottom + bytes}};
  shared_.bottom += bytes;
  sent_ += static_cast<std::int64_t>((some + per_message - 1) / per_message);
  counters_.items_sent += some;
  return parcel;
}

void Pool::send(const Parcel& parcel, const bool pushed) {
  const std::size_t most = detail::item_bytes_max / options_.item_bytes * options_.item_bytes;
  PoolHead head{options_.id, parcel.round, PoolMessage::work};
  head.pushed = pushed;
  const Bytes items(parcel.items);
  for (std::size_t at = 0; at < items.size(); at += most) {
    head.last = at + most >= items.size();
    carrier_.send(parcel.to, bytes_of(head), items.subspan(at, std::min(most, items.size() - at)));
  }
  carrier_.flush();
}

void Pool::send(const int to, const PoolHead& head, const Bytes body) {
  carrier_.send(to, bytes_of(head), body);
  carrier_.flush();
}

std::size_t Pool::place_of(const int rank) const noexcept {
  return static_cast<std::size_t>(std::ranges::find(options_.ranks, rank) -
                                  options_.ranks.begin());
}

std::size_t Pool::shared_items() const noexcept { return shared_.bytes() / options_.item_bytes; }

void Pool::note_shared() noexcept {
  shared_count_.store(shared_items(), std::memory_order_relaxed);
}

}  // namespace imbrex::distributed
