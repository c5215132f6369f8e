// SPDX-License-Identifier: BSD-3-Clause
#include "trace/happens_before.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <mutex>
#include <new>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"

namespace imbrex::trace::happens_before {

namespace {

// A node of the graph: a task, or a key. Tasks have odd numbers, keys even ones.
using Node = std::uint64_t;
constexpr Node everything = 0;  // an edge to it leads to all actions before the time of the edge

Node node_of(const Code code) noexcept { return 2 * code + 1; }
Node node_of(const void* const key) noexcept { return 2 * reinterpret_cast<Node>(key); }

// From the time `since` on, its node comes after everything that `to` did before that time.
struct Edge {
  std::uint64_t since;
  Node to;
};
using Edges = std::vector<Edge>;  // in the order of their times

constexpr std::size_t edges_max = 1 << 22;   // 64 MiB: beyond them the older half is forgotten
constexpr std::size_t steps_max = 1 << 18;   // of one search, which is then in doubt

// An observer ends no program: without memory the graph begins again, and a search is in doubt.
class Graph {
 public:
  void forget_all() noexcept IMBREX_REQUIRES(lock) {
    nodes_.clear();
    edges_ = 0;
    floor_ = ++time_;
  }

  [[nodiscard]] bool is_unknown(const Code code) const noexcept IMBREX_REQUIRES(lock) {
    return code == unknown || hidden_.contains(code);
  }
  [[nodiscard]] bool knows(const Node node) const noexcept IMBREX_REQUIRES(lock) {
    return nodes_.contains(node);
  }

  // A task that the graph meets for the first time comes after everything so far.
  void enter(const Code code) noexcept IMBREX_REQUIRES(lock) {
    if (!knows(node_of(code))) link(node_of(code), everything);
  }

  // The node for what `code` has done so far.
  [[nodiscard]] Node past_of(const Code code) noexcept IMBREX_REQUIRES(lock) {
    if (is_unknown(code)) return everything;
    enter(code);
    return node_of(code);
  }

  // `from` comes after everything that `to` has done.
  void link(const Node from, const Node to) noexcept IMBREX_REQUIRES(lock) {
    try {
      nodes_[from].push_back({++time_, to});
      if (++edges_ > edges_max) forget_half();
    } catch (const std::bad_alloc&) {
      forget_all();
    }
  }

  void hide(const Code code) IMBREX_REQUIRES(lock) { hidden_.insert(code); }
  void show(const Code code) noexcept IMBREX_REQUIRES(lock) { hidden_.erase(code); }
  [[nodiscard]] std::uint64_t tick() noexcept IMBREX_REQUIRES(lock) { return ++time_; }

  // Whether the edges lead from `from` back to `moment` at `to`. Edges that are older than the
  // moment lead to earlier actions only.
  [[nodiscard]] bool leads(Node from, Node to, std::uint64_t moment) const IMBREX_REQUIRES(lock);

  base::LastingLock<std::mutex> lock;

 private:
  // Edges are spread evenly over time.
  void forget_half() noexcept IMBREX_REQUIRES(lock) {
    const std::uint64_t floor = floor_ + (time_ - floor_) / 2;
    floor_ = floor;
    edges_ = 0;
    for (auto place = nodes_.begin(); place != nodes_.end();) {
      std::erase_if(place->second, [floor](const Edge& edge) { return edge.since <= floor; });
      edges_ += place->second.size();
      place = place->second.empty() ? nodes_.erase(place) : std::next(place);
    }
    if (edges_ > edges_max / 2 + 1) forget_all();
  }

  std::uint64_t time_ IMBREX_GUARDED_BY(lock) = 0;
  std::uint64_t floor_ IMBREX_GUARDED_BY(lock) = 0;  // everything before is before everything after
  std::size_t edges_ IMBREX_GUARDED_BY(lock) = 0;
  std::unordered_map<Node, Edges> nodes_ IMBREX_GUARDED_BY(lock);
  std::unordered_set<Code> hidden_ IMBREX_GUARDED_BY(lock);
};

bool Graph::leads(const Node from, const Node to, const std::uint64_t moment) const {
  if (moment <= floor_) return true;
  struct Visit {
    Node node;
    std::uint64_t until;  // later edges do not count
  };
  std::vector<Visit> open{{from, time_}};
  std::unordered_map<Node, std::uint64_t> seen;  // the `until` of the visits so far
  for (std::size_t steps = 0; !open.empty();) {
    const Visit visit = open.back();
    open.pop_back();
    if (visit.node == to || visit.node == everything) return true;
    const auto place = nodes_.find(visit.node);
    if (place == nodes_.end()) continue;
    std::uint64_t& until = seen.try_emplace(visit.node, moment).first->second;
    const std::uint64_t since = std::exchange(until, std::max(until, visit.until));
    const Edges& edges = place->second;
    const auto later = [](const std::uint64_t time, const Edge& edge) { return time < edge.since; };
    const auto last = std::upper_bound(edges.begin(), edges.end(), visit.until, later);
    for (auto edge = std::upper_bound(edges.begin(), last, since, later); edge != last; ++edge) {
      if (++steps > steps_max) return true;  // in doubt
      open.push_back({edge->to, edge->since});
    }
  }
  return false;
}

Graph& graph() noexcept {
  static auto& the_graph = *new Graph;  // never destroyed: tasks may run at exit
  return the_graph;
}

}  // namespace

void forget() noexcept {
  Graph& all = graph();
  const std::lock_guard guard(all.lock);
  all.forget_all();
}

void spawn(const Code parent, const Code child) noexcept {
  Graph& all = graph();
  const std::lock_guard guard(all.lock);
  all.link(node_of(child), all.past_of(parent));
}

void before(const Code code, const void* const key) noexcept {
  Graph& all = graph();
  const std::lock_guard guard(all.lock);
  all.link(node_of(key), all.past_of(code));
}

void after(const Code code, const void* const key) noexcept {
  Graph& all = graph();
  const std::lock_guard guard(all.lock);
  if (all.is_unknown(code)) return;
  all.enter(code);
  if (all.knows(node_of(key))) all.link(node_of(code), node_of(key));
}

void follow(const Code code, const Code other) noexcept {
  Graph& all = graph();
  const std::lock_guard guard(all.lock);
  if (all.is_unknown(code)) return;
  all.enter(code);
  all.link(node_of(code), all.past_of(other));
}

void follow_everything(const Code code) noexcept { follow(code, unknown); }

void hide(const Code code) noexcept {
  Graph& all = graph();
  const std::lock_guard guard(all.lock);
  all.hide(code);
}
void show(const Code code) noexcept {
  Graph& all = graph();
  const std::lock_guard guard(all.lock);
  all.show(code);
}

std::uint64_t mark(const Code code) noexcept {
  Graph& all = graph();
  const std::lock_guard guard(all.lock);
  if (all.is_unknown(code)) return 0;
  all.enter(code);
  return all.tick();
}

bool is_after(const Code code, const Code other, const std::uint64_t moment) noexcept {
  Graph& all = graph();
  const std::lock_guard guard(all.lock);
  if (code == other || all.is_unknown(code)) return true;
  all.enter(code);
  try {
    return all.leads(node_of(code), node_of(other), moment);
  } catch (const std::bad_alloc&) {
    return true;
  }
}

}  // namespace imbrex::trace::happens_before
