// SPDX-License-Identifier: BSD-3-Clause
// The processors that this process may use, and how near they are to each other; from hwloc.
#pragma once

#include <sched.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace imbrex::base {

// The calling thread's affinity mask; empty if unknown.
[[nodiscard]] cpu_set_t affinity_mask() noexcept;
// The processors of `mask`, by their operating-system numbers; at least one.
[[nodiscard]] std::vector<int> processors_in(const cpu_set_t& mask);

// For each of some processors:
struct Neighbours {
  // the positions of the other processors, nearest first (same core, then cache, package, machine);
  std::vector<std::vector<int>> nearest;
  // a number, from 0 on, that processors with a common third-level cache share; without such a
  // cache, the processors of a package.
  std::vector<int> domain;
};

// Kinds of parts; a machine may have several of each.
enum class Level : std::uint8_t { numa, package, l3, l2, core };

// The machine as hwloc sees it. Loading takes milliseconds, so the first use loads it.
class Topology {
 public:
  Topology() noexcept;
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  // Sorts processors so that neighbours are adjacent.
  void sort(std::vector<int>& processors);
  // Moves `count` of the processors to the front: a second hardware thread of a core is among them
  // only if each core has one there. Those in front keep their order, and so do the others.
  void spread(std::vector<int>& processors, std::size_t count);
  [[nodiscard]] Neighbours neighbours(const std::vector<int>& processors);
  // The processors of the machine that hwloc describes: `processors` itself, or, if hwloc was given
  // another machine (HWLOC_SYNTHETIC, HWLOC_XMLFILE), the same number of that machine's processors,
  // in its order.
  [[nodiscard]] std::vector<int> described(const std::vector<int>& processors);
  // The name of the part that holds the processor, such as "NUMA node 1"; "machine" if there is no
  // such part. Two parts have two names.
  [[nodiscard]] std::string part_of(Level level, int processor);

 private:
  class Loaded;
  [[nodiscard]] const Loaded& loaded();
  std::unique_ptr<const Loaded> loaded_;
};

// Binds the calling thread; false if the system refuses.
bool bind_thread(int processor) noexcept;

}  // namespace imbrex::base
