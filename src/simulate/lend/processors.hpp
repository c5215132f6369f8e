// SPDX-License-Identifier: BSD-3-Clause
// The processors of one simulated node, which its ranks lend to each other. The runtime keeps them
// in shared memory (sched/lend/table.hpp); the rule who gets one is the runtime's own. Knows no
// tasks and no time.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace imbrex::simulate {

class Processors {
 public:
  // A rank of the node. The functions may call the object of Processors again.
  struct User {
    void (*got)(void* object, int processor) = nullptr;  // the rank holds it from now on
    void (*wanted)(void* object) = nullptr;              // another rank begins to want one
    void* object = nullptr;
  };
  // Each of `ranks` ranks has `each` processors: rank r owns `each` of them from r * each on.
  Processors(int ranks, int each);

  [[nodiscard]] int all() const noexcept { return static_cast<int>(words_.size()); }
  // A rank joins, and gets its number in the node. Processors of a rank that never joins are
  // never used.
  [[nodiscard]] int join(const User& user);

  [[nodiscard]] bool holds(int rank, int processor) const noexcept {
    return at(processor).holder == rank;
  }
  // The owner waits for it, and its borrower gives it back at the end of a task.
  [[nodiscard]] bool is_awaited(int processor) const noexcept { return at(processor).awaited; }
  [[nodiscard]] bool others_want(int rank) const noexcept;
  void want(int rank, std::int64_t processors);

  // REQUIRES of these: the rank is the owner. take_back() returns whether the rank holds the
  // processor now; if not, got() follows.
  void lend(int rank, int processor);
  [[nodiscard]] bool take_back(int rank, int processor);
  // REQUIRES of these: the rank is not the owner.
  [[nodiscard]] bool borrow(int rank, int processor);
  void give_back(int rank, int processor);

 private:
  static constexpr int nobody = -1;
  struct Word {
    int owner = nobody;
    int holder = nobody;
    bool awaited = false;
  };
  [[nodiscard]] Word& at(int processor) noexcept {
    return words_[static_cast<std::size_t>(processor)];
  }
  [[nodiscard]] const Word& at(int processor) const noexcept {
    return words_[static_cast<std::size_t>(processor)];
  }
  // `rank` has made the processor free.
  void grant(int rank, int processor);

  std::vector<Word> words_;
  std::vector<User> users_;
  std::vector<std::int64_t> wants_;
};

// The processors of all nodes; none if ranks do not lend.
class Nodes {
 public:
  Nodes(bool lends, int ranks, int per_node, int each);
  // Those of the node of `rank`; null if it does not lend.
  [[nodiscard]] Processors* of(const int rank) noexcept {
    return nodes_.empty() ? nullptr : &nodes_[static_cast<std::size_t>(rank / per_node_)];
  }

 private:
  const int per_node_;
  std::deque<Processors> nodes_;
};

}  // namespace imbrex::simulate
