// SPDX-License-Identifier: BSD-3-Clause
#include "sched/lend/lending.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "imbrex/error.hpp"

namespace imbrex::sched {

namespace rule = lend::rule;

Lending::Lending(Setup setup)
    : setup_(std::move(setup)),
      table_(setup_.job),
      ticks_per_ns_(base::ticks_per_microsecond() / 1000),
      look_gap_(static_cast<std::uint64_t>(10 * base::ticks_per_microsecond())) {
  for (const int processor : setup_.own) {
    if (processor >= lend::processors_max) {
      throw Error(fmt::format("processor {} has a number above {}", processor,
                              lend::processors_max - 1));
    }
    if (!table_.claim(processor)) {
      throw Error(fmt::format("another process of the job uses processor {}, too", processor));
    }
  }
  for (const int processor : setup_.others) table_.expect(processor);
}

void Lending::lend(Seat& seat) noexcept {
  if (seat.processor < 0 || seat.spare) return;
  table_.lend(seat.processor);
  seat.away = true;
}

bool Lending::lends_now(const Seat& seat, const std::uint64_t idle_ticks,
                        const bool polls) const noexcept {
  if (seat.processor < 0) return false;
  const auto idle_ns = static_cast<std::uint64_t>(static_cast<double>(idle_ticks) / ticks_per_ns_);
  return idle_ns >= rule::soon_ns &&
         rule::lends_now({.ns = idle_ns, .polls = polls, .wanted = table_.others_want()},
                         setup_.spin_ns);
}

bool Lending::begin_loan(Seat& seat) noexcept {
  if (!table_.holds(seat.processor)) return false;
  if (seat.since == 0) seat.since = base::monotonic_ns();
  return true;
}

bool Lending::borrow(Seat& seat) noexcept {
  return table_.borrow(seat.processor) && begin_loan(seat);
}

void Lending::give_back(Seat& seat) noexcept {
  const std::uint64_t since = std::exchange(seat.since, 0);
  table_.give_back(seat.processor, since == 0 ? 0 : base::monotonic_ns() - since);
}

bool Lending::is_look_due() noexcept {
  const std::uint64_t now = base::ticks();
  std::uint64_t next = next_look_.load(std::memory_order_relaxed);
  return now >= next &&
         next_look_.compare_exchange_strong(next, now + look_gap_, std::memory_order_relaxed);
}

void Lending::look(const std::int64_t ready, const std::uint64_t begun) noexcept {
  const std::uint64_t now = base::ticks();
  const std::uint64_t spent = now - looked_at_.exchange(now, std::memory_order_relaxed);
  const std::uint64_t before = begun_then_.exchange(begun, std::memory_order_relaxed);
  const std::uint64_t tasks = std::max<std::uint64_t>(1, begun - std::min(begun, before));
  const auto ns_each = static_cast<std::uint64_t>(
      static_cast<double>(spent) / ticks_per_ns_ / static_cast<double>(tasks));
  borrow_for(rule::wanted_processors({.ready = ready, .ns_each = ns_each}));
}

// First says what is wanted, then looks for free processors: Table::grant() has the argument.
void Lending::borrow_for(const std::int64_t wanted) noexcept {
  table_.want(wanted);
  if (wanted == 0) return;
  std::int64_t left = wanted;
  for (const int processor : setup_.others) {
    if (left == 0) break;
    if (!table_.borrow(processor)) continue;
    table_.ring(processor);
    --left;
  }
  table_.want(left);
  const std::uint64_t now = base::monotonic_ns();
  std::uint64_t buried = buried_at_.load(std::memory_order_relaxed);
  if (left != 0 && now - buried > burial_ns &&
      buried_at_.compare_exchange_strong(buried, now, std::memory_order_relaxed)) {
    table_.bury_dead();
  }
}

}  // namespace imbrex::sched
