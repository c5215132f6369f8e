// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/lend/rank_seats.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "sched/lend/rule.hpp"

namespace imbrex::simulate {

namespace rule = sched::lend::rule;

namespace {

// As measured for the runtime: docs/design/lending.md.
constexpr Time spin_ns = 100'000;              // IMBREX_SPIN_US
constexpr Time wake_up_ns = 5000;              // of a seat that has got a processor
constexpr Time look_gap_ns = 10'000;           // between two looks for processors of other ranks

}  // namespace

Seats::Seats(EventQueue& events, Processors* const node, const int own, SeatUser& user)
    : events_(events), node_(node), own_(own), user_(user),
      seats_(static_cast<std::size_t>(count(node, own))) {
  if (node == nullptr) return;
  number_ = node->join(
      {.got = [](void* const its,
                 const int processor) { static_cast<Seats*>(its)->got(processor); },
       .wanted = [](void* const its) {
         auto& here = *static_cast<Seats*>(its);
         for (int seat = 0; seat < here.own_; ++seat) {
           here.lend_if_idle(seat, here.at(seat).idle_since);
         }
       },
       .object = this});
  const int first = number_ * own;
  for (int seat = 0; seat < node->all(); ++seat) {
    at(seat).processor = !is_spare(seat)      ? first + seat
                         : seat - own < first ? seat - own
                                              : seat;
  }
}

bool Seats::take(const int seat) {
  if (has_processor(seat)) return true;
  if (is_spare(seat) || !user_.has_work(seat)) return false;
  Seat& own = at(seat);
  own.awaits = !node_->take_back(number_, own.processor);
  if (own.awaits) borrow_for(user_.ready());
  return !own.awaits;
}

void Seats::wake_one() {
  int sleeper = -1;  // an own seat without a processor
  for (int seat = 0; seat < static_cast<int>(seats_.size()); ++seat) {
    if (!user_.is_idle(seat)) continue;
    if (has_processor(seat)) return user_.look_at(events_.now(), seat);
    if (sleeper < 0 && !is_spare(seat) && !at(seat).awaits) sleeper = seat;
  }
  if (sleeper >= 0) user_.look_at(events_.now(), sleeper);
}

// The rank has got the processor, from its owner or, of its own, from a borrower.
void Seats::got(const int processor) {
  const auto found = std::ranges::find(seats_, processor, &Seat::processor);
  const auto seat = static_cast<int>(found - seats_.begin());
  found->awaits = false;
  if (is_spare(seat)) return begin_loan(seat);
  found->idle_since = events_.now();
  user_.look_at(events_.now(), seat);
}

void Seats::begin_loan(const int seat) {
  at(seat).borrowed_since = events_.now();
  user_.look_at(events_.now() + wake_up_ns, seat);
}

void Seats::leave(const int seat) {
  if (!has_processor(seat)) return;
  borrowed_ns_ += static_cast<double>(events_.now() - at(seat).borrowed_since);
  node_->give_back(number_, at(seat).processor);
}

void Seats::rest(const int seat) {
  if (node_ == nullptr || !has_processor(seat)) return;
  at(seat).idle_since = events_.now();
  node_->want(number_, 0);
  for (const Time after : {static_cast<Time>(rule::soon_ns), spin_ns}) {
    struct Look {
      Seats* seats;
      int seat;
      Time since;
    };
    auto look = std::make_unique<Look>(Look{this, seat, at(seat).idle_since});
    events_.at(events_.now() + after, [](void* const its, std::uint64_t) {
      const std::unique_ptr<Look> one(static_cast<Look*>(its));
      one->seats->lend_if_idle(one->seat, one->since);
    }, look.release(), 0);
  }
}

// A seat that is idle since that time gives its processor up, as idle() of the runtime does. The
// last idle one polls for its rank, and so lends its processor last.
void Seats::lend_if_idle(const int seat, const Time idle_since) {
  if (at(seat).idle_since != idle_since || !has_processor(seat) || !user_.is_idle(seat) ||
      user_.has_work(seat)) {
    return;
  }
  const Time idle = events_.now() - idle_since;
  if (is_spare(seat)) {
    if (idle >= spin_ns) leave(seat);
    return;
  }
  const auto all = static_cast<int>(seats_.size());
  bool polls = true;
  for (int other = 0; other < all && polls; ++other) {
    polls = other == seat || !user_.is_idle(other) || !has_processor(other);
  }
  if (idle >= spin_ns || rule::lends_now({.ns = static_cast<std::uint64_t>(idle),
                                          .polls = polls,
                                          .wanted = node_->others_want(number_)},
                                         static_cast<std::uint64_t>(spin_ns))) {
    node_->lend(number_, at(seat).processor);
  }
}

// As look_for_processors() of the runtime.
void Seats::look() {
  if (node_ == nullptr) return;
  const Time spent = events_.now() - looked_at_;
  if (spent < look_gap_ns) return;
  looked_at_ = events_.now();
  const std::uint64_t begun = user_.begun() - std::exchange(begun_then_, user_.begun());
  bool one_sleeps = false;
  for (int seat = 0; seat < own_ && !one_sleeps; ++seat) {
    one_sleeps = user_.is_idle(seat) && !has_processor(seat);
  }
  borrow_for(rule::wanted_processors(
      {.ready = one_sleeps ? 0 : user_.ready(),
       .ns_each = static_cast<std::uint64_t>(spent) / std::max<std::uint64_t>(begun, 1)}));
}

void Seats::borrow_for(const std::int64_t wanted) {
  std::int64_t left = wanted;
  for (int seat = own_; seat < static_cast<int>(seats_.size()) && left != 0; ++seat) {
    if (!node_->borrow(number_, at(seat).processor)) continue;
    begin_loan(seat);
    --left;
  }
  node_->want(number_, left);
}

// The seat that polls for its rank has lent its processor, and naps between its polls: half a pause
// goes by until one has seen an arrival.
Time Seats::next_poll(const Time last) const noexcept {
  const Time silence = events_.now() - last;
  const std::uint64_t pause_us = rule::poll_pause_us(static_cast<std::uint64_t>(silence / 1000));
  return events_.now() + static_cast<Time>(pause_us) * 500;
}

}  // namespace imbrex::simulate
