// SPDX-License-Identifier: BSD-3-Clause
// The shape of a broadcast: in which order its recipients stand, and which part of the list each of
// those who are sent to directly gets. Pure: it sends nothing. docs/design/broadcasts.md has the
// reasons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace imbrex::dist {

// One of those who get a datum, and the transfer that its reader there expects.
struct Recipient {
  std::int32_t rank = -1;      // of MPI_COMM_WORLD
  std::uint32_t ticket = 0;    // it is so many transfers of this datum from this root to it
  std::int32_t priority = 0;   // larger ones come first
};

enum class TreeKind : std::uint8_t {
  automatic,  // the cheapest of the last three for this size and number
  star,       // everybody gets it from the root
  binomial,   // the root sends ceil(log2(n + 1)) times
  chain,      // everybody sends once
  binary      // everybody sends twice at most
};

}  // namespace imbrex::dist
