// SPDX-License-Identifier: BSD-3-Clause
// The boundary between C++ and C for functions that call MPI.
#pragma once

#include <utility>

#include "c/guard.hpp"
#include "imbrex/mpi.h"
#include "imbrex/mpi.hpp"

namespace imbrex::mpi {

// c::guard() with a code for MPI errors; other errors are wrong use.
template <class F>
int guard_mpi(F&& call) noexcept {
  int code = IMBREX_ERR_USE;
  return c::guard(code, [&] {
    try {
      std::forward<F>(call)();
    } catch (const MpiError&) {
      code = IMBREX_ERR_MPI;
      throw;
    }
  });
}

}  // namespace imbrex::mpi
