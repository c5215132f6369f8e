// SPDX-License-Identifier: BSD-3-Clause
// The rank that a remote call names. Included by remote.hpp.
#pragma once

#include <source_location>

namespace imbrex {

/// A rank, and the place of the call in the program. The number that is given to call() converts to
/// it. Thread safety: a value.
struct CalledRank {
  /// Made of a number below the size of the communicator; call() throws Error for another number.
  CalledRank(const int its_rank,  // NOLINT: converts
             const std::source_location& place = std::source_location::current()) noexcept
      : rank(its_rank), where(place) {}
  int rank;
  std::source_location where;
};

}  // namespace imbrex
