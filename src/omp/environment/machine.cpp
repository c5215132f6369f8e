// SPDX-License-Identifier: BSD-3-Clause
#include "omp/environment/machine.hpp"

#include <hwloc.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "omp/environment/fatal.hpp"
#include "omp/environment/place_list.hpp"

namespace imbrex::omp {

namespace {

// The number of bits of the kernel's masks, but at most that of cpu_set_t.
int processors_max() noexcept {
  cpu_set_t mask;
  const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, &mask);
  return bytes <= 0 ? CPU_SETSIZE : std::min<int>(static_cast<int>(bytes) * 8, CPU_SETSIZE);
}

hwloc_obj_type_t type_of(const Unit unit, const hwloc_topology_t topology) noexcept {
  switch (unit) {
    case Unit::cores: return HWLOC_OBJ_CORE;
    case Unit::sockets: return HWLOC_OBJ_PACKAGE;
    case Unit::numa_domains: return HWLOC_OBJ_NUMANODE;
    case Unit::ll_caches:
      for (const auto type : {HWLOC_OBJ_L5CACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE,
                              HWLOC_OBJ_L2CACHE}) {
        if (hwloc_get_nbobjs_by_type(topology, type) > 0) return type;
      }
      return HWLOC_OBJ_L1CACHE;
    case Unit::listed:
    case Unit::threads: break;
  }
  return HWLOC_OBJ_PU;
}

// Makes one place for each unit of the machine, with the allowed processors in it; at most `most`.
std::vector<Place> places_of(const Unit unit, const std::size_t most, const Place& allowed) {
  std::vector<Place> places;
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return places;
  if (hwloc_topology_load(topology) == 0) {
    const hwloc_obj_type_t type = type_of(unit, topology);
    hwloc_obj_t object = nullptr;
    while (places.size() < most &&
           (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr) {
      Place place;
      for (const int processor : allowed) {
        if (hwloc_bitmap_isset(object->cpuset, static_cast<unsigned>(processor)) != 0) {
          place.push_back(processor);
        }
      }
      if (!place.empty()) places.push_back(std::move(place));
    }
  }
  hwloc_topology_destroy(topology);
  return places;
}

std::vector<Place> from_places(const char* const value, const Place& allowed,
                               Complaints& complaints) {
  const auto parsed = parse_places(value, processors_max(), complaints);
  std::vector<Place> places;
  if (parsed && parsed->unit != Unit::listed) {
    places = places_of(parsed->unit, parsed->most, allowed);
    if (places.empty()) complaints.emplace_back("Error reading core/socket topology");
    return places;
  }
  if (parsed) places = usable(parsed->list, allowed, complaints);
  if (places.empty()) complaints.emplace_back("Invalid value for environment variable OMP_PLACES");
  return places;
}

// Processors that the system would refuse are left out; libgomp's threads fail to start there.
std::vector<Place> from_cpu_affinity(const char* const value, const Place& allowed,
                                     Complaints& complaints) {
  const auto parsed = parse_cpu_affinity(value);
  if (!parsed) {
    complaints.emplace_back("Invalid value for environment variable GOMP_CPU_AFFINITY");
    return {};
  }
  return usable(*parsed, allowed, complaints);
}

// Null: not given, or malformed.
std::vector<int> from_proc_bind(Complaints& complaints) {
  const char* const value = std::getenv("OMP_PROC_BIND");
  if (value == nullptr) return {};
  std::vector<int> levels = parse_binding(value);
  if (levels.empty()) {
    complaints.emplace_back("Invalid value for environment variable OMP_PROC_BIND");
  }
  return levels;
}

}  // namespace

namespace {

// KMP_AFFINITY, for programs that need LLVM's runtime and set no variable of OpenMP: the type, and
// the granularity. Other words ("verbose", a permutation) change nothing here.
std::vector<Place> from_kmp_affinity(const std::string_view value, Settings& now) {
  const auto has = [value](const std::string_view word) {
    return value.find(word) != std::string_view::npos;
  };
  const bool close = has("compact");
  if (!close && !has("scatter") && !has("balanced")) return {};
  const Unit unit = has("granularity=core") ? Unit::cores : Unit::threads;
  now.initial.bind = static_cast<std::uint8_t>(close ? Binding::close : Binding::spread);
  return places_of(unit, SIZE_MAX, now.allowed);
}

}  // namespace

void read_places(Settings& now) {
  Complaints complaints;
  now.bind_by_level = from_proc_bind(complaints);
  if (!now.bind_by_level.empty()) {
    now.initial.bind = static_cast<std::uint8_t>(now.bind_by_level.front());
  }
  const bool refused = !now.bind_by_level.empty() && now.initial.bind == 0;
  std::vector<Place> places;
  if (const char* const value = std::getenv("OMP_PLACES")) {
    places = from_places(value, now.allowed, complaints);
  }
  if (const char* const value = std::getenv("GOMP_CPU_AFFINITY")) {
    std::vector<Place> others = from_cpu_affinity(value, now.allowed, complaints);
    if (places.empty()) places = std::move(others);
  }
  const char* const kmp = std::getenv("KMP_AFFINITY");
  if (kmp != nullptr && places.empty() && now.bind_by_level.empty() &&
      speaks_llvm.load(std::memory_order_relaxed)) {
    places = from_kmp_affinity(kmp, now);
  }
  if (!refused) {
    if (!places.empty() && now.initial.bind == 0) now.initial.bind = 1;
    if (places.empty() && now.initial.bind != 0) {
      places = places_of(Unit::threads, SIZE_MAX, now.allowed);
    }
    now.places = std::move(places);
  }
  for (const std::string& complaint : complaints) warn("%s", complaint.c_str());
}

void move_to(const int place, int& bound_to) noexcept {
  if (place == bound_to) return;
  bound_to = place;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int processor : settings().places[static_cast<std::size_t>(place)]) {
    CPU_SET(processor, &mask);
  }
  (void)sched_setaffinity(0, sizeof mask, &mask);  // refused: the thread stays where it is
}

bool crowds(const std::vector<Seat>& seats) {
  std::vector<std::size_t> threads(settings().places.size());
  return std::ranges::any_of(seats, [&threads](const Seat& seat) {
    const auto place = static_cast<std::size_t>(seat.place);
    return ++threads[place] > settings().places[place].size();
  });
}

}  // namespace imbrex::omp
