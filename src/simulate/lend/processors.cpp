// SPDX-License-Identifier: BSD-3-Clause
#include "simulate/lend/processors.hpp"

#include <algorithm>

#include "sched/lend/rule.hpp"

namespace imbrex::simulate {

Processors::Processors(const int ranks, const int each)
    : words_(static_cast<std::size_t>(ranks) * static_cast<std::size_t>(each)) {
  for (int processor = 0; processor < all(); ++processor) {
    at(processor) = {.owner = processor / each, .holder = processor / each};
  }
}

int Processors::join(const User& user) {
  users_.push_back(user);
  wants_.push_back(0);
  return static_cast<int>(users_.size()) - 1;
}

bool Processors::others_want(const int rank) const noexcept {
  for (std::size_t other = 0; other < wants_.size(); ++other) {
    if (static_cast<int>(other) != rank && wants_[other] > 0) return true;
  }
  return false;
}

void Processors::want(const int rank, const std::int64_t processors) {
  std::int64_t& wants = wants_[static_cast<std::size_t>(rank)];
  const bool begins = wants == 0 && processors > 0;
  wants = processors;
  if (!begins) return;
  for (std::size_t other = 0; other < users_.size(); ++other) {
    if (static_cast<int>(other) != rank) users_[other].wanted(users_[other].object);
  }
}

void Processors::lend(const int rank, const int processor) {
  at(processor).holder = nobody;
  grant(rank, processor);
}

bool Processors::take_back(const int rank, const int processor) {
  Word& word = at(processor);
  if (word.holder == nobody) word.holder = rank;
  word.awaited = word.holder != rank;
  return !word.awaited;
}

bool Processors::borrow(const int rank, const int processor) {
  Word& word = at(processor);
  if (word.holder != nobody) return false;
  word.holder = rank;
  return true;
}

void Processors::give_back(const int rank, const int processor) {
  Word& word = at(processor);
  if (word.awaited) {
    word = {.owner = word.owner, .holder = word.owner};
    const User& owner = users_[static_cast<std::size_t>(word.owner)];
    return owner.got(owner.object, processor);
  }
  word.holder = nobody;
  grant(rank, processor);
}

void Processors::grant(const int rank, const int processor) {
  Word& word = at(processor);
  const int owner = word.owner;
  const int to = sched::lend::rule::neediest(
      static_cast<int>(users_.size()), rank, [&](const int other) -> std::int64_t {
        return other == rank || other == owner ? 0 : wants_[static_cast<std::size_t>(other)];
      });
  if (to == nobody) return;
  word.holder = to;
  const auto index = static_cast<std::size_t>(to);
  --wants_[index];
  users_[index].got(users_[index].object, processor);
}

Nodes::Nodes(const bool lends, const int ranks, const int per_node, const int each)
    : per_node_(per_node) {
  for (int first = 0; lends && first < ranks; first += per_node) {
    nodes_.emplace_back(std::min(per_node, ranks - first), each);
  }
}

}  // namespace imbrex::simulate
