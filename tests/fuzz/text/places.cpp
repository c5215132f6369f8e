// SPDX-License-Identifier: BSD-3-Clause
// libFuzzer on the values of OMP_PLACES, GOMP_CPU_AFFINITY and OMP_PROC_BIND. An accepted value is
// within the machine, and stays equal when it is printed and read again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "omp/environment/place_list.hpp"

namespace {

using imbrex::omp::Complaints;
using imbrex::omp::Place;

constexpr int processors_max = 64;

void expect(const bool right) {
  if (!right) std::abort();
}

void check(const Place& place, const int below) {
  expect(std::ranges::is_sorted(place));
  expect(place.empty() || (place.front() >= 0 && place.back() < below));
}

void parse_as_places(const std::string_view text) {
  Complaints complaints;
  const auto parsed = imbrex::omp::parse_places(text, processors_max, complaints);
  if (!parsed || parsed->unit != imbrex::omp::Unit::listed) return;
  for (const Place& place : parsed->list) check(place, processors_max);
  if (std::ranges::any_of(parsed->list, &Place::empty)) return;  // "{}" can not be read
  const auto again = imbrex::omp::parse_places(imbrex::omp::text_of(parsed->list), processors_max,
                                               complaints);
  expect(again && again->list == parsed->list);
  const Place allowed{0, 1, 5};
  for (const Place& place : imbrex::omp::usable(parsed->list, allowed, complaints)) check(place, 6);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* const data, const std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  parse_as_places(text);
  if (const auto places = imbrex::omp::parse_cpu_affinity(text)) {
    for (const Place& place : *places) check(place, 65536);
  }
  for (const int kind : imbrex::omp::parse_binding(text)) expect(kind >= 0 && kind <= 4);
  return 0;
}
