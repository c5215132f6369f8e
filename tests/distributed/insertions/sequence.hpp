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
  bool loops = true;      // some parts of the sequence repeat, by iterate()
  std::size_t longest = 1500;  // elements of a datum
};

enum class What : std::uint8_t { task, reduce, flush, discard, move, finish, loop };
struct Operation {
  What what = What::task;
  std::vector<int> reads, writes, updates;
  int datum = -1;
  int on = -1;
  int priority = 0;
  bool throws = false;
  int throws_in = -1;  // the iteration; -1: in each

  // A loop: so many operations behind it are its body.
  std::size_t length = 0;
  int count = 0;
  int period = 1;
  int offset = -1;  // of an operation in a loop: its iteration in the period
  bool decides = false;
  int stops_in = -1;  // the iteration in which a task that decides ends the loop

  // Derived from the sequence.
  int executor = -1;  // of a task
  int runs = 0;       // how often its body does, there
  bool failed = false;  // of a task: the last time

  [[nodiscard]] bool is_task() const noexcept {
    return what == What::task || what == What::reduce;
  }
  [[nodiscard]] bool throws_at(const int iteration) const noexcept {
    return throws && (throws_in < 0 || throws_in == iteration);
  }
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
// The number of an operation in an iteration; 0 outside of loops.
[[nodiscard]] inline Word number_of(const std::size_t operation, const std::int64_t iteration)
    noexcept {
  return operation + static_cast<Word>(iteration) * 7919;
}
[[nodiscard]] inline Word added(const Word number, const std::size_t element) noexcept {
  return number * 1000003 + element;
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
    if (plan_.loops && draw(16) == 0) return add_loop();
    std::optional<Operation> made = choose(true);
    if (!made) return;
    apply(*made, made_.operations.size(), 0);
    made_.operations.push_back(*made);
  }

  // A loop that iterate() would refuse is left out: its second period runs elsewhere, or lacks a
  // value.
  void add_loop() {
    const auto models = made_.models;
    const auto thrown = thrown_;
    const std::size_t at = made_.operations.size();
    choose_body(at);
    made_.models = models;
    const bool right = made_.operations[at].length > 0 && repeats(at);
    made_.models = models;
    thrown_ = thrown;
    if (right) return run_loop(at);
    made_.operations.resize(at);
  }

  void choose_body(const std::size_t at) {
    Operation loop;
    loop.what = What::loop;
    loop.count = 1 + static_cast<int>(draw(7));
    loop.period = 1 + static_cast<int>(draw(3));
    const int period = std::min(loop.count, loop.period);
    const bool decides = draw(3) == 0;
    const std::vector<Model> before = made_.models;
    made_.operations.push_back(loop);
    for (int offset = 0; offset < period; ++offset) {
      for (unsigned left = 1 + draw(6); left > 0; --left) {
        std::optional<Operation> made = choose(false);
        if (!made) continue;
        made->offset = offset;
        if (draw(2) == 0) made->throws_in = static_cast<int>(draw(7));
        made->decides = decides && made->is_task() && draw(3) == 0;
        made->stops_in = offset + period * static_cast<int>(draw(7));
        apply(*made, made_.operations.size(), offset);
        made_.operations.push_back(*made);
      }
    }
    // What has moved goes back, in most cases.
    for (int datum = 0; datum < plan_.data; ++datum) {
      const int owner = before[static_cast<std::size_t>(datum)].owner;
      if (owner < 0 || model(datum).owner == owner || draw(8) == 0) continue;
      Operation back;
      back.what = What::move;
      back.datum = datum;
      back.on = owner;
      back.offset = period - 1;
      made_.operations.push_back(back);
    }
    made_.operations[at].length = made_.operations.size() - at - 1;
  }

  // Three periods run on the same ranks, and leave the same owners.
  [[nodiscard]] bool repeats(const std::size_t at) {
    const std::vector<Model> before = made_.models;
    const Operation loop = made_.operations[at];
    const int period = std::min(loop.count, loop.period);
    std::vector<int> owners;
    for (int i = 0; i < 3 * period; ++i) {
      if (!repeat(at, i, period)) return false;
      if (i % period != period - 1) continue;
      std::vector<int> now;
      for (const Model& one : made_.models) now.push_back(one.owner);
      if (i >= period && now != owners) return false;
      owners = now;
    }
    return std::ranges::none_of(made_.operations.begin() + static_cast<std::ptrdiff_t>(at),
                                made_.operations.end(), [&](const Operation& operation) {
      if (operation.what != What::move) return false;
      const auto datum = static_cast<std::size_t>(operation.datum);
      return before[datum].owner >= 0 && owners[datum] != before[datum].owner;
    });
  }

  // False if an operation of this iteration runs elsewhere than in the first period, or cannot run.
  [[nodiscard]] bool repeat(const std::size_t loop, const int iteration, const int period) {
    for (std::size_t i = loop + 1; i < made_.operations.size(); ++i) {
      Operation& operation = made_.operations[i];
      if (operation.offset != iteration % period) continue;
      for (const std::vector<int>* list : {&operation.reads, &operation.updates}) {
        for (const int datum : *list) {
          if (!model(datum).value) return false;
        }
      }
      const bool has_value = operation.datum >= 0 && model(operation.datum).value.has_value();
      if (operation.what == What::flush && !has_value) return false;
      Operation again = operation;
      apply(again, i, iteration);
      if (iteration < period) {
        operation = again;
      } else if (again.executor != operation.executor) {
        return false;
      }
    }
    return true;
  }

  void run_loop(const std::size_t at) {
    const Operation loop = made_.operations[at];
    const int period = std::min(loop.count, loop.period);
    for (std::size_t i = at + 1; i < made_.operations.size(); ++i) made_.operations[i].runs = 0;
    bool stops = false;
    for (int iteration = 0; iteration < loop.count && !stops; ++iteration) {
      for (std::size_t i = at + 1; i < made_.operations.size(); ++i) {
        Operation& operation = made_.operations[i];
        if (operation.offset != iteration % period) continue;
        apply(operation, i, iteration);
        stops = stops || (operation.decides &&
                          (operation.failed || operation.stops_in == iteration));
      }
    }
  }

  // A random operation; none: it is left out.
  [[nodiscard]] std::optional<Operation> choose(const bool outside) {
    Operation operation;
    const unsigned kind = draw(20);
    operation.datum = static_cast<int>(draw(static_cast<unsigned>(plan_.data)));
    if (plan_.moves && kind == 0) {
      operation.what = What::flush;
      if (!model(operation.datum).value) return std::nullopt;
    } else if (plan_.moves && kind == 1) {
      operation.what = What::move;
      operation.on = static_cast<int>(draw(ranks()));
    } else if (plan_.moves && kind == 2 && draw(outside ? 3 : 1) == 0) {
      operation.what = What::discard;
    } else if (plan_.moves && kind <= 6) {
      operation.what = What::reduce;
      operation.on = static_cast<int>(draw(ranks()));
    } else if (outside && kind == 7 && draw(4) == 0) {
      operation.what = What::finish;
    } else if (!choose_accesses(operation)) {
      return std::nullopt;
    }
    operation.throws = operation.is_task() && draw(1000) < plan_.failing;
    return operation;
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

  void apply(Operation& operation, const std::size_t index, const int iteration) {
    Model& one = model(operation.datum);
    switch (operation.what) {
      case What::task: return apply_task(operation, index, iteration);
      case What::reduce: return apply_reduction(operation, index, iteration);
      case What::discard:
        one.value.reset();
        one.causes.clear();
        if (one.temporary) one.owner = -1;
        return;
      case What::move: one.owner = operation.on; return;
      case What::flush: return;
      case What::finish: return finish();
      case What::loop: return;
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
  void apply_reduction(Operation& operation, const std::size_t index, const int iteration) {
    give_value(operation.datum);
    Model& one = model(operation.datum);
    if (one.temporary && one.owner < 0) one.owner = operation.on;
    operation.executor = operation.on;
    ++operation.runs;
    operation.failed = operation.throws_at(iteration);
    if (operation.failed) {
      one.causes.insert(static_cast<int>(index));
      fail(one.causes);
      return;
    }
    for (std::size_t i = 0; i < one.value->size(); ++i) {
      (*one.value)[i] += added(number_of(index, iteration), i);
    }
  }

  void apply_task(Operation& operation, const std::size_t index, const int iteration) {
    Word digest = number_of(index, iteration);
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
    if (causes.empty()) {
      ++operation.runs;
      if (operation.throws_at(iteration)) causes.insert(static_cast<int>(index));
    }
    operation.failed = !causes.empty();
    if (operation.failed) fail(causes);
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
