// SPDX-License-Identifier: BSD-3-Clause
// Which processors this process may use, and which are near to each other; from hwloc.
#pragma once

#include <sched.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace imbrex::base {

// The calling thread's affinity mask; empty if it is not known.
[[nodiscard]] cpu_set_t affinity_mask() noexcept;
// Operating-system numbers of the processors in it; at least one.
[[nodiscard]] std::vector<int> processors_in(const cpu_set_t& mask);

// Says for each of some processors:
struct Neighbours {
  // The positions of the others, nearest first (sharing a core, then a cache, then a package, then
  // the machine).
  std::vector<std::vector<int>> nearest;
  // A number, from 0 on, that it has in common with those that share its cache of the third level;
  // where there is none, its package.
  std::vector<int> domain;
};

// Kinds of parts that a machine has several of.
enum class Level : std::uint8_t { numa, package, l3, l2, core };

// The machine as hwloc sees it. That takes milliseconds: it is loaded when it is first asked.
class Topology {
 public:
  Topology() noexcept;
  ~Topology();
  Topology(const Topology&) = delete;
  Topology& operator=(const Topology&) = delete;

  // Brings neighbours together.
  void sort(std::vector<int>& processors);
  [[nodiscard]] Neighbours neighbours(const std::vector<int>& processors);
  // As many processors, of the machine that hwloc describes: these, or where it was given another
  // one than this (HWLOC_SYNTHETIC, HWLOC_XMLFILE), those of that one, in its order.
  [[nodiscard]] std::vector<int> described(const std::vector<int>& processors);
  // The name of the part that the processor lies in, such as "NUMA node 1"; "machine" where there
  // is none of that kind. Two parts have two names.
  [[nodiscard]] std::string part_of(Level level, int processor);

 private:
  class Loaded;
  [[nodiscard]] const Loaded& loaded();
  std::unique_ptr<const Loaded> loaded_;
};

// Binds the calling thread; false if the system refuses.
bool bind_thread(int processor) noexcept;

}  // namespace imbrex::base
