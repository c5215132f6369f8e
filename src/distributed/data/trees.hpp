// SPDX-License-Identifier: BSD-3-Clause
// The shape of a broadcast: the order of its recipients, and the part of the list that each direct
// recipient gets. Pure: it sends nothing. docs/design/broadcasts.md has the reasons.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace imbrex::distributed {

// A rank that gets a datum, and the transfer that its reader expects.
struct Recipient {
  std::int32_t rank = -1;      // of MPI_COMM_WORLD
  std::uint32_t ticket = 0;    // number of the transfer of this datum from this root to the rank
  std::int32_t priority = 0;   // of its reader, by the program: a larger one comes first
  std::int32_t urgency = 0;    // then a larger one of these: by the policy of the root
};

enum class TreeKind : std::uint8_t {
  automatic,  // the cheapest of the last three for this size and number
  star,       // the root sends to every rank
  binomial,   // the root sends ceil(log2(n + 1)) times
  chain,      // every rank sends once
  binary      // every rank sends twice at most
};

// A recipient in an ordered list, as it travels in messages. A list first names the ranks on the
// node of its holder, then other nodes, one after the other.
struct Stop {
  std::uint32_t rank : 31 = 0;
  std::uint32_t leads : 1 = 0;  // the first one of another node than the list holder's
  std::uint32_t ticket = 0;
  std::int32_t priority = 0;
  std::int32_t urgency = 0;
};
static_assert(sizeof(Stop) == 16, "as it travels");

// The order of recipients: the least goes first.
template <class One>
[[nodiscard]] std::pair<std::int64_t, std::int64_t> turn_of(const One& one) noexcept {
  return {-std::int64_t{one.priority}, -std::int64_t{one.urgency}};
}

// The largest length of a list, which fits into a message. More recipients need several lists.
inline constexpr std::size_t stops_max = 240;

// The ranks of each node. An unknown rank is a node of its own.
class Nodes {
 public:
  Nodes() = default;
  explicit Nodes(std::span<const int> node_of_rank);  // by any numbers
  // The lowest rank on its node.
  [[nodiscard]] int number_of(int rank) const noexcept { return look(numbers_, rank, rank); }
  // The number of ranks of its node that are below it.
  [[nodiscard]] int place_of(int rank) const noexcept { return look(places_, rank, 0); }

 private:
  [[nodiscard]] static int look(const std::vector<int>& table, const int rank,
                                const int otherwise) noexcept {
    const auto at = static_cast<std::size_t>(rank);
    return at < table.size() ? table[at] : otherwise;
  }
  std::vector<int> numbers_, places_;
};

// Orders recipients for any tree: by turn_of(), and among equal ones the ranks after the root, in a
// circle, so that over all roots each rank passes on equally often. The recipients of a
// node stay together, led by the rank whose place on its node is that of the root on its own.
[[nodiscard]] std::vector<Stop> arrange(int root, std::span<const Recipient> to,
                                        const Nodes& nodes);

// The kind that `automatic` means for this number of recipients and segments; other kinds
// unchanged.
[[nodiscard]] TreeKind choose(TreeKind kind, std::size_t recipients, std::size_t segments) noexcept;

// A direct recipient, and the list that goes along.
struct Branch {
  Stop to;
  std::vector<Stop> rest;
};

// The direct recipients of the holder of a list, in this order. Over the whole tree every stop is
// reached once, and from another node only if it leads its own. REQUIRES: `list` comes from
// arrange(), or is the rest of a branch; `kind` is not automatic.
[[nodiscard]] std::vector<Branch> branches(TreeKind kind, std::span<const Stop> list);

[[nodiscard]] const char* name_of(TreeKind kind) noexcept;

}  // namespace imbrex::distributed
