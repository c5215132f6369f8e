// SPDX-License-Identifier: BSD-3-Clause
#include "base/topology.hpp"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <numeric>

namespace imbrex::base {

class Topology::Loaded {
 public:
  Loaded() noexcept {
    loaded_ = hwloc_topology_init(&topology_) == 0;
    if (loaded_ && hwloc_topology_load(topology_) != 0) {
      hwloc_topology_destroy(topology_);
      loaded_ = false;
    }
  }
  ~Loaded() {
    if (loaded_) hwloc_topology_destroy(topology_);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;

  [[nodiscard]] std::vector<std::vector<int>> nearest_first(
      const std::vector<int>& processors) const;
  [[nodiscard]] std::vector<int> domains(const std::vector<int>& processors) const;
  // Returns the part of that type, or null if there is none. Memory hangs beside the tree, so the
  // local memory counts.
  [[nodiscard]] hwloc_obj_t part(const hwloc_obj_type_t type, const int processor) const noexcept {
    hwloc_obj_t found = nullptr;
    while (loaded_ && (found = hwloc_get_next_obj_by_type(topology_, type, found)) != nullptr) {
      if (hwloc_bitmap_isset(found->cpuset, static_cast<unsigned>(processor))) return found;
    }
    return nullptr;
  }
  [[nodiscard]] bool is_another_machine() const noexcept {
    return loaded_ && hwloc_topology_is_thissystem(topology_) == 0;
  }
  // REQUIRES: the topology is loaded, which it is if it describes another machine.
  [[nodiscard]] int processor(const std::size_t position) const noexcept {
    const auto count = static_cast<std::size_t>(hwloc_get_nbobjs_by_type(topology_, HWLOC_OBJ_PU));
    return static_cast<int>(hwloc_get_obj_by_type(topology_, HWLOC_OBJ_PU,
                                                  static_cast<unsigned>(position % count))
                                ->os_index);
  }
  [[nodiscard]] int position(const int processor) const noexcept {
    const hwloc_obj_t here = object(processor);
    return here == nullptr ? processor : static_cast<int>(here->logical_index);
  }

 private:
  // The depth of the smallest part that holds both processors: a larger depth is nearer. 0 if
  // unknown.
  [[nodiscard]] int common_depth(const int first, const int second) const noexcept {
    const hwloc_obj_t a = object(first);
    const hwloc_obj_t b = object(second);
    if (a == nullptr || b == nullptr) return 0;
    return hwloc_get_common_ancestor_obj(topology_, a, b)->depth;
  }
  // The third-level cache of the processor; without one, its package or the machine.
  [[nodiscard]] hwloc_obj_t domain(const int processor) const noexcept {
    const hwloc_obj_t here = object(processor);
    if (here == nullptr) return nullptr;
    for (const hwloc_obj_type_t type : {HWLOC_OBJ_L3CACHE, HWLOC_OBJ_PACKAGE}) {
      const hwloc_obj_t found = hwloc_get_ancestor_obj_by_type(topology_, type, here);
      if (found != nullptr) return found;
    }
    return hwloc_get_root_obj(topology_);
  }
  [[nodiscard]] hwloc_obj_t object(const int processor) const noexcept {
    return loaded_ ? hwloc_get_pu_obj_by_os_index(topology_, static_cast<unsigned>(processor))
                   : nullptr;
  }
  hwloc_topology_t topology_ = nullptr;
  bool loaded_ = false;
};

Topology::Topology() noexcept = default;
Topology::~Topology() = default;

const Topology::Loaded& Topology::loaded() {
  if (loaded_ == nullptr) loaded_ = std::make_unique<const Loaded>();
  return *loaded_;
}

cpu_set_t affinity_mask() noexcept {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) != 0) CPU_ZERO(&mask);
  return mask;
}

std::vector<int> processors_in(const cpu_set_t& mask) {
  std::vector<int> processors;
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (CPU_ISSET(processor, &mask)) processors.push_back(processor);
  }
  if (processors.empty()) processors.push_back(0);
  return processors;
}

void Topology::sort(std::vector<int>& processors) {
  if (processors.size() < 2) return;
  std::stable_sort(processors.begin(), processors.end(), [this](const int a, const int b) {
    return loaded().position(a) < loaded().position(b);
  });
}

void Topology::spread(std::vector<int>& processors, const std::size_t count) {
  if (count >= processors.size()) return;
  // A processor's turn is the number of earlier processors of the same core.
  std::vector<int> turns;
  std::vector<hwloc_obj_t> cores;
  for (const int processor : processors) {
    cores.push_back(loaded().part(HWLOC_OBJ_CORE, processor));
    const bool known = cores.back() != nullptr;
    turns.push_back(known ? static_cast<int>(std::ranges::count(cores, cores.back())) - 1 : 0);
  }
  std::vector<std::size_t> order(processors.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](const std::size_t at) { return turns[at]; });
  std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<int> spread;
  for (const std::size_t at : order) spread.push_back(processors[at]);
  processors = std::move(spread);
}

std::vector<std::vector<int>> Topology::Loaded::nearest_first(
    const std::vector<int>& processors) const {
  const int count = static_cast<int>(processors.size());
  std::vector<std::vector<int>> order(processors.size());
  for (int self = 0; self < count; ++self) {
    std::vector<int> depth(processors.size());
    for (int other = 0; other < count; ++other) {
      depth[other] = common_depth(processors[self], processors[other]);
    }
    for (int step = 1; step < count; ++step) order[self].push_back((self + step) % count);
    std::stable_sort(order[self].begin(), order[self].end(),
                     [&](const int a, const int b) { return depth[a] > depth[b]; });
  }
  return order;
}

std::vector<int> Topology::Loaded::domains(const std::vector<int>& processors) const {
  std::vector<hwloc_obj_t> found;
  std::vector<int> numbers;
  for (const int processor : processors) {
    const auto known = std::find(found.begin(), found.end(), domain(processor));
    numbers.push_back(static_cast<int>(known - found.begin()));
    if (known == found.end()) found.push_back(domain(processor));
  }
  return numbers;
}

Neighbours Topology::neighbours(const std::vector<int>& processors) {
  if (processors.size() < 2) return {{{}}, {0}};
  return {loaded().nearest_first(processors), loaded().domains(processors)};
}

std::vector<int> Topology::described(const std::vector<int>& processors) {
  if (processors.size() < 2 || !loaded().is_another_machine()) return processors;
  std::vector<int> there;
  for (std::size_t each = 0; each < processors.size(); ++each) {
    there.push_back(loaded().processor(each));
  }
  return there;
}

std::string Topology::part_of(const Level level, const int processor) {
  struct Kind {
    hwloc_obj_type_t type;
    const char* name;
  };
  static constexpr Kind kinds[] = {{HWLOC_OBJ_NUMANODE, "NUMA node"},
                                   {HWLOC_OBJ_PACKAGE, "package"},
                                   {HWLOC_OBJ_L3CACHE, "L3 cache"},
                                   {HWLOC_OBJ_L2CACHE, "L2 cache"},
                                   {HWLOC_OBJ_CORE, "core"}};
  const Kind& kind = kinds[static_cast<std::size_t>(level)];
  const hwloc_obj_t found = loaded().part(kind.type, processor);
  return found == nullptr ? "machine" : fmt::format("{} {}", kind.name, found->logical_index);
}

bool bind_thread(const int processor) noexcept {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(processor, &mask);
  return sched_setaffinity(0, sizeof mask, &mask) == 0;
}

}  // namespace imbrex::base
