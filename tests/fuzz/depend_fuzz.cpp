// SPDX-License-Identifier: BSD-3-Clause
// depend_fuzz [--seed N] [--count N] [--workers N] [--policy P] [--show 1]: runs random programs of
// tasks and compares them with a sequential model; or shows the program of one seed.
//
// Methodology: a program is drawn from its seed (program.hpp): accesses of all kinds, to objects
// and, in half of the scopes, to ranges that overlap them and each other; nested tasks,
// early release, release_after, futures as dependencies, tasks that yield and wait for events. Each
// task notes when its accesses began and ended, and changes the variables that it names; only those
// of an inoutset atomically, so that ThreadSanitizer sees an order that is missing. Then
//   1. each pair of siblings that conflict must have run in program order,
//   2. two of a mutexinoutset must not have overlapped,
//   3. what was read, what was returned and what is left must equal the sequential program's,
//   4. a seeded policy, given the same seed twice, must have started the tasks in the same order.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "fuzz/campaign.hpp"
#include "fuzz/foreign_thread.hpp"
#include "fuzz/program.hpp"
#include "imbrex/detail/plug_ins.hpp"

namespace imbrex::test {
namespace {

// One run of one program.
class Run {
 public:
  explicit Run(Block& program, bool foreign) : program_(program) {
    if (foreign) foreign_ = std::make_unique<ForeignThread>();
  }

  void run() {
    finish([this] { (void)spawn_all(program_); });
  }

 private:
  std::uint64_t stamp() { return ++clock_; }

  std::vector<Future<std::uint64_t>> spawn_all(Block& block) {
    std::vector<Future<std::uint64_t>> futures;
    for (Node& node : block.nodes) {
      TaskBuilder builder = task(node.name.c_str());
      (void)builder.priority(node.priority);
      if (node.tied) (void)builder.tied();
      for (const Access& access : node.accesses) {
        std::uint64_t& first = block.values[access.variable];
        if (access.range) {
          declare(builder, access.kind, range(&first, access.count));
        } else {
          declare(builder, access.kind, first);
        }
      }
      for (const std::size_t i : node.after) (void)builder.in(futures[i]);
      // A task reads the results of siblings through futures of its own.
      std::vector<Future<std::uint64_t>> after;
      for (const std::size_t i : node.after) after.push_back(futures[i]);
      std::vector<Future<std::uint64_t>> gets;
      for (const std::size_t i : node.gets) gets.push_back(futures[i]);
      futures.push_back(builder.spawn([this, &node, &block, after, gets] {
        return body(node, block, after, gets);
      }));
    }
    return futures;
  }

  template <class Object>
  static void declare(TaskBuilder& builder, Kind kind, Object&& object) {
    switch (kind) {
      case Kind::in: (void)builder.in(std::forward<Object>(object)); return;
      case Kind::out: (void)builder.out(std::forward<Object>(object)); return;
      case Kind::inout: (void)builder.inout(std::forward<Object>(object)); return;
      case Kind::mutexinoutset:
        (void)builder.mutexinoutset(std::forward<Object>(object));
        return;
      case Kind::inoutset: (void)builder.inoutset(std::forward<Object>(object)); return;
    }
  }

  std::uint64_t body(Node& node, Block& block, const std::vector<Future<std::uint64_t>>& after,
                     const std::vector<Future<std::uint64_t>>& gets) {
    Record& record = node.record;
    record.start = stamp();
    if (node.priority > 0) detail::about_to_send();
    record.access_end.assign(node.accesses.size(), 0);
    for (const Access& access : node.accesses) {
      std::uint64_t seen = 0;
      for (std::size_t i = access.variable; i < access.variable + access.count; ++i) {
        seen = seen_too(seen, use(node, access, block.values[i]));
      }
      record.observed.push_back(seen);
    }
    release_early(node, block);
    for (int i = 0; i < node.yields; ++i) yield();
    run_children(node);
    if (node.suspends) suspend(node);
    std::uint64_t result = mix(node.id, 1);
    for (const std::uint64_t value : record.observed) result = mix(result, value);
    for (const Future<std::uint64_t>& future : after) result = mix(result, ready_value(future));
    for (const Future<std::uint64_t>& future : gets) result = mix(result, future.get());
    if (node.bound) bind(node, block);
    record.result = result;
    record.body_end = stamp();
    return result;
  }

  std::uint64_t ready_value(const Future<std::uint64_t>& future) {
    if (!future.ready()) ++failures_;  // it was a dependency
    return future.get();
  }

  static std::uint64_t use(const Node& node, const Access& access, std::uint64_t& variable) {
    switch (access.kind) {
      case Kind::in: return variable;
      case Kind::out:
        if (!node.bound || access.early) variable = mix(0, node.id);
        return 0;
      case Kind::inout: {
        const std::uint64_t before = variable;
        if (node.yields > 1) yield();
        variable = mix(before, node.id);
        return before;
      }
      case Kind::mutexinoutset: {
        const std::uint64_t before = variable;
        if (node.yields > 0) yield();
        variable = before + mix(node.id, 2);
        return 0;
      }
      case Kind::inoutset:
        std::atomic_ref(variable).fetch_add(mix(node.id, 2), std::memory_order_relaxed);
        return 0;
    }
    return 0;
  }

  void release_early(Node& node, Block& block) {
    for (std::size_t i = 0; i < node.accesses.size(); ++i) {
      if (!node.accesses[i].early) continue;
      node.record.access_end[i] = stamp();
      std::uint64_t& first = block.values[node.accesses[i].variable];
      if (node.accesses[i].range) {
        release(range(&first, node.accesses[i].count));
      } else {
        release(first);
      }
    }
  }

  void run_children(Node& node) {
    Block& children = node.children;
    switch (node.wait) {
      case ChildWait::none: (void)spawn_all(children); return;
      case ChildWait::taskwait:
        (void)spawn_all(children);
        taskwait();
        check_children_ended(children);
        return;
      case ChildWait::finish:
        finish([&] { (void)spawn_all(children); });
        check_children_ended(children);
        return;
      case ChildWait::futures:
        for (const Future<std::uint64_t>& future : spawn_all(children)) (void)future.get();
        check_children_ended(children);
        return;
    }
  }

  void check_children_ended(const Block& children) {
    for (const Node& child : children.nodes) {
      if (child.record.body_end == 0) ++failures_;
      if (child.bound && child.record.bound_end == 0) ++failures_;
    }
  }

  void suspend(const Node& node) {
    wait_for_event(node.foreign ? foreign_.get() : nullptr, node.priority);
  }

  // Acts as MPI would on a buffer after its task has ended: `out` is written late.
  void bind(Node& node, Block& block) {
    release_after(node.bound_event.future());
    task("bound").launch([this, &node, &block] {
      yield();
      for (const Access& access : node.accesses) {
        if (access.kind != Kind::out || access.early) continue;
        std::fill_n(&block.values[access.variable], access.count, mix(0, node.id));
      }
      node.record.bound_end = stamp();
      node.bound_event.set();
    });
  }

 public:
  [[nodiscard]] int failures() const { return failures_.load(); }

 private:
  Block& program_;
  std::unique_ptr<ForeignThread> foreign_;
  std::atomic<std::uint64_t> clock_ = 0;  // any thread; seq_cst: its order is the order of the run
  std::atomic<int> failures_ = 0;
};

// ---- checks ------------------------------------------------------------------------------------

bool complain(const char* what, const Node& one, const Node& two, std::size_t variable) {
  std::printf("FAILS: %s: tasks %llu and %llu, variable %zu\n", what,
              static_cast<unsigned long long>(one.id), static_cast<unsigned long long>(two.id),
              variable);
  return false;
}

std::uint64_t end_of(const Node& node) {
  return std::max(node.record.body_end, node.record.bound_end);
}
std::uint64_t end_of(const Node& node, std::size_t access) {
  return node.accesses[access].early ? node.record.access_end[access] : end_of(node);
}

bool check_pair(const Node& one, std::size_t a, const Node& two, std::size_t b) {
  const Kind first = one.accesses[a].kind;
  const Kind second = two.accesses[b].kind;
  if (first == second && (first == Kind::in || first == Kind::inoutset)) return true;
  const bool in_order = end_of(one, a) < two.record.start;
  if (first == second && first == Kind::mutexinoutset) {
    if (in_order || end_of(two, b) < one.record.start) return true;
    return complain("two of a mutexinoutset overlap", one, two, one.accesses[a].variable);
  }
  return in_order || complain("not in program order", one, two, one.accesses[a].variable);
}

bool check_order(const std::vector<Node>& nodes) {
  bool good = true;
  for (std::size_t j = 0; j < nodes.size(); ++j) {
    const Node& two = nodes[j];
    for (const std::size_t i : two.after) {
      if (end_of(nodes[i]) >= two.record.start) {
        good = complain("started before its future was ready", nodes[i], two, 0);
      }
    }
    for (std::size_t i = 0; i < j; ++i) {
      for (std::size_t a = 0; a < nodes[i].accesses.size(); ++a) {
        for (std::size_t b = 0; b < two.accesses.size(); ++b) {
          if (!overlap(nodes[i].accesses[a], two.accesses[b])) continue;
          good = check_pair(nodes[i], a, two, b) && good;
        }
      }
    }
  }
  return good;
}

bool check_values(const Block& block, const std::vector<std::uint64_t>& expected) {
  bool good = true;
  for (const Node& node : block.nodes) {
    if (node.record.start == 0) good = complain("never ran", node, node, 0);
    if (node.record.result != node.expected.result) good = complain("wrong result", node, node, 0);
    for (std::size_t i = 0; i < node.record.observed.size(); ++i) {
      if (node.record.observed[i] != node.expected.observed[i]) {
        good = complain("wrong value read", node, node, node.accesses[i].variable);
      }
    }
  }
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (block.values[i] != expected[i]) {
      std::printf("FAILS: wrong value left in variable %zu\n", i);
      good = false;
    }
  }
  return good;
}

bool check(Block& block) {
  const std::vector<std::uint64_t> expected = run_in_program_order(block);
  bool good = check_order(block.nodes) && check_values(block, expected);
  for (Node& node : block.nodes) {
    if (!node.children.nodes.empty()) good = check(node.children) && good;
  }
  return good;
}

void collect_starts(const Block& block, std::vector<std::pair<std::uint64_t, std::uint64_t>>& all) {
  for (const Node& node : block.nodes) {
    all.emplace_back(node.record.start, node.id);
    collect_starts(node.children, all);
  }
}

// Prints the program of one seed, as far as it concerns the order.
void show(const Block& block, int depth) {
  constexpr const char* kinds[] = {"in", "out", "inout", "mutexinoutset", "inoutset"};
  for (const Node& node : block.nodes) {
    std::printf("%*s%s:", 2 * depth, "", node.name.c_str());
    for (const Access& access : node.accesses) {
      std::printf(" %s(%zu", kinds[static_cast<int>(access.kind)], access.variable);
      if (access.range) std::printf(" to %zu", access.variable + access.count - 1);
      std::printf(")%s", access.early ? " early" : "");
    }
    for (const std::size_t i : node.after) std::printf(" after %s", block.nodes[i].name.c_str());
    for (const std::size_t i : node.gets) std::printf(" gets %s", block.nodes[i].name.c_str());
    std::printf("%s%s%s\n", node.suspends ? " suspends" : "", node.bound ? " bound" : "",
                node.tied ? " tied" : "");
    show(node.children, depth + 1);
  }
}

// ---- one program, and all of them --------------------------------------------------------------

struct Outcome {
  bool good = true;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> starts;  // when and which
};

Outcome run_program(std::uint64_t seed, int workers, const std::string& policy) {
  const bool seeded = policy.starts_with("seeded");
  Block program = Generator(seed, !seeded).program();
  constexpr int windows[] = {-1, 0, 1, 4};
  RuntimeOptions config;
  config.workers = workers;
  config.policy = policy;
  config.tasks_ahead = windows[seed % 4];
  Outcome outcome;
  {
    const Runtime runtime(config);
    Run run(program, !seeded);
    run.run();
    outcome.good = run.failures() == 0;
    if (!outcome.good) std::printf("FAILS: a wait returned too early\n");
  }
  outcome.good = check(program) && outcome.good;
  collect_starts(program, outcome.starts);
  std::sort(outcome.starts.begin(), outcome.starts.end());
  return outcome;
}

bool run_seed(std::uint64_t seed, int workers, const std::string& policy) {
  const bool seeded = policy == "seeded";
  const std::string full = seeded ? "seeded:" + std::to_string(seed) : policy;
  std::printf("--seed %llu --count 1 --workers %d --policy %s\n",
              static_cast<unsigned long long>(seed), workers, policy.c_str());
  Outcome outcome = run_program(seed, workers, full);
  if (seeded && outcome.starts != run_program(seed, workers, full).starts) {
    std::printf("FAILS: %s started the tasks in another order the second time\n", full.c_str());
    outcome.good = false;
  }
  return outcome.good;
}

}  // namespace
}  // namespace imbrex::test

int main(int argc, char** argv) {
  using namespace imbrex::test;
  return run_campaign(argc, argv, run_seed, [](Campaign& campaign) {
    show(Generator(campaign.seeds.first(), campaign.policies.front() != "seeded").program(), 0);
  });
}
