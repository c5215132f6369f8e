// SPDX-License-Identifier: BSD-3-Clause
// The boundary between C++ and C for functions that call MPI.
#pragma once

#include <string>
#include <utility>

#include "c/guard.hpp"
#include "imbrex/mpi.h"
#include "imbrex/mpi.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/handlers.hpp"

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

// Throws Error if `call` may not be made now.
inline void require_service(const std::string& call) {
  if (refused(call.c_str())) {
    throw Error("imbrex: " + call + " is called within an event handler: make the call outside of "
                "the handler");
  }
  if (!switches.is_active.load(std::memory_order_relaxed)) {
    throw Error("imbrex: " + call + " is called outside of MPI_Init and MPI_Finalize: call "
                "MPI_Init first");
  }
}

}  // namespace imbrex::mpi
