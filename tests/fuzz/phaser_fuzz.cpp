// SPDX-License-Identifier: BSD-3-Clause
// phaser_fuzz [--seed N] [--count N] [--workers N] [--policy P] [--show 1]: runs random programs on
// phasers and accumulators, and compares them with the model; or shows the program of one seed.
//
// Methodology: a program is a tree of tasks, drawn from its seed. Its root makes phasers, some
// bounded, with an accumulator each of every kind; tasks register children with modes that they may
// hand on, before and after their signal, call next(), or signal() and later wait(), put and get,
// drop, throw, ask for passed(), and end at any step. Each waits on all its phasers at once, so
// every program ends (the progress theorem of phasers); one that does not is a failure by itself.
// In a third of the programs all tasks signal and wait, so that phases can end quickly; a half has
// no accumulators.
// The model maps each registered task to its phase (s, w) and mode, exactly as Chatterjee et al.
// define it. A task tells it of a signal, registration or drop before it does that, and of a wait
// after. Then
//   1. a task that returns from a wait of phase w must find all registered signallers with s > w,
//   2. get() must return the sum of all values that were put in the phase before,
//   3. passed(p) may be ready only if phase p is over,
//   4. in a bounded phaser no task may have signalled more than `ahead` phases beyond the slowest
//      task that waits.
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz/campaign.hpp"
#include "imbrex/accumulator.hpp"
#include "imbrex/imbrex.hpp"

namespace imbrex::test {
namespace {

// ---- the program -----------------------------------------------------------------------------

enum class Do : std::uint8_t { next, signal, wait, put, get, spawn, drop, yields, asks, throws };
constexpr const char* names[] = {"next", "signal", "wait",   "put",  "get",
                                 "spawn", "drop",  "yields", "asks", "throws"};

struct Node;
struct Step {
  Do what;
  int phaser = 0;             // put, get, drop, asks
  std::int64_t value = 0;     // put; asks: so many phases ahead
  std::unique_ptr<Node> child;
};
struct Node {
  int id = 0;
  std::map<int, PhaserMode> on;  // its phasers
  bool inherits = false;         // all of its parent's: .phased()
  std::vector<Step> steps;
};
struct Program {
  std::vector<std::uint32_t> ahead;  // of each phaser
  bool sums = true;                  // there are accumulators
  Node root;
  int tasks = 0;
};

class Draw {
 public:
  explicit Draw(const std::uint64_t seed) : random_(seed) {}

  std::unique_ptr<Program> program() {
    auto made = std::make_unique<Program>();
    program_ = made.get();
    plain_ = below(3) == 0;
    made->sums = below(2) == 0;
    // A bounded signal waits for one phaser alone: with several that may be a circle.
    const int phasers = below(4) == 0 ? 1 : 1 + below(3);
    for (int i = 0; i < phasers; ++i) {
      const bool bounded = phasers == 1 && !plain_ && below(2) == 0;
      made->ahead.push_back(bounded ? 1u + static_cast<unsigned>(below(3)) : 0);
      made->root.on[i] = !plain_ && below(3) == 0 ? single : signal_wait;
    }
    draw(made->root, 0);
    return made;
  }

 private:
  int below(const int most) { return static_cast<int>(random_() % static_cast<unsigned>(most)); }

  // Modes that a task of mode `mine` may hand on.
  PhaserMode weaker(const PhaserMode mine) {
    if (mine >= signal_only || plain_) return mine;
    const int first = static_cast<int>(mine);
    return static_cast<PhaserMode>(first + below(4 - first));
  }

  std::unique_ptr<Node> child_of(const std::map<int, PhaserMode>& held, const int depth) {
    auto child = std::make_unique<Node>();
    child->inherits = below(3) == 0;
    for (const auto& [phaser, mode] : held) {
      if (child->inherits) {
        child->on[phaser] = mode;
      } else if (below(4) != 0) {
        child->on[phaser] = weaker(mode);
      }
    }
    draw(*child, depth + 1);
    return child;
  }

  void draw(Node& node, const int depth) {
    node.id = program_->tasks++;
    std::map<int, PhaserMode> held = node.on;
    bool signalled = false;  // and not yet waited
    const int count = 2 + below(depth == 0 ? 14 : 10);
    for (int i = 0; i < count; ++i) {
      Step step{.what = static_cast<Do>(below(10)), .child = nullptr};
      if (step.what == Do::spawn) {
        if (depth == 3 || program_->tasks > 40) continue;
        step.child = child_of(held, depth);
      } else if (step.what == Do::throws) {
        if (below(8) != 0 || depth == 0) continue;
      } else if (step.what != Do::yields) {
        if (held.empty()) continue;
        step.phaser = std::next(held.begin(), below(static_cast<int>(held.size())))->first;
        step.value = 1 + below(1000);
        const PhaserMode mode = held[step.phaser];
        if (step.what == Do::put && mode == wait_only) continue;
        if (step.what == Do::get && mode == signal_only) continue;
        if (step.what == Do::drop && below(3) != 0) continue;
        if (step.what == Do::wait && !signalled) continue;
        // A task that runs ahead without a bound may not put so far ahead.
        if (step.what == Do::put && mode == signal_only && program_->ahead[step.phaser] == 0) {
          continue;
        }
      }
      if (step.what == Do::signal) signalled = true;
      if (step.what == Do::next || step.what == Do::wait) signalled = false;
      if (step.what == Do::drop) held.erase(step.phaser);
      if (step.what == Do::drop && held.empty()) signalled = false;
      const bool ends = step.what == Do::throws;
      node.steps.push_back(std::move(step));
      if (ends) return;
    }
  }

  std::mt19937_64 random_;
  Program* program_ = nullptr;
  bool plain_ = false;  // no modes but signal_wait
};

const char* text_of(const PhaserMode mode) {
  constexpr const char* texts[] = {"single", "signal_wait", "signal_only", "wait_only"};
  return texts[static_cast<int>(mode)];
}

void print(const Node& node, const int depth) {
  std::printf("%*stask %d:", depth * 2, "", node.id);
  for (const auto& [phaser, mode] : node.on) std::printf(" %d %s", phaser, text_of(mode));
  std::printf("\n");
  for (const Step& step : node.steps) {
    if (step.child != nullptr) {
      print(*step.child, depth + 1);
    } else {
      std::printf("%*s%s %d %lld\n", depth * 2 + 2, "", names[static_cast<int>(step.what)],
                  step.phaser, static_cast<long long>(step.value));
    }
  }
}

// ---- the model -------------------------------------------------------------------------------

// One phaser. Thread safety: any thread.
class Model {
 public:
  struct Member {
    std::uint64_t s = 0, w = 0;
    PhaserMode mode = signal_wait;
  };

  explicit Model(const std::uint32_t ahead) : ahead_(ahead) {}

  void open(const int task, const PhaserMode mode) {
    const std::lock_guard guard(mutex_);
    members_[task] = {0, 0, mode};
  }
  void add(const int parent, const int child, const PhaserMode mode) {
    const std::lock_guard guard(mutex_);
    const Member& from = members_.at(parent);
    members_[child] = {from.s, from.w, mode};
  }
  void drop(const int task) {
    const std::lock_guard guard(mutex_);
    members_.erase(task);
  }
  void signal(const int task) {
    const std::lock_guard guard(mutex_);
    Member& mine = members_.at(task);
    if (mine.mode == signal_only) {
      ++mine.s;
    } else if (mine.mode != wait_only) {
      mine.s = mine.w + 1;
    }
  }
  // After the real signal: false if it should have waited. Waits are told of late, so the slowest
  // may be one further than the model knows.
  [[nodiscard]] bool within_bounds(const int task) {
    const std::lock_guard guard(mutex_);
    if (ahead_ == 0 || members_.at(task).mode == wait_only) return true;
    for (const auto& [other, member] : members_) {
      if (member.mode != signal_only && members_.at(task).s > member.w + 1 + ahead_) return false;
    }
    return true;
  }
  // After the real wait: false if it came too early.
  [[nodiscard]] bool waited(const int task) {
    const std::lock_guard guard(mutex_);
    Member& mine = members_.at(task);
    if (mine.mode == signal_only) return true;
    ++mine.w;
    return over(mine.w - 1);
  }
  [[nodiscard]] bool is_over(const std::uint64_t phase) {
    const std::lock_guard guard(mutex_);
    return over(phase);
  }

  // Returns the phase in which the task puts.
  void put(const int task, const std::int64_t value) {
    const std::lock_guard guard(mutex_);
    sums_[members_.at(task).s] += value;
  }
  // The value that `task` must get; nothing if it cannot be known.
  [[nodiscard]] std::optional<std::int64_t> expected(const int task) {
    const std::lock_guard guard(mutex_);
    const Member& mine = members_.at(task);
    if (mine.w == 0) return 0;
    if (ahead_ == 0 && mine.mode == wait_only) return std::nullopt;  // it may be too late
    const bool anyone = std::ranges::any_of(members_, [](const auto& entry) {
      return entry.second.mode != wait_only;
    });
    if (!anyone) return std::nullopt;  // the last result, whichever that is
    const auto found = sums_.find(mine.w - 1);
    return found == sums_.end() ? 0 : found->second;
  }
  [[nodiscard]] std::uint64_t signals_of(const int task) {
    const std::lock_guard guard(mutex_);
    return members_.at(task).s;
  }

 private:
  [[nodiscard]] bool over(const std::uint64_t phase) const {
    return std::ranges::all_of(members_, [phase](const auto& entry) {
      return entry.second.mode == wait_only || entry.second.s > phase;
    });
  }

  std::mutex mutex_;
  const std::uint32_t ahead_;
  std::map<int, Member> members_;
  std::map<std::uint64_t, std::int64_t> sums_;  // of each phase
};

// ---- the run ---------------------------------------------------------------------------------

constexpr Accumulation ways[] = {Accumulation::lazy, Accumulation::shared,
                                 Accumulation::reproducible};

class Run {
 public:
  explicit Run(const Program& program) : program_(program) {}

  bool run() {
    try {
      finish([this] {
        for (std::size_t i = 0; i < program_.ahead.size(); ++i) open(static_cast<int>(i));
        body(program_.root, std::vector<Held>());
        for (const Held& held : held_by_root_) held.model->drop(program_.root.id);
      });
    } catch (const std::domain_error&) {  // of a task
    }
    return wrong_.empty();
  }
  [[nodiscard]] const std::string& wrong() const { return wrong_; }

 private:
  struct Held {
    int index;
    Phaser phaser;
    std::vector<Accumulator<std::int64_t>> sums;
    Model* model;
  };

  void open(const int index) {
    const std::uint32_t ahead = program_.ahead[static_cast<std::size_t>(index)];
    const PhaserMode mode = program_.root.on.at(index);
    Held held{index, Phaser(mode, {.ahead = ahead}), {}, nullptr};
    if (program_.sums) {
      for (const Accumulation how : ways) held.sums.emplace_back(held.phaser, op::sum, how);
    }
    models_.push_back(std::make_unique<Model>(ahead));
    held.model = models_.back().get();
    held.model->open(program_.root.id, mode);
    held_by_root_.push_back(std::move(held));
  }

  void fail(const Node& node, const char* what, const Held& held) {
    const std::lock_guard guard(mutex_);
    if (wrong_.empty()) {
      wrong_ = "task " + std::to_string(node.id) + " on phaser " + std::to_string(held.index) +
               ": " + what;
    }
  }

  void body(const Node& node, std::vector<Held> held) {
    if (node.id == program_.root.id) held = held_by_root_;
    struct End {  // before the task drops
      const Node& node;
      std::vector<Held>& held;
      ~End() {
        if (node.id == 0) return;
        for (const Held& one : held) one.model->drop(node.id);
      }
    } end{node, held};
    for (const Step& step : node.steps) run_step(node, step, held);
  }

  static Held* find(std::vector<Held>& held, const int index) {
    for (Held& one : held) {
      if (one.index == index) return &one;
    }
    return nullptr;
  }

  void run_step(const Node& node, const Step& step, std::vector<Held>& held) {
    Held* const one = find(held, step.phaser);
    switch (step.what) {
      case Do::next:
        signal_all(node, held);
        imbrex::Phaser::next_all();
        checks_after_signal(node, held);
        check_waits(node, held);
        return;
      case Do::signal:
        signal_all(node, held);
        imbrex::Phaser::signal_all();
        checks_after_signal(node, held);
        return;
      case Do::wait:
        signal_all(node, held, false);  // modes that only signal have nothing to wait for
        imbrex::Phaser::wait_all();
        check_waits(node, held);
        return;
      case Do::put:
        one->model->put(node.id, step.value);
        for (const Accumulator<std::int64_t>& each : one->sums) each.put(step.value);
        return;
      case Do::get: return check_get(node, *one);
      case Do::spawn: return spawn(node, *step.child, held);
      case Do::drop:
        one->model->drop(node.id);
        one->phaser.drop();
        std::erase_if(held, [&step](const Held& each) { return each.index == step.phaser; });
        return;
      case Do::yields: return yield();
      case Do::asks:
        return ask(*one, one->phaser.phase() + static_cast<std::uint64_t>(step.value) % 3);
      case Do::throws: throw std::domain_error("as it should");
    }
  }

  static void signal_all(const Node& node, std::vector<Held>& held, const bool signals = true) {
    if (!signals) return;
    for (const Held& one : held) one.model->signal(node.id);
  }
  void checks_after_signal(const Node& node, std::vector<Held>& held) {
    for (const Held& one : held) {
      if (!one.model->within_bounds(node.id)) fail(node, "too far ahead", one);
    }
  }
  void check_waits(const Node& node, std::vector<Held>& held) {
    for (const Held& one : held) {
      if (!one.model->waited(node.id)) fail(node, "its wait came back too early", one);
    }
  }
  void check_get(const Node& node, Held& one) {
    const std::optional<std::int64_t> expected = one.model->expected(node.id);
    for (const Accumulator<std::int64_t>& each : one.sums) {
      std::int64_t got = 0;
      try {
        got = each.get();
      } catch (const Error&) {
        if (expected) fail(node, "get() throws", one);
        continue;
      }
      if (expected && got != *expected && one.model->expected(node.id)) {
        fail(node, "a wrong sum", one);
      }
    }
  }

  // A task that is not registered waits for the phase.
  void ask(const Held& one, const std::uint64_t phase) {
    task("asks").in(one.phaser.passed(phase)).launch([this, model = one.model, phase] {
      if (model->is_over(phase)) return;
      const std::lock_guard guard(mutex_);
      wrong_ = "passed() was ready too early";
    });
  }

  void spawn(const Node& node, const Node& child, const std::vector<Held>& held) {
    std::vector<Held> handed;
    TaskBuilder builder = task("fuzz");
    if (child.inherits && !child.on.empty()) (void)builder.phased();
    for (const auto& [index, mode] : child.on) {
      for (const Held& one : held) {
        if (one.index != index) continue;
        one.model->add(node.id, child.id, mode);
        if (!child.inherits) (void)builder.phased(one.phaser, mode);
        handed.push_back(one);
      }
    }
    builder.launch([this, &child, handed] { body(child, handed); });
  }

  const Program& program_;
  std::vector<std::unique_ptr<Model>> models_;
  std::vector<Held> held_by_root_;
  std::mutex mutex_;
  std::string wrong_;
};

bool run_one(const std::uint64_t seed, const int workers, const std::string& policy) {
  const std::unique_ptr<Program> program = Draw(seed).program();
  std::printf("seed %llu, %d workers, %s: ", static_cast<unsigned long long>(seed), workers,
              policy.c_str());
  RuntimeOptions config;
  config.workers = workers;
  config.policy = policy == "seeded" ? "seeded:" + std::to_string(seed) : policy;
  const Runtime runtime(config);
  Run run(*program);
  const bool good = run.run();
  std::printf("%s%s\n", good ? "ok" : "WRONG: ", run.wrong().c_str());
  return good;
}

}  // namespace
}  // namespace imbrex::test

int main(int argc, char** argv) {
  using namespace imbrex::test;
  return run_campaign(argc, argv, run_one, [](Campaign& campaign) {
    print(Draw(campaign.seeds.first()).program()->root, 0);
  });
}
