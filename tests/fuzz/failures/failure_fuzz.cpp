// SPDX-License-Identifier: BSD-3-Clause
// failure_fuzz [--seed N] [--count N] [--workers N] [--policy P] [--show 1]: runs random programs
// some of whose tasks throw, and compares which tasks run, which fail, and why, with a model.
//
// Methodology: the programs are depend_fuzz's; beside that tasks throw, before or after they have
// children, results of others and release_after; clean up after failures; catch or pass on what
// their waits rethrow; and parents spawn some of their children in a finish(), whose exception they
// catch, and wait for others in between. The outcome of each task must be the model's
// (failing.hpp), under every policy and timing. When a task is over that the model lets
// fail with several causes, any of them may be named.
#include <atomic>
#include <cstdio>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/campaign.hpp"
#include "fuzz/failures/failing.hpp"

namespace imbrex::test {
namespace {

struct Thrown : std::exception {
  explicit Thrown(std::uint64_t by) : id(by) {}
  std::uint64_t id;
};

// Returns the task that has thrown first.
std::uint64_t origin_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Thrown& thrown) {
    return thrown.id;
  } catch (const DependencyFailed& failed) {
    return origin_of(failed.cause());
  } catch (...) {
    return 0;
  }
}

using Value = Future<std::uint64_t>;

// One run of one program.
class FailingRun {
 public:
  explicit FailingRun(FailingProgram& program)
      : program_(program), ran_(program.manners.size()), futures_(program.manners.size()) {}

  // Returns true if everything is as the model says.
  [[nodiscard]] bool run() {
    std::exception_ptr error;
    try {
      finish([this] { (void)spawn_all(program_.block); });
    } catch (...) {
      error = std::current_exception();
    }
    check_thrown("the finish() around the program", error, program_.failed);
    if (strangers_.load() != 0) complain("a finish() has thrown what no task has");
    for (std::uint64_t id = 1; id < futures_.size(); ++id) check_task(id);
    return good_;
  }

 private:
  std::vector<Value> spawn_all(Block& block) {
    std::vector<Value> futures;
    for (std::size_t index = 0; index < block.nodes.size();) {
      const auto length = static_cast<std::size_t>(manner_of(block.nodes[index]).in_finish);
      if (length == 0) {
        spawn(block, index++, futures);
        continue;
      }
      const std::size_t end = std::min(block.nodes.size(), index + length);
      try {
        finish([&] {
          while (index < end) spawn(block, index++, futures);
        });
      } catch (...) {
        if (origin_of(std::current_exception()) == 0) strangers_.fetch_add(1);
      }
    }
    return futures;
  }

  void spawn(Block& block, const std::size_t index, std::vector<Value>& futures) {
    Node& node = block.nodes[index];
    if (manner_of(node).taskwait_first) taskwait();
    TaskBuilder builder = task(node.name.c_str());
    (void)builder.priority(node.priority);
    if (node.tied) (void)builder.tied();
    if (manner_of(node).after_failure) (void)builder.run_after_failure();
    for (const Access& access : node.accesses) {
      declare(builder, access.kind, block.values[access.variable]);
    }
    std::vector<Value> after;
    std::vector<Value> gets;
    for (const std::size_t i : node.after) {
      (void)builder.in(futures[i]);
      after.push_back(futures[i]);
    }
    for (const std::size_t i : node.gets) gets.push_back(futures[i]);
    futures.push_back(builder.spawn(
        [this, &node, &block, after, gets] { return body(node, block, after, gets); }));
    const std::lock_guard lock(mutex_);
    futures_[node.id] = futures.back();
  }

  static void declare(TaskBuilder& builder, const Kind kind, std::uint64_t& variable) {
    switch (kind) {
      case Kind::in: (void)builder.in(variable); return;
      case Kind::out: (void)builder.out(variable); return;
      case Kind::inout: (void)builder.inout(variable); return;
      case Kind::mutexinoutset: (void)builder.mutexinoutset(variable); return;
      case Kind::inoutset: (void)builder.inoutset(variable); return;
    }
  }

  std::uint64_t body(Node& node, Block& block, const std::vector<Value>& after,
                     const std::vector<Value>& gets) {
    const Manner& manner = manner_of(node);
    ran_[node.id].store(true);
    std::uint64_t result = mix(node.id, 1);
    for (const Access& access : node.accesses) {
      if (access.kind == Kind::out && node.bound && !access.early) continue;
      result = mix(result, use(node, access, block.values[access.variable]));
    }
    for (const Access& access : node.accesses) {
      if (access.early) release(block.values[access.variable]);
    }
    for (int i = 0; i < node.yields; ++i) yield();
    if (manner.throws == Throws::early) throw Thrown(node.id);
    if (node.suspends) suspend(node);
    unless_caught(manner, [&] { run_children(node); });
    for (const Value& future : after) {  // it may be there to clean up after them
      result = mix(result, get_or_caught(future));
    }
    for (const Value& future : gets) {
      result = mix(result, manner.catches ? get_or_caught(future) : future.get());
    }
    if (node.bound) bind(node, block);
    if (manner.throws == Throws::late) throw Thrown(node.id);
    return result;
  }

  static std::uint64_t use(const Node& node, const Access& access, std::uint64_t& variable) {
    const std::uint64_t before =
        access.kind == Kind::inoutset || access.kind == Kind::out ? 0 : variable;
    if (access.kind != Kind::inoutset && node.yields > 1) yield();
    switch (access.kind) {
      case Kind::in: return before;
      case Kind::out: variable = mix(0, node.id); return 0;
      case Kind::inout: variable = mix(before, node.id); return before;
      case Kind::mutexinoutset: variable = before + mix(node.id, 2); return 0;
      case Kind::inoutset:
        std::atomic_ref(variable).fetch_add(mix(node.id, 2), std::memory_order_relaxed);
        return 0;
    }
    return 0;
  }

  static void suspend(const Node& node) {
    Promise<void> event;
    task("firer").priority(node.priority - 1).launch([&event] {
      yield();
      event.set();
    });
    event.future().get();
  }

  template <class F>
  static void unless_caught(const Manner& manner, F call) {
    try {
      call();
    } catch (...) {
      if (!manner.catches) throw;
    }
  }
  static std::uint64_t get_or_caught(const Value& future) {
    try {
      return future.get();
    } catch (...) {
      return caught;
    }
  }

  void run_children(Node& node) {
    switch (node.wait) {
      case ChildWait::none: (void)spawn_all(node.children); return;
      case ChildWait::taskwait:
        (void)spawn_all(node.children);
        taskwait();
        return;
      case ChildWait::finish: finish([&] { (void)spawn_all(node.children); }); return;
      case ChildWait::futures:
        for (const Value& future : spawn_all(node.children)) (void)future.get();
        return;
    }
  }

  static void bind(Node& node, Block& block) {
    release_after(node.bound_event.future());
    task("bound").launch([&node, &block] {
      yield();
      for (const Access& access : node.accesses) {
        if (access.kind == Kind::out && !access.early) {
          block.values[access.variable] = mix(0, node.id);
        }
      }
      node.bound_event.set();
    });
  }

  // ---- checks ----------------------------------------------------------------------------------

  void check_task(const std::uint64_t id) {
    const Fate& fate = program_.fates[id];
    const std::string name = "task " + std::to_string(id);
    if (!futures_[id].has_value()) {
      // Its parent has not run, or has thrown before.
      if (fate.runs || !fate.causes.empty()) complain(name + " was not spawned");
      return;
    }
    if (ran_[id].load() != fate.runs) {
      complain(name + (fate.runs ? " should have run" : " should not have run"));
    }
    std::exception_ptr error;
    try {
      if (futures_[id]->get() != fate.result) complain(name + " has a wrong result");
    } catch (...) {
      error = std::current_exception();
    }
    check_thrown(name, error, fate.causes);
  }

  void check_thrown(const std::string& who, const std::exception_ptr& error, const Causes& causes) {
    if (error == nullptr && causes.empty()) return;
    if (error == nullptr) return complain(who + " should have failed");
    const std::uint64_t origin = origin_of(error);
    if (causes.contains(origin)) return;
    complain(who + (causes.empty() ? " should not have failed" : " names a wrong cause") + ": " +
             std::to_string(origin));
  }

  void complain(const std::string& text) {
    std::printf("FAILS: %s\n", text.c_str());
    good_ = false;
  }

  const Manner& manner_of(const Node& node) const { return program_.manners[node.id]; }

  FailingProgram& program_;
  std::vector<std::atomic<bool>> ran_;  // by Node::id; any task
  std::mutex mutex_;                    // guards futures_
  std::vector<std::optional<Value>> futures_;  // by Node::id
  std::atomic<int> strangers_ = 0;      // exceptions that no task of the program has thrown; any
  bool good_ = true;
};

void show(const FailingProgram& program, const Block& block, const int depth) {
  constexpr const char* kinds[] = {"in", "out", "inout", "mutexinoutset", "inoutset"};
  constexpr const char* throws[] = {"", " throws early", " throws late"};
  for (const Node& node : block.nodes) {
    const Manner& manner = program.manners[node.id];
    const Fate& fate = program.fates[node.id];
    if (manner.taskwait_first) std::printf("%*staskwait\n", 2 * depth, "");
    if (manner.in_finish != 0) std::printf("%*sfinish of %d\n", 2 * depth, "", manner.in_finish);
    std::printf("%*s%s:", 2 * depth, "", node.name.c_str());
    for (const Access& access : node.accesses) {
      std::printf(" %s(%zu)%s", kinds[static_cast<int>(access.kind)], access.variable,
                  access.early ? " early" : "");
    }
    for (const std::size_t i : node.after) std::printf(" after %s", block.nodes[i].name.c_str());
    for (const std::size_t i : node.gets) std::printf(" gets %s", block.nodes[i].name.c_str());
    std::printf("%s%s%s%s: %s%s\n", throws[static_cast<int>(manner.throws)],
                manner.after_failure ? " after_failure" : "", manner.catches ? " catches" : "",
                node.bound ? " bound" : "", fate.runs ? "runs" : "does not run",
                fate.causes.empty() ? "" : " and fails");
    show(program, node.children, depth + 1);
  }
}

bool run_seed(const std::uint64_t seed, const int workers, const std::string& policy) {
  std::printf("--seed %llu --count 1 --workers %d --policy %s\n",
              static_cast<unsigned long long>(seed), workers, policy.c_str());
  FailingProgram program = FailingGenerator(seed).take();
  FailureModel model(program);
  model.run();
  constexpr int windows[] = {-1, 0, 1, 4};
  RuntimeOptions config;
  config.workers = workers;
  config.policy = policy == "seeded" ? "seeded:" + std::to_string(seed) : policy;
  config.tasks_ahead = windows[seed % 4];
  const Runtime runtime(config);
  FailingRun run(program);
  bool good = run.run();
  for (std::size_t i = 0; i < model.values().size(); ++i) {
    if (program.block.values[i] == model.values()[i]) continue;
    std::printf("FAILS: wrong value left in variable %zu\n", i);
    good = false;
  }
  return good;
}

}  // namespace
}  // namespace imbrex::test

int main(int argc, char** argv) {
  using namespace imbrex::test;
  return run_campaign(argc, argv, run_seed, [](Campaign& campaign) {
    FailingProgram program = FailingGenerator(campaign.seeds.first()).take();
    FailureModel(program).run();
    show(program, program.block, 0);
  });
}
