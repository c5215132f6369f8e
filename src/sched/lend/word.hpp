// SPDX-License-Identifier: BSD-3-Clause
// The state of one hardware thread that the ranks of a node lend to each other, and all its moves.
// Pure: the table (table.hpp) makes each move by one compare-and-swap of the state's 32 bits.
// tests/models/lending.pml is the same protocol for spin.
//
// Invariants: (1) only the holder's workers run on the processor, except after `forced`. (2) Only
// the owner sets `wanted`, and only while another process holds. (3) A processor without an owner
// is borrowed by nobody, unless its owner has died: then nobody else needs it.
#pragma once

#include <cstdint>
#include <optional>

namespace imbrex::sched::lend {

// A process in the table: its position, from 1 on.
using Member = std::uint16_t;
inline constexpr Member nobody = 0;
inline constexpr Member dead_owner = 4095;
inline constexpr int members_max = 256;

struct Word {
  Member owner = nobody;   // has the processor by right
  Member holder = nobody;  // its workers run there; nobody: free
  bool wanted = false;     // the owner waits for the holder to give it back

  [[nodiscard]] friend constexpr bool operator==(const Word&, const Word&) = default;
};

[[nodiscard]] constexpr std::uint32_t packed(const Word& word) noexcept {
  return (std::uint32_t{word.owner} << 16) | (std::uint32_t{word.holder} << 1) |
         (word.wanted ? 1U : 0U);
}
[[nodiscard]] constexpr Word unpacked(const std::uint32_t bits) noexcept {
  return {.owner = static_cast<Member>(bits >> 16),
          .holder = static_cast<Member>((bits >> 1) & 0xfffU),
          .wanted = (bits & 1U) != 0};
}

// Each move returns the next state, or nothing if the move is not possible.
using Next = std::optional<Word>;

// `me` becomes the owner. It holds the processor, or waits for the process that borrowed it from a
// dead owner.
[[nodiscard]] constexpr Next claimed(const Word& word, const Member me) noexcept {
  if (word.owner != nobody && word.owner != dead_owner) return {};
  const bool lent = word.holder != nobody;
  return Word{.owner = me, .holder = lent ? word.holder : me, .wanted = lent};
}
// The owner leaves, and its process goes on: nobody borrows the processor any more.
[[nodiscard]] constexpr Next withdrawn(const Word& word, const Member me) noexcept {
  if (word.owner != me) return {};
  return Word{.owner = nobody, .holder = word.holder == me ? nobody : word.holder};
}
// The owner does not need it, so it is free. An owner that has lent it before, and has asked for it
// since, does not want it any more.
[[nodiscard]] constexpr Next lent(const Word& word, const Member me) noexcept {
  if (word.owner != me) return {};
  return Word{.owner = me, .holder = word.holder == me ? nobody : word.holder};
}
[[nodiscard]] constexpr bool is_free(const Word& word) noexcept {
  return word.owner != nobody && word.holder == nobody;
}
[[nodiscard]] constexpr Next borrowed(const Word& word, const Member me) noexcept {
  if (!is_free(word) || word.owner == me) return {};
  return Word{.owner = word.owner, .holder = me};
}
// The owner needs it: holds it, or waits for the holder.
[[nodiscard]] constexpr Next asked_for(const Word& word, const Member me) noexcept {
  if (word.owner != me) return {};
  const bool is_mine = word.holder == nobody || word.holder == me;
  return Word{.owner = me, .holder = is_mine ? me : word.holder, .wanted = !is_mine};
}
// The borrower does not use it any more: the owner gets it if it waits, otherwise it is free.
[[nodiscard]] constexpr Next given_back(const Word& word, const Member me) noexcept {
  if (word.holder != me || word.owner == me) return {};
  return Word{.owner = word.owner, .holder = word.wanted ? word.owner : nobody};
}
// The owner has waited long enough: the holder is stopped, or in a long task.
[[nodiscard]] constexpr Next forced(const Word& word, const Member me) noexcept {
  if (word.owner != me) return {};
  return Word{.owner = me, .holder = me};
}
// The process `dead` has ended without leaving.
[[nodiscard]] constexpr Next buried(const Word& word, const Member dead) noexcept {
  if (word.owner != dead && word.holder != dead) return {};
  Word next = word;
  if (next.holder == dead) next.holder = next.wanted && next.owner != dead ? next.owner : nobody;
  if (next.holder == next.owner) next.wanted = false;
  if (next.owner == dead) {
    next.owner = dead_owner;
    next.wanted = false;
  }
  return next;
}

}  // namespace imbrex::sched::lend
