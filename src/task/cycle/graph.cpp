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

// Whether edges within a round lead from one task to the other.
[[nodiscard]] bool leads_to(const std::vector<CycleEdges>& edges, const std::uint32_t from,
                            const std::uint32_t to) {
  std::vector<std::uint32_t> open{from};
  std::vector<bool> seen(to + 1 - from);
  while (!open.empty()) {
    const std::uint32_t at = open.back();
    open.pop_back();
    if (at == to) return true;
    for (const std::uint32_t next : edges[at].in_round) {
      if (next > to || seen[next - from]) continue;
      seen[next - from] = true;
      open.push_back(next);
    }
  }
  return false;
}

// Among ranges, a task stays in the table until a single access has covered its own, so that a task
// of the next round may follow it although others lie between the two. Such an edge u -> v says
// nothing that the others do not say: v follows u within the round, and then itself; or both are
// neighbours of a set, which a reader follows before the set of the next round begins. But nothing
// keeps u of the next round from arriving before v there has begun, as (1) of node.hpp demands.
void drop_edges_over_a_round(std::vector<CycleEdges>& edges) {
  for (std::uint32_t from = 0; from < edges.size(); ++from) {
    std::erase_if(edges[from].next_round, [&](const std::uint32_t to) {
      return to > from || !leads_to(edges, to, from);
    });
  }
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
  if (by_range) drop_edges_over_a_round(edges);
  table.clear(nothing);
  for (const Shadow& shadow : shadows) destroy_accesses(shadow.task(), slots);
  return edges;
}

}  // namespace imbrex::task
