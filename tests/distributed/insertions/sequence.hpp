// SPDX-License-Identifier: BSD-3-Clause
// A random sequence of insertions into a space of data, and what it must leave: the sequential
// model of the fuzzers of data with owners. Knows neither a space nor a network.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <vector>

namespace imbrex::test {

using Word = std::uint64_t;

// The parameters of a run, equal on all ranks.
struct Plan {
  unsigned seed = 0;
  int ranks = 1;
  int data = 8;
  int operations = 200;
  bool trimmed = false;   // ranks leave out what does not concern them; only owners write
  bool moves = true;      // and reductions, discards, temporaries
  unsigned failing = 0;   // of 1000 tasks that throw
  std::size_t longest = 1500;  // elements of a datum
};

enum class What : std::uint8_t { task, reduce, flush, discard, move, finish };
struct Operation {
  What what = What::task;
  std::vector<int> reads, writes, updates;
  int datum = -1;
  int on = -1;
  int priority = 0;
  bool throws = false;

  // Derived from the sequence.
  int executor = -1;  // of a task
  bool runs = false;  // its body does, there
};

// The exceptions that finish() may throw: one of `causes`, the numbers of operations that have
// thrown.
struct Thrown {
  bool must = false;     // a task has failed since the last finish
  std::set<int> causes;  // also of what has failed before and is still not right
};

// A datum as the sequential program has it.
struct Model {
  int owner = -1;
  bool temporary = false;
  std::optional<std::vector<Word>> value;
  std::set<int> causes;  // of its failure; none: it is right
};

struct Sequence {
  std::vector<std::size_t> counts;
  std::vector<int> owners;
  std::vector<bool> in_program;  // memory of the program's, with gaps
  std::vector<Operation> operations;
  std::vector<Thrown> finishes;  // in their order, and last the one behind all
  std::vector<Model> models;     // after all
};

[[nodiscard]] inline Word mixed(const Word a, const Word b) noexcept {
  return (a ^ (b + 0x9e3779b97f4a7c15u + (a << 6))) * 0xff51afd7ed558ccdu;
}
[[nodiscard]] inline Word digest_of(const std::vector<Word>& value) {
  Word digest = value.size();
  for (const Word word : value) digest = mixed(digest, word);
  return digest;
}
inline void leave(std::vector<Word>& value, const Word digest) {
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = mixed(digest, i);
}
[[nodiscard]] inline Word added(const std::size_t operation, const std::size_t element) noexcept {
  return operation * 1000003 + element;
}

class Maker {
 public:
  explicit Maker(const Plan& plan) : plan_(plan), random_(plan.seed) {}

  [[nodiscard]] Sequence make() {
    for (int i = 0; i < plan_.data; ++i) {
      const bool temporary = plan_.moves && !plan_.trimmed && draw(6) == 0;
      const std::array<std::size_t, 5> counts{0, 1, 7, 100, plan_.longest};
      made_.counts.push_back(counts[draw(counts.size())]);
      made_.owners.push_back(temporary ? -1 : static_cast<int>(draw(ranks())));
      made_.in_program.push_back(!temporary && draw(2) == 0);
      Model model{made_.owners.back(), temporary, std::nullopt, {}};
      if (!temporary) model.value.emplace(made_.counts.back());
      made_.models.push_back(model);
    }
    while (made_.operations.size() < static_cast<std::size_t>(plan_.operations)) add();
    finish();
    return made_;
  }

 private:
  [[nodiscard]] unsigned draw(const std::size_t below) {
    return static_cast<unsigned>(random_() % below);
  }
  [[nodiscard]] unsigned ranks() const { return static_cast<unsigned>(plan_.ranks); }
  [[nodiscard]] Model& model(const int datum) {
    return made_.models[static_cast<std::size_t>(datum)];
  }
  // A value, if it has none.
  void give_value(const int datum) {
    Model& one = model(datum);
    if (!one.value) one.value.emplace(made_.counts[static_cast<std::size_t>(datum)]);
  }

  void add() {
    Operation operation;
    const unsigned kind = draw(20);
    operation.datum = static_cast<int>(draw(static_cast<unsigned>(plan_.data)));
    if (plan_.moves && kind == 0) {
      operation.what = What::flush;
      if (!model(operation.datum).value) return;
    } else if (plan_.moves && kind == 1) {
      operation.what = What::move;
      operation.on = static_cast<int>(draw(ranks()));
    } else if (plan_.moves && kind == 2 && draw(3) == 0) {
      operation.what = What::discard;
    } else if (plan_.moves && kind <= 6) {
      operation.what = What::reduce;
      operation.on = static_cast<int>(draw(ranks()));
    } else if (kind == 7 && draw(4) == 0) {
      operation.what = What::finish;
    } else if (!choose_accesses(operation)) {
      return;
    }
    const bool is_task = operation.what == What::task || operation.what == What::reduce;
    operation.throws = is_task && draw(1000) < plan_.failing;
    apply(operation);
    made_.operations.push_back(operation);
  }

  [[nodiscard]] bool choose_accesses(Operation& operation) {
    std::vector<int> left(static_cast<std::size_t>(plan_.data));
    for (int i = 0; i < plan_.data; ++i) left[static_cast<std::size_t>(i)] = i;
    std::ranges::shuffle(left, random_);
    const auto take = [&](const unsigned most, const bool needs_value, std::vector<int>& into) {
      for (unsigned count = draw(most + 1); count > 0 && !left.empty(); --count) {
        const int datum = left.back();
        left.pop_back();
        if (!needs_value || model(datum).value) into.push_back(datum);
      }
    };
    take(3, true, operation.reads);
    take(2, true, operation.updates);
    take(1, false, operation.writes);
    operation.priority = static_cast<int>(draw(3));
    int executor = -1;
    bool one_owner = true;
    for (const std::vector<int>* list : {&operation.writes, &operation.updates}) {
      for (const int datum : *list) {
        if (executor < 0) executor = model(datum).owner;
        one_owner = one_owner && model(datum).owner == executor;
      }
    }
    if (plan_.trimmed) return executor >= 0 && one_owner;  // owners write
    if (executor < 0 || draw(5) == 0) operation.on = static_cast<int>(draw(ranks()));
    return true;
  }

  void apply(Operation& operation) {
    const auto index = made_.operations.size();
    Model& one = model(operation.datum);
    switch (operation.what) {
      case What::task: return apply_task(operation, index);
      case What::reduce: return apply_reduction(operation, index);
      case What::discard:
        one.value.reset();
        one.causes.clear();
        if (one.temporary) one.owner = -1;
        return;
      case What::move: one.owner = operation.on; return;
      case What::flush: return;
      case What::finish: return finish();
    }
  }

  void finish() {
    made_.finishes.push_back(thrown_);
    thrown_ = {};
    for (const Model& one : made_.models) {
      thrown_.causes.insert(one.causes.begin(), one.causes.end());
    }
  }

  void fail(const std::set<int>& causes) {
    thrown_.must = true;
    thrown_.causes.insert(causes.begin(), causes.end());
  }

  // Adds elements of its own, whatever has failed before it.
  void apply_reduction(Operation& operation, const std::size_t index) {
    give_value(operation.datum);
    Model& one = model(operation.datum);
    if (one.temporary && one.owner < 0) one.owner = operation.on;
    operation.executor = operation.on;
    operation.runs = true;
    if (operation.throws) {
      one.causes.insert(static_cast<int>(index));
      fail(one.causes);
      return;
    }
    for (std::size_t i = 0; i < one.value->size(); ++i) (*one.value)[i] += added(index, i);
  }

  void apply_task(Operation& operation, const std::size_t index) {
    Word digest = index;
    std::set<int> causes;
    int executor = operation.on;
    for (const std::vector<int>* list : {&operation.reads, &operation.updates}) {
      for (const int datum : *list) {
        digest = mixed(digest, digest_of(*model(datum).value));
        causes.insert(model(datum).causes.begin(), model(datum).causes.end());
      }
    }
    for (const std::vector<int>* list : {&operation.updates, &operation.writes}) {
      for (const int datum : *list) {
        if (executor < 0) executor = model(datum).owner;
      }
    }
    operation.executor = executor;
    operation.runs = causes.empty();
    if (operation.runs && operation.throws) causes.insert(static_cast<int>(index));
    if (!causes.empty()) fail(causes);
    for (const std::vector<int>* list : {&operation.updates, &operation.writes}) {
      for (const int datum : *list) {
        give_value(datum);
        Model& one = model(datum);
        leave(*one.value, digest);
        one.causes = causes;
        if (one.owner < 0) one.owner = executor;
      }
    }
  }

  const Plan plan_;
  std::mt19937 random_;
  Thrown thrown_;
  Sequence made_;
};

}  // namespace imbrex::test
