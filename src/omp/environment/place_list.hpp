// SPDX-License-Identifier: BSD-3-Clause
// The values of OMP_PLACES, OMP_PROC_BIND and GOMP_CPU_AFFINITY as text: pure, knows neither the
// machine nor the environment. Malformed values are reported in libgomp's words.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace imbrex::omp {

using Place = std::vector<int>;  // processors, ascending
using Complaints = std::vector<std::string>;

// The unit of each place, if an abstract name gives the places; `listed` otherwise.
enum class Unit { listed, threads, cores, sockets, ll_caches, numa_domains };

struct PlacesText {
  Unit unit = Unit::listed;
  std::size_t most = SIZE_MAX;  // number of places of that unit
  std::vector<Place> list;      // if listed
};
// Processors are below `processors_max`. Null if the text is malformed.
[[nodiscard]] std::optional<PlacesText> parse_places(std::string_view text, int processors_max,
                                                     Complaints& complaints);

// A place for each processor that GOMP_CPU_AFFINITY names, in its order.
[[nodiscard]] std::optional<std::vector<Place>> parse_cpu_affinity(std::string_view text);

// Values of omp_proc_bind_t by level; empty if malformed.
[[nodiscard]] std::vector<int> parse_binding(std::string_view text);

// The words of KMP_AFFINITY, in small letters: what stands between commas outside of brackets.
[[nodiscard]] std::vector<std::string> words_of_affinity(std::string_view text);

// The places reduced to the `allowed` processors, ascending, without places that are then empty.
[[nodiscard]] std::vector<Place> usable(const std::vector<Place>& places,
                                        const std::vector<int>& allowed, Complaints& complaints);

// libgomp's form: "{0:2},{4}"; and "0-1,4".
[[nodiscard]] std::string text_of(const std::vector<Place>& places);
[[nodiscard]] std::string ranges_of(const Place& place);

}  // namespace imbrex::omp
