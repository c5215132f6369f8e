// SPDX-License-Identifier: BSD-3-Clause
// The place that each thread of a team takes (OpenMP 5.1, section 2.6.2): pure.
#pragma once

#include <vector>

namespace imbrex::omp {

// The values of omp_proc_bind_t.
enum class Binding { none = 0, any = 1, primary = 2, close = 3, spread = 4 };

struct Seat {
  int place = -1;  // -1: not bound
  int first = 0;   // of the partition: the places that inner regions of the thread may use
  int count = 0;
  bool operator==(const Seat&) const = default;
};

// Seats of `threads` threads of a region. The thread in seat `creator` creates the region and keeps
// its place. REQUIRES: that seat is bound.
[[nodiscard]] std::vector<Seat> seats_for(int threads, Binding binding, const Seat& creator);

}  // namespace imbrex::omp
