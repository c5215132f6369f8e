// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/lifetime.hpp"

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/mpi_errors.hpp"

namespace imbrex::mpi {

bool call_while_inactive() noexcept {
  static std::atomic<bool> printed{false};  // any thread
  if (detail::in_task() && !switches.is_ending.load(std::memory_order_relaxed) &&
      !printed.exchange(true, std::memory_order_relaxed)) {
    say("an MPI call in task " + detail::describe_current_task() +
        " may block its worker: imbrex suspends tasks in MPI only between MPI_Init and "
        "MPI_Finalize. A program that uses sessions can call MPI_Init, too.");
  }
  return false;
}

}  // namespace imbrex::mpi
