// SPDX-License-Identifier: BSD-3-Clause
// The cases of bench/compare on oneTBB: task_group for spawn and fib; for chain and stencil a flow
// graph that is built, run and freed, or with ORDERED_TASKS the order of tasks that task_group has
// since 2022.3, both with explicit edges, as oneTBB has no dependencies by address; for iterate_...
// a graph that is built once, with a wait between two of its runs; task::suspend and resume for
// suspend.
#define TBB_PREVIEW_TASK_GROUP_EXTENSIONS 1  // the order of tasks
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>
#include <oneapi/tbb/version.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <initializer_list>
#include <memory_resource>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cases.hpp"

namespace {

namespace flow = oneapi::tbb::flow;
using Node = flow::continue_node<flow::continue_msg>;

long fib(long n) {
  if (n < 2) return n;
  long a;
  oneapi::tbb::task_group group;
  group.run([&a, n] { a = fib(n - 1); });
  const long b = fib(n - 2);
  group.wait();
  return a + b;
}

struct SpawnSystem {
  oneapi::tbb::task_group group;

  template <class Create>
  void finish(Create&& create) {
    create();
    group.wait();
  }
  template <class Body>
  void launch(const Body& body) {
    group.run(body);
  }
  long fib(long n) { return ::fib(n); }
};

// Nodes in program order; the edges are worked out by position, which is cheaper than any look-up.
// The nodes' memory is touched in the first pass and used again: no page faults are timed.
class GraphSystem {
 public:
  explicit GraphSystem(long tasks)
      : memory_((static_cast<std::size_t>(tasks) + 1024) * (sizeof(Node) + 32)),
        resource_(memory_.data(), memory_.size()) {}

  template <class Create>
  void finish(Create&& create) {
    build(create);
    run();
    free();
  }
  template <class Create>
  void iterate(long count, long period, Create&& create) {
    build([&] {
      for (long i = 0; i < period; ++i) create(i);
    });
    for (long i = 0; i < count; i += period) run();
    free();
  }
  template <class Body>
  void launch(const Body& body) {
    add(body);
    sources_ = nodes_->size();
  }
  template <class Body>
  void launch_chain(long&, const Body& body) {
    sources_ = 1;
    add(body);
    const auto count = nodes_->size();
    if (count > 1) flow::make_edge((*nodes_)[count - 2], nodes_->back());
  }
  // The edges from the three readers of the old value of `next` are those from its three inputs.
  template <class Body>
  void launch_stencil(const bench::Point&, const Body& body) {
    constexpr std::size_t width = bench::Rows::width;
    sources_ = width;
    add(body);
    const std::size_t index = nodes_->size() - 1;
    if (index < width) return;
    const std::size_t x = index % width;
    const std::size_t row = index - x - width;
    flow::make_edge((*nodes_)[row + (x + width - 1) % width], nodes_->back());
    flow::make_edge((*nodes_)[row + x], nodes_->back());
    flow::make_edge((*nodes_)[row + (x + 1) % width], nodes_->back());
  }

 private:
  template <class Create>
  void build(Create&& create) {
    graph_.emplace();
    nodes_.emplace(&resource_);
    create();
  }
  void run() {
    for (std::size_t i = 0; i < sources_; ++i) (*nodes_)[i].try_put(flow::continue_msg());
    graph_->wait_for_all();
  }
  void free() {
    nodes_.reset();
    resource_.release();
    graph_.reset();
  }
  template <class Body>
  void add(const Body& body) {
    nodes_->emplace_back(*graph_, [body](flow::continue_msg) { body(); });
  }

  std::size_t sources_ = 0;  // the first nodes, which have no predecessor
  std::optional<flow::graph> graph_;
  std::vector<std::byte> memory_;
  std::pmr::monotonic_buffer_resource resource_;
  std::optional<std::pmr::deque<Node>> nodes_;
};

#if ORDERED_TASKS
// The tasks of a group, with edges as in GraphSystem.
class OrderedSystem {
 public:
  explicit OrderedSystem(long) {}
  template <class Create>
  void finish(Create&& create) {
    old_.assign(bench::Rows::width, {});
    new_ = old_;
    created_ = 0;
    create();
    group_.wait();
  }
  template <class Body>
  void launch_chain(long&, const Body& body) {
    run(body, old_.front(), {created_ > 0 ? &old_.front() : nullptr});
    ++created_;
  }
  template <class Body>
  void launch_stencil(const bench::Point&, const Body& body) {
    constexpr std::size_t width = bench::Rows::width;
    const std::size_t x = created_ % width;
    if (created_ > 0 && x == 0) std::swap(old_, new_);
    if (created_++ < width) return run(body, new_[x], {});
    run(body, new_[x], {&old_[(x + width - 1) % width], &old_[x], &old_[(x + 1) % width]});
  }

 private:
  using Handle = oneapi::tbb::task_completion_handle;

  template <class Body>
  void run(const Body& body, Handle& to, const std::initializer_list<Handle*> before) {
    oneapi::tbb::task_handle task = group_.defer(body);
    for (Handle* const one : before) {
      if (one != nullptr) oneapi::tbb::task_group::set_task_order(*one, task);
    }
    to = task;
    group_.run(std::move(task));
  }

  oneapi::tbb::task_group group_;
  std::vector<Handle> old_, new_;  // of two rows; of a chain the last one
  std::size_t created_ = 0;
};
using Dependencies = OrderedSystem;
constexpr const char* name = "oneTBB task_group ";
#else
using Dependencies = GraphSystem;
constexpr const char* name = "oneTBB ";
#endif

// Two tasks; each, once suspended, wakes the other.
void wake_each_other(long round_trips) {
  std::atomic<oneapi::tbb::task::suspend_point> waiting{nullptr};
  const auto wake = [&waiting](oneapi::tbb::task::suspend_point mine) {
    const auto other = waiting.exchange(mine);
    if (other != nullptr) oneapi::tbb::task::resume(other);
  };
  const auto body = [&] {
    for (long i = 0; i < round_trips; ++i) {
      oneapi::tbb::task::suspend([&](oneapi::tbb::task::suspend_point point) { wake(point); });
      count_body();
    }
    wake(nullptr);
  };
  oneapi::tbb::task_group group;
  group.run(body);
  group.run(body);
  group.wait();
}

result run_suspend(long round_trips) {
  wake_each_other(round_trips / 10 + 1);
  const long before = bodies_counted();
  const double start = now_ns();
  wake_each_other(round_trips);
  const double ns = now_ns() - start;
  const long suspensions = bodies_counted() - before;
  require_equal("suspensions that came back", suspensions, 2 * round_trips);
  return {ns / static_cast<double>(2 * round_trips), 2 * round_trips, -1, suspensions};
}

result run(const request& request) {
  const std::string_view benchmark = request.benchmark;
  SpawnSystem system;
  if (benchmark == "spawn") return bench::run_spawn(system, request.size);
  if (benchmark == "chain") {
    Dependencies tasks(request.size);
    return bench::run_chain(tasks, request.size);
  }
  if (benchmark == "stencil") {
    Dependencies tasks(request.size * bench::Rows::width);
    return bench::run_stencil(tasks, request.size);
  }
  GraphSystem again(2 * bench::Rows::width);
  if (benchmark == "iterate_spawn") return bench::run_iterate_spawn(again, request.size);
  if (benchmark == "iterate_chain") return bench::run_iterate_chain(again, request.size);
  if (benchmark == "iterate_stencil") return bench::run_iterate_stencil(again, request.size);
  if (benchmark == "fib") return bench::run_fib(system, request.size);
  if (benchmark == "suspend") return run_suspend(request.size);
  std::fprintf(stderr, "tbb_cases: no case '%s'\n", request.benchmark);
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  const request request = parse_request(argc, argv, "spawn chain stencil fib suspend "
                                                   "iterate_spawn iterate_chain iterate_stencil");
  const auto workers = static_cast<std::size_t>(request.workers);
  oneapi::tbb::global_control limit(oneapi::tbb::global_control::max_allowed_parallelism, workers);
  oneapi::tbb::task_arena arena(request.workers);
  result measured{};
  arena.execute([&] { measured = run(request); });
  print_record((std::string(name) + TBB_VERSION_STRING).c_str(), request, measured);
}
