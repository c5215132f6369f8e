// SPDX-License-Identifier: BSD-3-Clause
// The shape of a broadcast: in which order its recipients stand, and which part of the list each of
// those who are sent to directly gets. Pure: it sends nothing. docs/design/broadcasts.md has the
// reasons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace imbrex::distributed {

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

// The same in a list that has been put in order, as it travels in messages. A list names first
// those on the node of whoever has it, then other nodes, one after the other.
struct Stop {
  std::uint32_t rank : 31 = 0;
  std::uint32_t leads : 1 = 0;  // it is the first of another node than that of the list's holder
  std::uint32_t ticket = 0;
  std::int32_t priority = 0;
};
static_assert(sizeof(Stop) == 12, "as it travels");

// The most that a list has: it fits into a message. More recipients are several lists.
inline constexpr std::size_t stops_max = 256;

// Which ranks share a node. Ranks that it does not know are nodes of their own.
class Nodes {
 public:
  Nodes() = default;
  explicit Nodes(std::span<const int> node_of_rank);  // by any numbers
  // The lowest rank on its node.
  [[nodiscard]] int number_of(int rank) const noexcept { return look(numbers_, rank, rank); }
  // How many ranks of its node are below it.
  [[nodiscard]] int place_of(int rank) const noexcept { return look(places_, rank, 0); }

 private:
  [[nodiscard]] static int look(const std::vector<int>& table, const int rank,
                                const int otherwise) noexcept {
    const auto at = static_cast<std::size_t>(rank);
    return at < table.size() ? table[at] : otherwise;
  }
  std::vector<int> numbers_, places_;
};

// Puts recipients in order for whatever tree: higher priorities first, and of equal ones those that
// follow the root, round and round, so that no rank passes on more than others over all roots. The
// recipients of a node stay together, led by the one that is on its node what the root is on its
// own.
[[nodiscard]] std::vector<Stop> arrange(int root, std::span<const Recipient> to,
                                        const Nodes& nodes);

// What `automatic` means for so many recipients and segments; every other kind means itself.
[[nodiscard]] TreeKind choose(TreeKind kind, std::size_t recipients, std::size_t segments) noexcept;

// Somebody who is sent to, and the list that goes along.
struct Branch {
  Stop to;
  std::vector<Stop> rest;
};

// To whom the holder of a list sends, in this order. Over the whole tree every stop is reached
// once, and from another node only if it leads its own.
// REQUIRES: `list` comes from arrange(), or is the rest of a branch; `kind` is not automatic.
[[nodiscard]] std::vector<Branch> branches(TreeKind kind, std::span<const Stop> list);

[[nodiscard]] const char* name_of(TreeKind kind) noexcept;

}  // namespace imbrex::distributed
