// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/active/post/open_work.hpp"

#include <fmt/format.h>

#include "mpi/engine/engine.hpp"

namespace imbrex::mpi::active {

namespace {
constexpr int closed = -(1 << 30);
constexpr std::uint64_t bits_of_a_kind = 20;
}  // namespace

void OpenWork::begin(const Kind kind) noexcept {
  count(kind);
  engine().want_polls();
}

void OpenWork::end(const Kind kind) noexcept {
  // release: pairs with none()
  open_.fetch_sub(static_cast<std::uint64_t>(kind), std::memory_order_release);
  engine().call_off_polls(1);
}

void OpenWork::describe(std::string& text) const {
  const std::uint64_t open = open_.load(std::memory_order_relaxed);
  if (open == 0) return;
  constexpr std::uint64_t mask = (std::uint64_t{1} << bits_of_a_kind) - 1;
  const auto number = [open](const Kind kind) {
    return open / static_cast<std::uint64_t>(kind) & mask;
  };
  std::string parts;
  const auto add = [&parts](const std::uint64_t count, const char* const what) {
    if (count != 0) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", count, what);
  };
  add(number(Kind::listed), "ranks for which messages wait here");
  add(number(Kind::packet), "packets in flight from here");
  add(number(Kind::transfer), "transfers that have not ended");
  add(open % static_cast<std::uint64_t>(Kind::listed), "new handlers whose kept messages wait");
  text += "active messages that have not ended on this rank: " + parts + "\n";
}

void OpenWork::expect() noexcept {
  if (expecting_.fetch_add(1, std::memory_order_relaxed) >= 0) engine().want_polls();
}

void OpenWork::expect_no_more() noexcept {
  if (expecting_.fetch_sub(1, std::memory_order_relaxed) > 0) engine().call_off_polls(1);
}

void OpenWork::end_expecting() noexcept {
  const int expected = expecting_.exchange(closed, std::memory_order_relaxed);
  if (expected > 0) engine().call_off_polls(expected);
}

}  // namespace imbrex::mpi::active
