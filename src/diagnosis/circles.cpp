// SPDX-License-Identifier: BSD-3-Clause
// Circles of waits: between the tasks of one rank, and between ranks. Each edge is a wait that only
// its target can end, so nothing ends a circle from outside.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/survey.hpp"

namespace imbrex::diagnosis {

namespace {

using Edges = std::vector<std::vector<std::size_t>>;
constexpr std::size_t hops_max = 4;  // that a sentence names

// The first circle that a depth-first search meets.
std::vector<std::size_t> find_any_circle(const Edges& edges) {
  enum class Mark : std::uint8_t { unseen, open, over };
  std::vector<Mark> marks(edges.size(), Mark::unseen);
  std::vector<std::pair<std::size_t, std::size_t>> path;  // a node, and its next edge
  for (std::size_t root = 0; root < edges.size(); ++root) {
    if (marks[root] != Mark::unseen) continue;
    path.assign(1, {root, 0});
    marks[root] = Mark::open;
    while (!path.empty()) {
      auto& [node, next] = path.back();
      if (next == edges[node].size()) {
        marks[node] = Mark::over;
        path.pop_back();
        continue;
      }
      const std::size_t to = edges[node][next++];
      if (marks[to] == Mark::unseen) {
        marks[to] = Mark::open;
        path.emplace_back(to, 0);
      } else if (marks[to] == Mark::open) {
        std::vector<std::size_t> circle;
        auto place = std::ranges::find(path, to, &std::pair<std::size_t, std::size_t>::first);
        for (; place != path.end(); ++place) circle.push_back(place->first);
        return circle;
      }
    }
  }
  return {};
}

// The shortest circle through `start`, by a breadth-first search; empty if there is none.
std::vector<std::size_t> shortest_through(const Edges& edges, const std::size_t start) {
  std::map<std::size_t, std::size_t> from;
  std::deque<std::size_t> queue{start};
  while (!queue.empty()) {
    const std::size_t node = queue.front();
    queue.pop_front();
    for (const std::size_t to : edges[node]) {
      if (to == start) {
        std::vector<std::size_t> circle{node};
        while (circle.back() != start) circle.push_back(from.at(circle.back()));
        std::ranges::reverse(circle);
        return circle;
      }
      if (from.emplace(to, node).second) queue.push_back(to);
    }
  }
  return {};
}

}  // namespace

std::vector<std::size_t> find_circle(const Edges& edges) {
  constexpr std::size_t searches_max = 64;
  const std::vector<std::size_t> any_circle = find_any_circle(edges);
  std::vector<std::size_t> best = any_circle;
  for (std::size_t i = 0; i < std::min(any_circle.size(), searches_max); ++i) {
    std::vector<std::size_t> circle = shortest_through(edges, any_circle[i]);
    if (circle.size() < best.size()) best = std::move(circle);
  }
  // The smallest node comes first, so that all orders of the search give one text.
  std::ranges::rotate(best, std::ranges::min_element(best));
  return best;
}

// ---- tasks of one rank -----------------------------------------------------------------------

namespace {

// The tasks of a rank that wait for other tasks there.
struct TaskGraph {
  std::vector<const Wait*> waits;  // a wait of each task
  Edges edges;
  std::vector<std::vector<const Wait*>> reasons;  // for each edge
};

TaskGraph graph_of(const RankFacts& facts) {
  TaskGraph graph;
  std::map<std::uint64_t, std::size_t> places;
  for (const Wait& wait : facts.waits) {
    if (wait.task == 0 || !places.emplace(wait.task, graph.waits.size()).second) continue;
    graph.waits.push_back(&wait);
  }
  graph.edges.resize(graph.waits.size());
  graph.reasons.resize(graph.waits.size());
  for (const Wait& wait : facts.waits) {
    if (wait.task == 0) continue;
    const std::size_t node = places.at(wait.task);
    for (const std::uint64_t task : wait.tasks) {
      const auto found = places.find(task);
      if (found == places.end()) continue;
      graph.edges[node].push_back(found->second);
      graph.reasons[node].push_back(&wait);
    }
  }
  return graph;
}

std::string task_hop(const Wait& reason, const Wait& next) {
  if (reason.kind == WaitKind::finish) {
    return fmt::format("{} waits in {} for its child {}", reason.task_text, reason.call,
                       next.task_text);
  }
  constexpr std::string_view unbegun = "dependency on ";
  if (reason.call.starts_with(unbegun)) {
    return fmt::format("{} follows {}, by an access that both have", reason.task_text,
                       next.task_text);
  }
  return fmt::format("{} waits for {}", reason.task_text, reason.call);
}

std::string advice_for(const std::set<WaitKind>& kinds) {
  if (kinds.contains(WaitKind::phaser)) {
    return "Signal every phaser before the task waits at any, or let all tasks pass the phasers in "
           "one order";
  }
  if (kinds.contains(WaitKind::finish)) {
    return "A task may not wait for a child that follows it: remove the access that both have, or "
           "wait for the child after the end of its parent";
  }
  return "Remove one of these waits, or let its task begin after the other one";
}

}  // namespace

void find_task_circles(const Survey& survey, Findings& findings) {
  for (const RankFacts& facts : survey.all()) {
    const TaskGraph graph = graph_of(facts);
    const std::vector<std::size_t> circle = find_circle(graph.edges);
    if (circle.empty()) continue;
    std::set<WaitKind> kinds;
    std::string hops;
    for (std::size_t i = 0; i < circle.size(); ++i) {
      const std::size_t node = circle[i];
      const std::size_t next = circle[(i + 1) % circle.size()];
      const auto edge = std::ranges::find(graph.edges[node], next) - graph.edges[node].begin();
      const Wait& reason = *graph.reasons[node][static_cast<std::size_t>(edge)];
      kinds.insert(reason.kind);
      if (i < hops_max) {
        hops += (i == 0 ? ": " : "; ") + task_hop(reason, *graph.waits[next]);
      }
    }
    if (circle.size() > hops_max) {
      hops += fmt::format("; and {} tasks more", circle.size() - hops_max);
    }
    const std::string where = facts.ranks > 1 ? fmt::format(" of rank {}", facts.rank) : "";
    const std::string what = circle.size() == 1
                                 ? fmt::format("a task{} waits for itself", where)
                                 : fmt::format("{} tasks{} wait for each other", circle.size(),
                                               where);
    const std::string advice = circle.size() == 1 ? "Remove this wait, or let another task do it"
                                                  : advice_for(kinds);
    findings.push_back({Cause::task_circle, true, what + hops, advice, {facts.rank}});
  }
}

// ---- ranks -----------------------------------------------------------------------------------

namespace {

struct RankGraph {
  std::vector<int> ranks;
  Edges edges;
  std::vector<std::vector<const Wait*>> reasons;  // for each edge
};

RankGraph graph_of(const Survey& survey) {
  RankGraph graph;
  std::map<int, std::size_t> places;
  for (const RankFacts& facts : survey.all()) {
    if (!survey.is_stopped(facts.rank)) continue;
    places.emplace(facts.rank, graph.ranks.size());
    graph.ranks.push_back(facts.rank);
  }
  graph.edges.resize(graph.ranks.size());
  graph.reasons.resize(graph.ranks.size());
  for (std::size_t node = 0; node < graph.ranks.size(); ++node) {
    for (const Wait& wait : survey.find(graph.ranks[node])->waits) {
      const bool has_one_target = (is_receive(wait) || wait.kind == WaitKind::send ||
                                   wait.kind == WaitKind::future) && !is_alternative(wait);
      const auto target = places.find(wait.peer);
      if (!has_one_target || target == places.end() || target->second == node) continue;
      if (std::ranges::find(graph.edges[node], target->second) != graph.edges[node].end()) continue;
      graph.edges[node].push_back(target->second);
      graph.reasons[node].push_back(&wait);
    }
  }
  return graph;
}

struct Circle {
  std::vector<int> ranks;
  std::vector<const Wait*> waits;
};

Circle circle_in(const RankGraph& graph) {
  Circle circle;
  const std::vector<std::size_t> nodes = find_circle(graph.edges);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::vector<std::size_t>& edges = graph.edges[nodes[i]];
    const auto edge = std::ranges::find(edges, nodes[(i + 1) % nodes.size()]) - edges.begin();
    circle.ranks.push_back(graph.ranks[nodes[i]]);
    circle.waits.push_back(graph.reasons[nodes[i]][static_cast<std::size_t>(edge)]);
  }
  return circle;
}

bool all_are(const Circle& circle, bool (*const is)(const Wait&)) {
  return std::ranges::all_of(circle.waits, [is](const Wait* const wait) { return is(*wait); });
}

}  // namespace

void find_rank_circles(const Survey& survey, Findings& findings) {
  const RankGraph graph = graph_of(survey);
  const Circle circle = circle_in(graph);
  if (circle.ranks.empty()) return;
  const bool receives = all_are(circle, [](const Wait& wait) { return is_receive(wait); });
  const bool sends = all_are(circle, [](const Wait& wait) { return wait.kind == WaitKind::send; });
  const bool has_future = !all_are(circle, [](const Wait& wait) {
    return wait.kind != WaitKind::future;
  });
  const bool two = circle.ranks.size() == 2;
  const char* const other = two ? "each other" : "one another";
  std::string what = fmt::format("wait for {}", other);
  std::string advice = "Let one of these ranks do first what the one before it waits for";
  const bool exchanges = !all_are(circle, [](const Wait& wait) {
    return !wait.call.starts_with("MPI_Sendrecv");  // it has sent
  });
  if (receives && !exchanges) {
    what = fmt::format("receive from {} before they send", other);
    advice = "Let one of these ranks send first, or put the send and the receive of each rank into "
             "one MPI_Sendrecv or two independent tasks";
  } else if (sends) {
    what = fmt::format("send long messages to {} and none receives", other);
    advice = "Let one of these ranks receive first, or use MPI_Sendrecv, MPI_Isend or two "
             "independent tasks";
  } else if (has_future) {
    what = fmt::format("await futures of {}", other);
    advice = "Let one of these ranks put its future before it awaits the other one";
  }
  std::string hops;
  for (std::size_t i = 0; i < std::min(circle.ranks.size(), hops_max); ++i) {
    hops += fmt::format("{}rank {} {}", i == 0 ? ": " : "; ", circle.ranks[i],
                        phrase(*circle.waits[i]));
  }
  if (circle.ranks.size() > hops_max) {
    hops += fmt::format("; and {} ranks more", circle.ranks.size() - hops_max);
  }
  std::vector<int> ranks = circle.ranks;
  std::ranges::sort(ranks);
  findings.push_back({has_future ? Cause::future_circle : Cause::rank_circle, survey.all_stopped(),
                      fmt::format("{} {}{}{}", ranks_text(ranks), what, hops,
                                  survey.remarks(ranks)),
                      survey.advice(ranks, advice), ranks});
}

}  // namespace imbrex::diagnosis
