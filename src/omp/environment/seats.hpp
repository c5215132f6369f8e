// SPDX-License-Identifier: BSD-3-Clause
// Which place each thread of a team takes (OpenMP 5.1, section 2.6.2): pure.
#pragma once

#include <vector>

namespace imbrex::omp {

// As omp_proc_bind_t.
enum class Binding { none = 0, any = 1, primary = 2, close = 3, spread = 4 };

struct Seat {
  int place = -1;  // -1: not bound
  int first = 0;   // of the partition: the places that the thread's inner regions may use
  int count = 0;
  bool operator==(const Seat&) const = default;
};

// Seats of `threads` threads, of a region that is created by the thread in `creator`, which keeps
// its place. REQUIRES: that seat is bound.
[[nodiscard]] std::vector<Seat> seats_for(int threads, Binding binding, const Seat& creator);

}  // namespace imbrex::omp
