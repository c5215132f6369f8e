// SPDX-License-Identifier: BSD-3-Clause
// A random program of tasks for depend_fuzz.cpp, and what it computes when its tasks run one after
// the other in program order. Knows nothing of the runtime.
//
// The program cannot lock itself out: a task waits only for siblings before it, and for none while
// it holds a mutex that one of them might need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "imbrex/imbrex.hpp"

namespace imbrex::test {

enum class Kind { in, out, inout, mutexinoutset, inoutset };

struct Access {
  std::size_t variable;  // of the scope; the first of `count`
  Kind kind;
  bool early;  // released before the body ends
  bool range = false;
  std::size_t count = 1;
};

[[nodiscard]] inline bool overlap(const Access& one, const Access& two) {
  return one.variable < two.variable + two.count && two.variable < one.variable + one.count;
}

enum class ChildWait { none, taskwait, finish, futures };

struct Node;

// Siblings in program order, and the variables that they name.
struct Block {
  std::vector<std::uint64_t> values;
  std::vector<Node> nodes;
  bool ranges = false;  // some accesses are
};

// When things happened, by one counter of the whole program; and what was seen.
struct Record {
  std::uint64_t start = 0;
  std::vector<std::uint64_t> access_end;  // by position in Node::accesses
  std::uint64_t body_end = 0;
  std::uint64_t bound_end = 0;          // just before the event of release_after fired
  std::vector<std::uint64_t> observed;  // by in and inout accesses; 0 for others
  std::uint64_t result = 0;
};

// One task.
struct Node {
  std::uint64_t id = 0;
  std::string name;  // "node 7"
  std::vector<Access> accesses;
  std::vector<std::size_t> after;  // earlier siblings whose futures it is given as dependencies
  std::vector<std::size_t> gets;   // earlier siblings whose results it gets in its body
  int yields = 0;
  bool suspends = false;  // waits for an event
  bool foreign = false;   // fired by a thread that is no worker
  bool bound = false;     // ends with release_after; its out accesses are written after its body
  bool tied = false;
  int priority = 0;
  ChildWait wait = ChildWait::none;
  Block children;
  Promise<void> bound_event;
  Record record;
  Record expected;

  Node() = default;
  Node(Node&& other) noexcept { *this = std::move(other); }
  Node& operator=(Node&& other) noexcept {  // before it runs: the event has nothing to move
    id = other.id;
    name = std::move(other.name);
    accesses = std::move(other.accesses);
    after = std::move(other.after);
    gets = std::move(other.gets);
    yields = other.yields;
    suspends = other.suspends;
    foreign = other.foreign;
    bound = other.bound;
    tied = other.tied;
    priority = other.priority;
    wait = other.wait;
    children = std::move(other.children);
    return *this;
  }
};

// Not commutative: tells in which order values were mixed.
inline std::uint64_t mix(std::uint64_t value, std::uint64_t with) {
  std::uint64_t z = value * 0x9e3779b97f4a7c15u + with + 0x7f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// The observation of an access to several variables, one more after `seen`.
inline std::uint64_t seen_too(std::uint64_t seen, std::uint64_t value) {
  return value == 0 ? seen : mix(seen, value);
}

class Generator {
 public:
  explicit Generator(std::uint64_t seed, bool foreign) : random_(seed), foreign_(foreign) {
    for (int& weight : weights_) weight = pick(4);
    weights_[static_cast<int>(Kind::inout)] += 1;
  }

  [[nodiscard]] Block program() { return block(5 + pick(50), 0); }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  bool once_in(int times) { return pick(times) == 0; }

  Kind kind() {
    int total = 0;
    for (const int weight : weights_) total += weight;
    int at = pick(total);
    for (int k = 0; k < 5; ++k) {
      if (at < weights_[k]) return static_cast<Kind>(k);
      at -= weights_[k];
    }
    return Kind::inout;
  }

  Block block(int count, int depth) {
    Block made;
    made.ranges = once_in(2);
    made.values.assign(static_cast<std::size_t>(1 + pick(made.ranges ? 12 : 6)), 0);
    for (int i = 0; i < count; ++i) made.nodes.push_back(node(made, depth));
    return made;
  }

  Node node(const Block& siblings, int depth) {
    Node made;
    made.id = ++last_id_;
    made.name = "node " + std::to_string(made.id);
    add_accesses(made, siblings);
    const bool exclusive = std::ranges::any_of(
        made.accesses, [](const Access& access) { return access.kind == Kind::mutexinoutset; });
    const int before = static_cast<int>(siblings.nodes.size());
    if (before > 0 && once_in(5)) made.after.push_back(static_cast<std::size_t>(pick(before)));
    if (before > 0 && !exclusive && once_in(5)) {
      made.gets.push_back(static_cast<std::size_t>(pick(before)));
    }
    made.yields = once_in(2) ? pick(4) : 0;
    made.suspends = once_in(4);
    made.foreign = foreign_ && once_in(2);
    made.bound = once_in(8);
    made.tied = once_in(6);
    made.priority = once_in(3) ? pick(5) - 2 : 0;
    if (depth < 3 && once_in(7)) {
      made.wait = static_cast<ChildWait>(pick(4));
      made.children = block(1 + pick(8), depth + 1);
    }
    return made;
  }

  // Each variable once, so that the model knows what the task sees there.
  void add_accesses(Node& node, const Block& siblings) {
    std::vector<std::size_t> free(siblings.values.size());
    for (std::size_t i = 0; i < free.size(); ++i) free[i] = i;
    for (int count = pick(5); count > 0 && !free.empty(); --count) {
      const std::size_t at = static_cast<std::size_t>(pick(static_cast<int>(free.size())));
      Access access{free[at], kind(), once_in(6)};
      if (siblings.ranges && once_in(2)) {
        access.range = true;
        const auto most = static_cast<std::size_t>(1 + pick(5));
        while (access.count < most && at + access.count < free.size() &&
               free[at + access.count] == access.variable + access.count) {
          ++access.count;
        }
      }
      node.accesses.push_back(access);
      const auto first = free.begin() + static_cast<std::ptrdiff_t>(at);
      free.erase(first, first + static_cast<std::ptrdiff_t>(access.count));
    }
  }

  std::mt19937_64 random_;
  bool foreign_;
  std::uint64_t last_id_ = 0;
  int weights_[5];
};

// The result of a task, given the values that it saw.
inline std::uint64_t result_of(const Node& node, const Record& record,
                               const std::vector<std::uint64_t>& results) {
  std::uint64_t result = mix(node.id, 1);
  for (const std::uint64_t value : record.observed) result = mix(result, value);
  for (const std::size_t i : node.after) result = mix(result, results[i]);
  for (const std::size_t i : node.gets) result = mix(result, results[i]);
  return result;
}

// The sequential model: fills Node::expected everywhere and returns the last values of the block's
// variables. Effects inside a set commute, so program order stands for every order.
inline std::vector<std::uint64_t> run_in_program_order(Block& block) {
  std::vector<std::uint64_t> values(block.values.size(), 0);
  std::vector<std::uint64_t> results;
  for (Node& node : block.nodes) {
    for (const Access& access : node.accesses) {
      std::uint64_t seen = 0;
      for (std::size_t i = access.variable; i < access.variable + access.count; ++i) {
        std::uint64_t& value = values[i];
        std::uint64_t observed = 0;
        if (access.kind == Kind::in || access.kind == Kind::inout) observed = value;
        if (access.kind == Kind::inout) value = mix(value, node.id);
        if (access.kind == Kind::out) value = mix(0, node.id);
        if (access.kind == Kind::mutexinoutset || access.kind == Kind::inoutset) {
          value += mix(node.id, 2);
        }
        seen = seen_too(seen, observed);
      }
      node.expected.observed.push_back(seen);
    }
    node.expected.result = result_of(node, node.expected, results);
    results.push_back(node.expected.result);
  }
  return values;
}

}  // namespace imbrex::test
