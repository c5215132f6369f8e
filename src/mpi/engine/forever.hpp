// SPDX-License-Identifier: BSD-3-Clause
// An object that exists before any code runs and is never destroyed: threads may use it while
// static objects are made and destroyed.
#pragma once

namespace imbrex::mpi {

// Thread safety: as `it`. REQUIRES: a constinit variable, so T has a constexpr constructor.
template <class T>
union Forever {
  constexpr Forever() : it() {}
  constexpr ~Forever() {}
  Forever(const Forever&) = delete;
  Forever& operator=(const Forever&) = delete;
  T it;
};

}  // namespace imbrex::mpi
