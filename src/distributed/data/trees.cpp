// SPDX-License-Identifier: BSD-3-Clause
#include "distributed/data/trees.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

namespace imbrex::distributed {

// ---- the order of a list ---------------------------------------------------------------------

namespace {

// The recipients of one node, the leading one first.
struct Group {
  int number = 0;  // the node's
  std::vector<Recipient> members;
};

// Orders numbers from `first` on, in a circle.
[[nodiscard]] std::pair<bool, int> from_on(const int first, const int number) noexcept {
  return {number < first, number};
}

}  // namespace

Nodes::Nodes(const std::span<const int> node_of_rank) {
  struct Seen {
    int first;
    int ranks;
  };
  std::map<int, Seen> seen;
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    Seen& node = seen.try_emplace(node_of_rank[rank], Seen{static_cast<int>(rank), 0})
                     .first->second;
    numbers_.push_back(node.first);
    places_.push_back(node.ranks++);
  }
}

std::vector<Stop> arrange(const int root, const std::span<const Recipient> to,
                          const Nodes& nodes) {
  std::vector<Group> groups;
  for (const Recipient& recipient : to) {
    const int number = nodes.number_of(recipient.rank);
    auto found = std::ranges::find(groups, number, &Group::number);
    if (found == groups.end()) found = groups.insert(groups.end(), Group{number, {}});
    found->members.push_back(recipient);
  }
  const int place = nodes.place_of(root);
  for (Group& group : groups) {
    std::ranges::sort(group.members, {}, [&](const Recipient& one) {
      return std::pair(turn_of(one), from_on(place, nodes.place_of(one.rank)));
    });
  }
  const int own = nodes.number_of(root);
  std::ranges::sort(groups, {}, [own](const Group& group) {
    return std::tuple(group.number != own, turn_of(group.members.front()),
                      from_on(own, group.number));
  });
  std::vector<Stop> list;
  list.reserve(to.size());
  for (const Group& group : groups) {
    bool leads = group.number != own;
    for (const Recipient& one : group.members) {
      list.push_back({static_cast<std::uint32_t>(one.rank), std::exchange(leads, false) ? 1U : 0U,
                      one.ticket, one.priority, one.urgency});
    }
  }
  return list;
}

// ---- kinds -----------------------------------------------------------------------------------

namespace {
[[nodiscard]] std::size_t rounds_of(const std::size_t recipients) noexcept {
  return static_cast<std::size_t>(std::bit_width(recipients));  // ceil(log2(recipients + 1))
}
}  // namespace

// The unit of cost is the time of a segment between two ranks, when each rank sends one at a time.
TreeKind choose(const TreeKind kind, const std::size_t recipients,
                const std::size_t segments) noexcept {
  if (kind != TreeKind::automatic) return kind;
  const std::size_t rounds = rounds_of(recipients);
  const std::size_t chain = segments + recipients - 1;
  const std::size_t binary = 2 * (segments - 1 + rounds);
  const std::size_t binomial = segments * rounds;
  // Among equals the tree in which the root sends less; a single segment needs no chain.
  if (segments == 1) return TreeKind::binomial;
  if (chain <= std::min(binary, binomial)) return TreeKind::chain;
  return binary <= binomial ? TreeKind::binary : TreeKind::binomial;
}

const char* name_of(const TreeKind kind) noexcept {
  switch (kind) {
    case TreeKind::automatic: return "automatic";
    case TreeKind::star: return "star";
    case TreeKind::binomial: return "binomial";
    case TreeKind::chain: return "chain";
    case TreeKind::binary: return "binary";
  }
  return "unknown";
}

// ---- branches --------------------------------------------------------------------------------

namespace {

// The parts of a tree: a stop on the holder's node (a mate), or another node with all its stops,
// which is reached once. A mate may pass on any unit; a node must not get mates of the holder, or
// their data would cross the network and come back.
struct Unit {
  std::span<const Stop> stops;
  [[nodiscard]] const Stop& head() const noexcept { return stops.front(); }
  [[nodiscard]] bool is_node() const noexcept { return head().leads != 0; }
};
using Units = std::vector<Unit>;

[[nodiscard]] Units units_of(const std::span<const Stop> list) {
  Units units;
  for (std::size_t i = 0; i < list.size();) {
    std::size_t end = i + 1;
    if (list[i].leads != 0) {
      while (end < list.size() && list[end].leads == 0) ++end;
    }
    units.push_back({list.subspan(i, end - i)});
    i = end;
  }
  // Mates before nodes of equal turns: they can take more.
  std::ranges::stable_sort(units, {}, [](const Unit& unit) { return turn_of(unit.head()); });
  return units;
}

[[nodiscard]] Branch branch(const Unit& unit, const Units& passed_on) {
  Branch made{unit.head(), {unit.stops.begin() + 1, unit.stops.end()}};
  for (const bool nodes : {false, true}) {  // a list names mates first
    for (const Unit& one : passed_on) {
      if (one.is_node() == nodes) {
        made.rest.insert(made.rest.end(), one.stops.begin(), one.stops.end());
      }
    }
  }
  return made;
}

// Takes from `units` as many as `most` that `may` accepts, every second one first, so that both
// parts have units of similar priority.
template <class May>
[[nodiscard]] Units take(Units& units, const std::size_t most, const May may) {
  std::vector<std::size_t> chosen;
  std::vector<std::size_t> skipped;
  for (std::size_t i = 0, turn = 0; i < units.size(); ++i) {
    if (may(units[i])) (turn++ % 2 == 1 ? chosen : skipped).push_back(i);
  }
  if (chosen.size() > most) chosen.resize(most);
  for (; chosen.size() < most && !skipped.empty(); skipped.pop_back()) {
    chosen.push_back(skipped.back());
  }
  std::ranges::sort(chosen);
  Units taken;
  for (const std::size_t i : chosen) taken.push_back(units[i]);
  for (auto i = chosen.rbegin(); i != chosen.rend(); ++i) {
    units.erase(units.begin() + static_cast<std::ptrdiff_t>(*i));
  }
  return taken;
}

[[nodiscard]] Unit extract(Units& units, const Units::iterator at) {
  const Unit unit = *at;
  units.erase(at);
  return unit;
}

// The first recipient gets half of the rest, the next one half of what is then left. A node may be
// first only if there are enough nodes for it to pass on: otherwise the holder would send more
// often than with mates alone.
[[nodiscard]] std::vector<Branch> binomial(Units units) {
  std::vector<Branch> made;
  while (!units.empty()) {
    const std::size_t all = units.size() + 1;
    const std::size_t kept_most = std::bit_ceil(all) / 2 - 1;
    const auto nodes = static_cast<std::size_t>(std::ranges::count_if(units, &Unit::is_node));
    auto first = units.begin();
    if (first->is_node() && nodes < units.size() - kept_most) {
      first = std::ranges::find_if_not(units, &Unit::is_node);
    }
    const Unit unit = extract(units, first);
    made.push_back(branch(unit, take(units, all / 2 - 1, [&](const Unit& one) {
                            return !unit.is_node() || one.is_node();
                          })));
  }
  return made;
}

[[nodiscard]] std::vector<Branch> binary(Units units) {
  if (units.empty()) return {};
  const auto mate = std::ranges::find_if_not(units, &Unit::is_node);
  std::vector<Unit> heads{extract(units, mate == units.end() ? units.begin() : mate)};
  if (!units.empty()) heads.push_back(extract(units, units.begin()));
  std::vector<Units> passed_on(heads.size());
  for (const Unit& unit : units) {
    std::size_t least = heads.size();
    for (std::size_t i = 0; i < heads.size(); ++i) {
      if (heads[i].is_node() && !unit.is_node()) continue;
      if (least == heads.size() || passed_on[i].size() < passed_on[least].size()) least = i;
    }
    passed_on[least].push_back(unit);
  }
  std::vector<Branch> made;
  for (std::size_t i = 0; i < heads.size(); ++i) made.push_back(branch(heads[i], passed_on[i]));
  std::ranges::stable_sort(made, {}, [](const Branch& one) { return turn_of(one.to); });
  return made;
}

[[nodiscard]] std::vector<Branch> star(const std::span<const Stop> list) {
  std::vector<Branch> made;
  for (const Stop& stop : list) made.push_back({stop, {}});
  std::ranges::stable_sort(made, {}, [](const Branch& one) { return turn_of(one.to); });
  return made;
}

}  // namespace

std::vector<Branch> branches(const TreeKind kind, const std::span<const Stop> list) {
  if (list.empty()) return {};
  switch (kind) {
    case TreeKind::star: return star(list);
    case TreeKind::chain: return {{list.front(), {list.begin() + 1, list.end()}}};
    case TreeKind::binary: return binary(units_of(list));
    case TreeKind::automatic:
    case TreeKind::binomial: break;
  }
  return binomial(units_of(list));
}

}  // namespace imbrex::distributed
