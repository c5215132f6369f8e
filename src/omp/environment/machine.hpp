// SPDX-License-Identifier: BSD-3-Clause
// The places of this machine, and the binding of threads to them.
//
// Thread safety: read_places() runs before main; any thread calls the rest.
#pragma once

#include <vector>

#include "omp/environment/seats.hpp"
#include "omp/environment/settings.hpp"

namespace imbrex::omp {

// Reads OMP_PROC_BIND, OMP_PLACES and GOMP_CPU_AFFINITY. REQUIRES: now.allowed.
void read_places(Settings& now);

// Binds the calling thread, unless it is bound to that place already.
void move_to(int place, int& bound_to) noexcept;
// True if a place has more threads than processors.
[[nodiscard]] bool crowds(const std::vector<Seat>& seats);

}  // namespace imbrex::omp
