// SPDX-License-Identifier: BSD-3-Clause
// Reductions: the elements of each participating rank, and the tree along which they are combined.
// All ranks know the participants, and so the tree, from their records.
#include <algorithm>
#include <utility>

#include "distributed/data/space/space.hpp"

namespace imbrex::detail {

using distributed::Copy;
using distributed::Site;

void DataSpace::join_reduction(Datum& datum, const DataReduction& reduction, const int rank) {
  datum.reduction = &reduction;
  if (datum.owner < 0) datum.owner = rank;
  if (std::ranges::find(datum.reducers, rank) == datum.reducers.end()) {
    datum.reducers.push_back(rank);
  }
}

// The root is the source of the value so far, or the first participant if there is none. The parent
// of a place in the list has its lowest bit cleared.
void DataSpace::combine(Datum& datum, const Site& site) {
  const bool has_value = datum.source >= 0;
  const int root = has_value ? datum.source : datum.reducers.front();
  std::vector<int> members{root};
  for (const int rank : datum.reducers) {
    if (rank != root) members.push_back(rank);
  }
  const auto found = std::ranges::find(members, me_);
  if (found != members.end()) {
    combine_here(datum, members, static_cast<std::size_t>(found - members.begin()), site);
  }
  datum.reduction = nullptr;
  datum.reducers.clear();
  written(datum, root, site);
}

void DataSpace::combine_here(Datum& datum, const std::span<const int> members,
                             const std::size_t place, const Site& site) {
  const DataReduction* const reduction = datum.reduction;
  Copy* const partial = std::exchange(datum.partial, nullptr);
  Copy* into = partial;
  if (place == 0 && datum.source >= 0) {
    // In the program's memory, if the value was moved away from it and has come back.
    if (datum.home != nullptr && datum.current != datum.home) {
      merge(datum, *datum.home, *datum.current, nullptr, site);
    }
    into = &target(datum);
    if (partial != nullptr) merge(datum, *into, *partial, reduction, site);
  }
  for (std::size_t step = 1; (place & step) == 0 && place + step < members.size(); step *= 2) {
    Copy& other = receive(datum, members[place + step]);
    merge(datum, *into, other, reduction, site);
    other.release();
  }
  if (place != 0) {
    send_once(datum, *into, members[place & (place - 1)], site);
  } else if (datum.source < 0) {
    datum.current = std::exchange(into, nullptr);
    return;
  }
  if (partial != nullptr) partial->release();
}

}  // namespace imbrex::detail
