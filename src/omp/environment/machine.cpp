// SPDX-License-Identifier: BSD-3-Clause
#include "omp/environment/machine.hpp"

#include <hwloc.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

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

void tell(const Complaints& complaints) {
  for (const std::string& complaint : complaints) warn("%s", complaint.c_str());
}

std::vector<Place> from_places(const char* const value, const Place& allowed) {
  Complaints complaints;
  const auto parsed = parse_places(value, processors_max(), complaints);
  std::vector<Place> places;
  if (parsed && parsed->unit == Unit::listed) places = usable(parsed->list, allowed, complaints);
  tell(complaints);
  if (parsed && parsed->unit != Unit::listed) {
    places = places_of(parsed->unit, parsed->most, allowed);
    if (places.empty()) warn("Error reading core/socket topology");
  } else if (!parsed && is_llvm()) {
    warn("OMP_PLACES: \"%s\" is an invalid value; cores are used", value);
    places = places_of(Unit::cores, SIZE_MAX, allowed);
  } else if (places.empty()) {
    refuse_variable("OMP_PLACES");
  }
  return places;
}

// Processors that the system would refuse are left out; libgomp's threads fail to start there.
std::vector<Place> from_cpu_affinity(const char* const value, const Place& allowed) {
  const auto parsed = parse_cpu_affinity(value);
  if (!parsed) {
    refuse_variable("GOMP_CPU_AFFINITY");
    return {};
  }
  Complaints complaints;
  std::vector<Place> places = usable(*parsed, allowed, complaints);
  tell(complaints);
  return places;
}

// Null: not given, or malformed.
std::vector<int> from_proc_bind() {
  const char* const value = std::getenv("OMP_PROC_BIND");
  if (value == nullptr) return {};
  std::vector<int> levels = parse_binding(value);
  if (levels.empty()) refuse_variable("OMP_PROC_BIND");
  return levels;
}

// KMP_AFFINITY, for programs that need LLVM's runtime and set no variable of OpenMP: the type, and
// the granularity. One line names other words, such as "verbose", or the numbers of a permutation.
std::vector<Place> from_kmp_affinity(const std::string_view value, Settings& now) {
  std::optional<Binding> binding;
  Unit unit = Unit::threads;
  std::string unread;
  static constexpr std::string_view defaults[] = {  // imbrex does as they say
      "granularity=fine", "granularity=thread", "none", "disabled", "respect", "warnings",
      "noverbose", "noreset", "0", ""};
  for (const std::string& word : words_of_affinity(value)) {
    if (word == "compact") {
      binding = Binding::close;
    } else if (word == "scatter" || word == "balanced") {
      binding = Binding::spread;
    } else if (word == "granularity=core") {
      unit = Unit::cores;
    } else if (std::ranges::find(defaults, word) == std::end(defaults)) {
      unread.append(unread.empty() ? "" : ", ").append("\"").append(word).append("\"");
    }
  }
  if (!unread.empty() && warns_of_unread()) {
    warn("KMP_AFFINITY: imbrex does not read %s", unread.c_str());
  }
  if (!binding) return {};
  now.initial.bind = static_cast<std::uint8_t>(*binding);
  return places_of(unit, SIZE_MAX, now.allowed);
}

}  // namespace

void read_places(Settings& now) {
  now.bind_by_level = from_proc_bind();
  if (!now.bind_by_level.empty()) {
    now.initial.bind = static_cast<std::uint8_t>(now.bind_by_level.front());
  }
  const bool refused = !now.bind_by_level.empty() && now.initial.bind == 0;
  std::vector<Place> places;
  if (const char* const value = std::getenv("OMP_PLACES")) {
    places = from_places(value, now.allowed);
  }
  if (const char* const value = std::getenv("GOMP_CPU_AFFINITY")) {
    std::vector<Place> others = from_cpu_affinity(value, now.allowed);
    if (places.empty()) places = std::move(others);
  }
  const char* const kmp = std::getenv("KMP_AFFINITY");
  if (kmp != nullptr && places.empty() && now.bind_by_level.empty() && is_llvm()) {
    places = from_kmp_affinity(kmp, now);
  }
  if (!refused) {
    if (!places.empty() && now.initial.bind == 0) now.initial.bind = 1;
    if (places.empty() && now.initial.bind != 0) {
      places = places_of(Unit::threads, SIZE_MAX, now.allowed);
    }
    now.places = std::move(places);
  }
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
