// SPDX-License-Identifier: BSD-3-Clause
// The places of this machine that threads are bound to, and binding.
//
// Thread safety: read_places() before main; the rest by any thread.
#pragma once

#include "omp/context.hpp"
#include "omp/places/seats.hpp"
#include "omp/settings.hpp"

namespace imbrex::omp {

// Reads OMP_PROC_BIND, OMP_PLACES and GOMP_CPU_AFFINITY. REQUIRES: now.allowed.
void read_places(Settings& now);

// The seat of the thread that runs this.
[[nodiscard]] inline Seat seat_of(const Context& context) noexcept {
  const std::vector<Seat>& seats = context.team->seats;
  return seats.empty() ? Seat{} : seats[static_cast<std::size_t>(context.number)];
}
// The calling thread, outside of all regions, is bound to the first place, if there are any and it
// is not bound yet.
void take_first_seat(Initial& outside);
// Binds the calling thread, unless it is bound to that place already.
void move_to(int place, int& bound_to) noexcept;
// True if some place has more threads than processors.
[[nodiscard]] bool crowds(const std::vector<Seat>& seats);

}  // namespace imbrex::omp
