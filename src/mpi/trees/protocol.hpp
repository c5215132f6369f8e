// SPDX-License-Identifier: BSD-3-Clause
// What ranks tell each other about messages along trees. Used by trees.hpp; knows no MPI.
#pragma once

#include <compare>
#include <cstdint>

namespace imbrex::mpi::trees {

// What a root tells each recipient, as a message with the largest tag, of which the program makes
// no use on such a communicator.
struct Announcement {
  static constexpr std::uint64_t mark_value = 0x5eed'7ee5'0f1a'b1e5;
  std::uint64_t mark = mark_value;
  std::uint64_t bytes = 0;
  std::uint32_t id = 0;       // counted by the root
  std::int32_t tag = 0;       // the program's
  std::int32_t parent = 0;    // the rank to claim the data from
  std::int32_t below = 0;     // how many ranks are to claim them from the recipient
  std::uint32_t segment = 0;  // the data come in pieces of so many bytes
  std::uint32_t unused = 0;
};

// Which message: of this root, with its number.
struct Name {
  std::int32_t root = 0;
  std::uint32_t id = 0;
  friend auto operator<=>(const Name&, const Name&) = default;
};

// Asks for the data of a message. A rank that does not have them, and will not, hands it on to the
// rank that it would have had them from.
struct Claim {
  Name name;
  std::int32_t from = 0;   // who shall get them
  std::int32_t ranks = 0;  // how many shall get them through that one, itself included
  std::int32_t tag = 0;    // that they shall have
  std::int32_t whole = 0;  // 1: in one piece, which nobody takes before the program does
};

}  // namespace imbrex::mpi::trees
