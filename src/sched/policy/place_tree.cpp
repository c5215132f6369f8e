// SPDX-License-Identifier: BSD-3-Clause
#include "sched/policy/place_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "imbrex/error.hpp"

namespace imbrex::sched {

namespace {

// Whether all of `part`, sorted, are in `whole`, sorted.
bool lies_in(const std::vector<int>& part, const std::vector<int>& whole) {
  return std::ranges::includes(whole, part);
}

// Whether `workers`, sorted, can be a place of the sketch: they overlap no place partially, and
// equal none.
bool fits(const Sketch& sketch, const std::vector<int>& workers) {
  return std::ranges::all_of(sketch, [&workers](const PlannedPlace& place) {
    if (place.workers == workers) return false;
    std::vector<int> common;
    std::ranges::set_intersection(place.workers, workers, std::back_inserter(common));
    return common.empty() || common == workers || common == place.workers;
  });
}

// Adds a place for each part of that kind that is no place yet.
void add_parts(Sketch& sketch, const base::Level level, const PlaceKind kind,
               const std::vector<int>& processors, base::Topology& topology) {
  Sketch parts;
  for (std::size_t worker = 0; worker < processors.size(); ++worker) {
    const std::string name = topology.part_of(level, processors[worker]);
    auto part = std::ranges::find(parts, name, &PlannedPlace::name);
    if (part == parts.end()) {
      part = parts.insert(parts.end(), PlannedPlace{.name = name, .workers = {}, .kind = kind});
    }
    part->workers.push_back(static_cast<int>(worker));
  }
  for (PlannedPlace& part : parts) {
    if (part.workers.size() < processors.size() && fits(sketch, part.workers)) {
      sketch.push_back(std::move(part));
    }
  }
}

void set_parents(Sketch& sketch) {
  std::ranges::stable_sort(sketch, [](const PlannedPlace& a, const PlannedPlace& b) {
    return a.workers.size() > b.workers.size();
  });
  for (std::size_t place = 0; place < sketch.size(); ++place) {
    for (std::size_t outer = 0; outer < place; ++outer) {  // the last place that fits is the
                                                           // smallest
      if (lies_in(sketch[place].workers, sketch[outer].workers)) {
        sketch[place].parent = static_cast<int>(outer);
      }
    }
  }
}

// An only outermost place with all workers is the root and is left out. The parents of the other
// places are adjusted.
void leave_root_out(Sketch& sketch, const std::size_t workers) {
  const auto outermost = std::ranges::count(sketch, -1, &PlannedPlace::parent);
  const bool is_root = outermost == 1 && sketch.size() > 1 &&
                       sketch.front().workers.size() == workers &&
                       sketch.front().kind <= PlaceKind::cache;
  if (!is_root) return;
  sketch.erase(sketch.begin());
  for (PlannedPlace& place : sketch) --place.parent;
}

}  // namespace

Sketch parts_of_machine(const std::vector<int>& processors, base::Topology& topology) {
  if (processors.size() < 2) return {};
  struct Kind {
    base::Level level;
    PlaceKind kind;
  };
  using base::Level;
  // If parts have the same workers, the first kind counts.
  static constexpr Kind kinds[] = {{Level::numa, PlaceKind::memory},
                                   {Level::l3, PlaceKind::cache},
                                   {Level::l2, PlaceKind::cache},
                                   {Level::core, PlaceKind::cache},
                                   {Level::package, PlaceKind::memory}};
  Sketch sketch;
  for (const Kind& each : kinds) {
    add_parts(sketch, each.level, each.kind, processors, topology);
  }
  set_parents(sketch);
  return sketch;
}

Division make_tree(Sketch sketch, const std::size_t workers) {
  leave_root_out(sketch, workers);
  if (sketch.empty()) {
    std::vector<int> all(workers);
    std::iota(all.begin(), all.end(), 0);
    sketch.push_back({.name = "machine", .workers = std::move(all)});
  }
  if (sketch.size() > places_max) {
    throw Error(fmt::format("imbrex: IMBREX_PLACES=tree: the machine has {} parts, and at most {} "
                            "places are possible: choose numa, package, l3, or core",
                            sketch.size(), places_max));
  }
  for (PlannedPlace& place : sketch) {
    if (place.parent >= 0) place.level = sketch[static_cast<std::size_t>(place.parent)].level + 1;
  }
  std::vector<int> order(sketch.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&sketch](const int a, const int b) {
    return sketch[static_cast<std::size_t>(a)].level > sketch[static_cast<std::size_t>(b)].level;
  });
  std::vector<int> position(sketch.size());
  for (std::size_t each = 0; each < order.size(); ++each) {
    position[static_cast<std::size_t>(order[each])] = static_cast<int>(each);
  }
  Division division{.places = {}, .tree = true};
  for (const int from : order) {
    PlannedPlace& place = division.places.emplace_back(
        std::move(sketch[static_cast<std::size_t>(from)]));
    if (place.parent >= 0) place.parent = position[static_cast<std::size_t>(place.parent)];
  }
  return division;
}

namespace {

// For each worker the places that have it, from the outermost on.
std::vector<std::vector<int>> paths(const std::vector<PlannedPlace>& places,
                                    const std::size_t workers) {
  std::vector<std::vector<int>> paths(workers);
  for (std::size_t place = places.size(); place-- > 0;) {  // outer places are the last
    for (const int worker : places[place].workers) {
      paths[static_cast<std::size_t>(worker)].push_back(static_cast<int>(place));
    }
  }
  return paths;
}

// The number of places that two workers have in common.
std::size_t in_common(const std::vector<int>& first, const std::vector<int>& second) {
  const auto end = std::ranges::mismatch(first, second).in1;
  return static_cast<std::size_t>(end - first.begin());
}

}  // namespace

void keep_near(PolicySetup& setup, const std::vector<PlannedPlace>& places) {
  if (setup.workers < 2) return;  // a single worker may be in all places, of which none is part of
                                  // another
  const std::vector<std::vector<int>> paths = sched::paths(places, setup.nearest.size());
  for (std::size_t self = 0; self < setup.nearest.size(); ++self) {
    std::vector<int>& nearest = setup.nearest[self];
    std::vector<std::size_t> common(paths.size());
    for (const int other : nearest) {
      common[static_cast<std::size_t>(other)] =
          in_common(paths[self], paths[static_cast<std::size_t>(other)]);
    }
    std::ranges::stable_sort(nearest, [&common](const int a, const int b) {
      return common[static_cast<std::size_t>(a)] > common[static_cast<std::size_t>(b)];
    });
    std::vector<int>& within = setup.within.emplace_back();
    for (std::size_t least = paths[self].size() + 1; least-- > 0;) {
      within.push_back(static_cast<int>(std::ranges::count_if(
          nearest, [&](const int other) {
            return common[static_cast<std::size_t>(other)] >= least;
          })));
    }
  }
}

}  // namespace imbrex::sched
