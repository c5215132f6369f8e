// SPDX-License-Identifier: BSD-3-Clause
#include "omp/environment/seats.hpp"

#include <algorithm>

namespace imbrex::omp {

namespace {

// With more threads than places each place gets several threads; the rest go one by one, from the
// creator's place on.
int step_of(const int thread, const int threads, const int places) noexcept {
  const int each = threads / places;
  return thread < each * places ? thread / each : thread - each * places;
}

// Part `index` of `parts` of a partition: the first parts have one more place if the number does
// not divide.
Seat part_of(const Seat& whole, const int parts, const int index) noexcept {
  const int each = whole.count / parts;
  const int more = whole.count % parts;
  const int first = whole.first + index * each + std::min(index, more);
  return {first, first, index < more ? each + 1 : each};
}

}  // namespace

std::vector<Seat> seats_for(const int threads, const Binding binding, const Seat& creator) {
  std::vector<Seat> seats(static_cast<std::size_t>(threads), creator);
  if (threads == 1 || binding == Binding::primary || binding == Binding::none) return seats;
  const int places = creator.count;
  const auto place_after = [&](const int step) {
    return creator.first + (creator.place - creator.first + step) % places;
  };
  if (binding == Binding::spread && threads <= places) {
    int own = 0;
    while (part_of(creator, threads, own).first + part_of(creator, threads, own).count <=
           creator.place) {
      ++own;
    }
    for (int thread = 0; thread < threads; ++thread) {
      seats[static_cast<std::size_t>(thread)] = part_of(creator, threads, (own + thread) % threads);
    }
    seats[0].place = creator.place;
    return seats;
  }
  for (int thread = 0; thread < threads; ++thread) {
    Seat& seat = seats[static_cast<std::size_t>(thread)];
    seat.place = place_after(threads <= places ? thread : step_of(thread, threads, places));
    if (binding == Binding::spread) {
      seat.first = seat.place;
      seat.count = 1;
    }
  }
  return seats;
}

}  // namespace imbrex::omp
