// SPDX-License-Identifier: BSD-3-Clause
#include "task/cycle/graph.hpp"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

#include "task/access/accesses.hpp"
#include "task/access/conflicts.hpp"
#include "task/access/depend.hpp"
#include "task/access/mutexes.hpp"

namespace imbrex::task {

namespace {

// A stand-in for an instance of a task: it has the accesses, and never runs.
class Shadow {
 public:
  Shadow(const Task& of, const std::uint64_t id)
      : memory_(static_cast<std::byte*>(::operator new(bytes_of(of), alignment))) {
    auto& made = *::new (memory_) Task;
    initialise(made, {.id = id, .name = of.name, .where = of.where, .ops = nullptr,
                      .parent = nullptr, .scope = nullptr, .priority = 0, .group = 0,
                      .slot_class = 0, .tied = false});
    made.reach = Reach::entry;
    build_accesses(made, memory_ + sizeof(Task), specs_of(of));
  }
  ~Shadow() { ::operator delete(memory_, alignment); }
  Shadow(Shadow&& other) noexcept : memory_(std::exchange(other.memory_, nullptr)) {}
  Shadow& operator=(Shadow&&) = delete;
  [[nodiscard]] Task& task() const noexcept { return *reinterpret_cast<Task*>(memory_); }

 private:
  static constexpr std::align_val_t alignment{alignof(Task)};
  static std::size_t bytes_of(const Task& of) noexcept {
    return sizeof(Task) + AccessBlock::bytes(of.accesses->count);
  }
  std::byte* memory_;
};

void make_unique(std::vector<std::uint32_t>& all) {
  std::ranges::sort(all);
  all.erase(std::ranges::unique(all).begin(), all.end());
}

// The ids of the shadows are 1 to n in the first round, and n + 1 to 2 n in the second.
void read_edges(const Task& from, const std::uint32_t count, std::vector<CycleEdges>& edges) {
  const auto position = static_cast<std::uint32_t>((from.id - 1) % count);
  const bool is_first = from.id <= count;
  const std::uintptr_t head = from.event.head.load(std::memory_order_relaxed);
  for (const Waiter* edge = event::first_waiter(head); edge != nullptr; edge = edge->next) {
    const std::uint64_t id = edge->task->id;
    const auto follower = static_cast<std::uint32_t>((id - 1) % count);
    const bool to_first = id <= count;
    CycleEdges& own = edges[position];
    (is_first == to_first ? own.in_round : own.next_round).push_back(follower);
  }
}

using Marks = std::uint64_t;  // a bit for each of 64 tasks at consecutive positions

// Which of 64 tasks have a path to a task of the same round, and to it in the next.
struct Reached {
  Reached(const std::vector<CycleEdges>& edges, const std::uint32_t first)
      : in_round(edges.size()), next_round(edges.size()) {
    for (std::uint32_t at = 0; at < 64 && first + at < edges.size(); ++at) {
      in_round[first + at] = Marks{1} << at;
    }
    spread(edges, in_round);
    for (std::uint32_t at = first; at < edges.size(); ++at) {
      for (const std::uint32_t next : edges[at].next_round) next_round[next] |= in_round[at];
    }
    spread(edges, next_round);
  }
  std::vector<Marks> in_round, next_round;

 private:
  static void spread(const std::vector<CycleEdges>& edges, std::vector<Marks>& marks) {
    for (std::uint32_t at = 0; at < edges.size(); ++at) {  // edges lead to later positions
      for (const std::uint32_t next : edges[at].in_round) marks[next] |= marks[at];
    }
  }
};

// Among ranges, a task stays in the table until a single access has covered its own, so that later
// tasks may follow it although others lie between: tasks of the next round, or a neighbour of a set
// behind a reader. Such an edge u -> v says nothing that the others do not say. But nothing keeps u
// of the next round from arriving before v has begun, as (1) of node.hpp demands, unless a path
// leads from v to u there: edges without one are dropped.
void drop_edges_without_way_back(std::vector<CycleEdges>& edges) {
  std::vector<CycleEdges> before(edges.size());  // the same edges, from their other ends
  for (std::uint32_t from = 0; from < edges.size(); ++from) {
    for (const std::uint32_t to : edges[from].in_round) before[to].in_round.push_back(from);
    for (const std::uint32_t to : edges[from].next_round) before[to].next_round.push_back(from);
  }
  std::vector<CycleEdges> kept(edges.size());
  for (std::uint32_t first = 0; first < edges.size(); first += 64) {
    const Reached reached(edges, first);
    for (std::uint32_t at = 0; at < 64 && first + at < edges.size(); ++at) {
      const std::uint32_t to = first + at;
      const auto leads = [at](const Marks marks) { return (marks >> at & 1) != 0; };
      for (const std::uint32_t from : before[to].in_round) {
        if (leads(reached.next_round[from])) kept[from].in_round.push_back(to);
      }
      for (const std::uint32_t from : before[to].next_round) {
        if (leads(reached.in_round[from])) kept[from].next_round.push_back(to);
      }
    }
  }
  edges = std::move(kept);
}

// Accesses get what linking has told their stand-ins. All accesses of a mutexinoutset to one object
// get one mutex: the last set of a round and the first of the next may be neighbours.
void take_versions(const std::span<Task* const> tasks, const std::vector<Shadow>& shadows) {
  std::map<std::pair<std::uintptr_t, std::uintptr_t>, Mutex*> mutexes;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    AccessBlock& block = *tasks[i]->accesses;
    AccessBlock& linked = *shadows[i].task().accesses;
    block.linked_at = linked.linked_at;
    for (std::uint32_t position = 0; position < block.count; ++position) {
      Access& access = block.accesses()[position];
      const Access& other = linked.accesses()[position];
      if (access.kind != AccessKind::mutexinoutset) {
        access.mutex_or_version = other.mutex_or_version;
        continue;
      }
      if (other.mutex() == nullptr) continue;
      const Interval place = interval_of(access);
      Mutex*& mutex = mutexes[{place.begin, place.end}];
      if (mutex == nullptr) {
        mutex = new Mutex;
        mutex->version = other.mutex()->version;
      }
      mutex->references.fetch_add(1, std::memory_order_relaxed);
      access.mutex_or_version = reinterpret_cast<std::uintptr_t>(mutex);
    }
  }
  for (const auto& [place, mutex] : mutexes) drop_mutex(mutex);
}

}  // namespace

std::vector<CycleEdges> find_edges(const std::span<Task* const> tasks, base::SlabCache& slots) {
  const auto count = static_cast<std::uint32_t>(tasks.size());
  std::vector<CycleEdges> edges(count);
  std::vector<Shadow> shadows;
  shadows.reserve(2 * tasks.size());
  Outcome nothing;  // each shadow has a reference more, and none ends
  DependTable table;
  const bool by_range = std::ranges::any_of(tasks, [](const Task* const task) {
    return task->accesses->has_mark(AccessBlock::ranges);
  });
  if (by_range) table.use_ranges(nothing);  // the tasks before the first range follow it, too
  for (std::uint64_t id = 1; id <= 2 * std::uint64_t{count}; ++id) {
    shadows.emplace_back(*tasks[(id - 1) % count], id);
    Task& shadow = shadows.back().task();
    table.reserve(shadow, nothing);
    (void)table.link(shadow, slots, nothing);
    if (id == count) take_versions(tasks, shadows);
  }
  for (const Shadow& shadow : shadows) read_edges(shadow.task(), count, edges);
  for (CycleEdges& each : edges) {
    make_unique(each.in_round);
    make_unique(each.next_round);
  }
  if (by_range) drop_edges_without_way_back(edges);
  table.clear(nothing);
  for (const Shadow& shadow : shadows) destroy_accesses(shadow.task(), slots);
  return edges;
}

}  // namespace imbrex::task
