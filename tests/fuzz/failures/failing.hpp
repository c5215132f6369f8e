// SPDX-License-Identifier: BSD-3-Clause
// Which tasks of a random program (program.hpp) throw, and what becomes of the others, by the rules
// of docs/design/errors.md: the sequential model of failure_fuzz.cpp. Knows nothing of the runtime.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "fuzz/program.hpp"

namespace imbrex::test {

// The numbers of the tasks that have thrown first, any of which may be named.
using Causes = std::set<std::uint64_t>;

enum class Throws { never, early, late };  // early: before its children and its release_after

// The data that this program adds to a Node, by its id.
struct Manner {
  Throws throws = Throws::never;
  bool after_failure = false;
  bool catches = false;        // what finish() and get() rethrow in its body
  bool taskwait_first = false;  // its parent waits for those before it
  int in_finish = 0;           // its parent spawns so many siblings, from this one on, in a finish
};

// The outcome of a task.
struct Fate {
  bool runs = false;
  Causes causes;  // why it has failed; none: it has not
  std::uint64_t result = 0;
};

inline constexpr std::uint64_t caught = 99;  // stands for the value of what has failed

struct FailingProgram {
  Block block;
  std::vector<Manner> manners;  // by Node::id
  std::vector<Fate> fates;      // the model's, by Node::id
  Causes failed;                // what the finish() around the program may rethrow; none: nothing
};

class FailingGenerator {
 public:
  explicit FailingGenerator(const std::uint64_t seed) : random_(seed * 2 + 1) {
    program_.block = Generator(seed, false).program();
    throwing_once_in_ = 2 + pick(12);
    draw(program_.block);
  }
  [[nodiscard]] FailingProgram take() { return std::move(program_); }

 private:
  int pick(const int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  bool once_in(const int times) { return pick(times) == 0; }

  void draw(const Block& block) {
    for (const Node& node : block.nodes) {
      program_.manners.resize(std::max(program_.manners.size(), node.id + 1));
      Manner manner;
      if (once_in(throwing_once_in_)) manner.throws = once_in(2) ? Throws::early : Throws::late;
      manner.after_failure = once_in(6);
      manner.catches = once_in(2);
      manner.taskwait_first = once_in(12);
      manner.in_finish = once_in(12) ? 1 + pick(6) : 0;
      program_.manners[node.id] = manner;
      draw(node.children);
    }
  }

  std::mt19937_64 random_;
  int throwing_once_in_ = 0;
  FailingProgram program_;
};

// The tasks of a block in program order.
class FailureModel {
 public:
  explicit FailureModel(FailingProgram& program) : program_(program) {
    program.fates.assign(program.manners.size(), {});
  }
  void run() { program_.failed = run_block(program_.block); }

  // The last values of the outermost variables.
  [[nodiscard]] const std::vector<std::uint64_t>& values() const { return values_; }

 private:
  struct Writer {
    int finish;     // in which of the parent's it was spawned; 0: in none
    Causes causes;  // if it has not written
  };
  // The state of a variable's address.
  struct Location {
    std::vector<Writer> set;  // the last writers
    std::vector<Writer> before;
    Kind kind = Kind::out;  // of `set`; `in`: no task may join it any more

    [[nodiscard]] static Causes marks(const std::vector<Writer>& writers) {
      Causes all;
      for (const Writer& writer : writers) all.insert(writer.causes.begin(), writer.causes.end());
      return all;
    }
    void forget(const int finish) {
      const auto is_its = [finish](const Writer& writer) { return writer.finish == finish; };
      std::erase_if(set, is_its);
      std::erase_if(before, is_its);
    }
  };
  struct Scene {
    Block& block;
    std::vector<std::uint64_t> values;
    std::vector<Location> locations;
    Causes failed;  // what an enclosing finish() is told
  };

  static bool is_set(const Kind kind) {
    return kind == Kind::mutexinoutset || kind == Kind::inoutset;
  }

  Causes run_block(Block& block) {
    Scene scene{block, std::vector<std::uint64_t>(block.values.size(), 0),
                std::vector<Location>(block.values.size()), {}};
    int finish = 0;
    std::size_t finish_end = 0;
    Causes in_finish;
    for (std::size_t index = 0; index <= block.nodes.size(); ++index) {
      if (finish_end != 0 && (index == finish_end || index == block.nodes.size())) {
        if (!in_finish.empty()) {
          for (Location& location : scene.locations) location.forget(finish);
        }
        finish_end = 0;
      }
      if (index == block.nodes.size()) break;
      Node& node = block.nodes[index];
      if (finish_end == 0 && manner_of(node).in_finish != 0) {
        ++finish;
        finish_end = index + static_cast<std::size_t>(manner_of(node).in_finish);
        in_finish.clear();
      }
      const bool outside = finish_end == 0;
      run_task(scene, node, outside ? 0 : finish, outside ? scene.failed : in_finish);
    }
    values_ = std::move(scene.values);
    return scene.failed;
  }

  // scope: is told what fails in it
  void run_task(Scene& scene, Node& node, const int finish, Causes& scope) {
    Fate& fate = program_.fates[node.id];
    const Causes inherited = inherit(scene, node);
    fate.runs = inherited.empty() || manner_of(node).after_failure;
    fate.causes = fate.runs ? body(scene, node, fate, scope) : inherited;
    mark(scene, node, fate, finish);
    scope.insert(fate.causes.begin(), fate.causes.end());
  }

  Causes inherit(Scene& scene, const Node& node) {
    Causes all;
    const auto add = [&all](const Causes& some) { all.insert(some.begin(), some.end()); };
    for (const std::size_t index : node.after) add(fate_of(scene, index).causes);
    for (const Access& access : node.accesses) {
      Location& location = scene.locations[access.variable];
      if (is_set(access.kind)) {
        if (location.kind != access.kind || location.set.empty()) {
          location.before = std::exchange(location.set, {});
          location.kind = access.kind;
        }
        add(Location::marks(location.before));
      } else if (access.kind != Kind::out) {
        add(Location::marks(location.set));
      }
      if (access.kind == Kind::in) location.kind = Kind::in;
    }
    return all;
  }

  static void mark(Scene& scene, const Node& node, const Fate& fate, const int finish) {
    for (const Access& access : node.accesses) {
      if (access.kind == Kind::in) continue;
      Location& location = scene.locations[access.variable];
      if (!is_set(access.kind)) {
        location.set.clear();
        location.before.clear();
        location.kind = access.kind;
      }
      const bool failed = !(fate.runs && access.early);
      location.set.push_back({finish, failed ? fate.causes : Causes{}});
    }
  }

  // Returns why it fails.
  Causes body(Scene& scene, Node& node, Fate& fate, Causes& scope) {
    const Manner& manner = manner_of(node);
    std::uint64_t result = mix(node.id, 1);
    for (const Access& access : node.accesses) {
      if (access.kind == Kind::out && node.bound && !access.early) continue;
      result = mix(result, use(node, access, scene.values[access.variable]));
    }
    if (manner.throws == Throws::early) return {node.id};
    if (Causes causes = run_children(node, scope); !causes.empty() && !manner.catches) {
      return causes;
    }
    for (const std::size_t index : node.after) result = mix(result, value_of(scene, index));
    for (const std::size_t index : node.gets) {
      const Fate& got = fate_of(scene, index);
      if (!got.causes.empty() && !manner.catches) return got.causes;
      result = mix(result, value_of(scene, index));
    }
    if (node.bound) write_late(scene, node);
    if (manner.throws == Throws::late) return {node.id};
    fate.result = result;
    return {};
  }

  // Returns what its wait may rethrow.
  Causes run_children(Node& node, Causes& scope) {
    const Causes failed = run_block(node.children);
    if (node.wait == ChildWait::finish) return failed;
    scope.insert(failed.begin(), failed.end());
    if (node.wait != ChildWait::futures) return {};
    for (const Node& child : node.children.nodes) {
      const Causes& causes = program_.fates[child.id].causes;
      if (!causes.empty()) return causes;
    }
    return {};
  }

  static std::uint64_t use(const Node& node, const Access& access, std::uint64_t& value) {
    const std::uint64_t before = value;
    if (access.kind == Kind::inout) value = mix(before, node.id);
    if (access.kind == Kind::out) value = mix(0, node.id);
    if (is_set(access.kind)) value += mix(node.id, 2);
    return access.kind == Kind::in || access.kind == Kind::inout ? before : 0;
  }

  static void write_late(Scene& scene, const Node& node) {
    for (const Access& access : node.accesses) {
      if (access.kind == Kind::out && !access.early) {
        scene.values[access.variable] = mix(0, node.id);
      }
    }
  }

  std::uint64_t value_of(const Scene& scene, const std::size_t index) const {
    const Fate& fate = fate_of(scene, index);
    return fate.causes.empty() ? fate.result : caught;
  }
  const Fate& fate_of(const Scene& scene, const std::size_t index) const {
    return program_.fates[scene.block.nodes[index].id];
  }
  const Manner& manner_of(const Node& node) const { return program_.manners[node.id]; }

  FailingProgram& program_;
  std::vector<std::uint64_t> values_;
};

}  // namespace imbrex::test
