// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/lifetime.hpp"

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/waist.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/mpi_errors.hpp"

namespace imbrex::mpi {

namespace {

std::atomic<bool> in_child{false};  // written while the process has one thread

void report_child() noexcept {
  static std::atomic<bool> printed{false};  // any thread
  if (printed.exchange(true, std::memory_order_relaxed)) return;
  print("MPI is called in a child of fork(), which is no rank: imbrex leaves the call to MPI, "
        "where it may fail, wait for ever, or take messages of the parent. Call MPI in the parent, "
        "or start ranks by mpirun or MPI_Comm_spawn.");
}

}  // namespace

void leave_calls_to_mpi() noexcept {
  if (!switches.is_active.load(std::memory_order_relaxed)) return;
  switches.is_active.store(false, std::memory_order_relaxed);
  switches.ships_calls.store(false, std::memory_order_relaxed);
  switches.observes_calls.store(false, std::memory_order_relaxed);
  switches.goes_by_blocks.store(false, std::memory_order_relaxed);
  in_child.store(true, std::memory_order_relaxed);
}

bool call_while_inactive() noexcept {
  if (in_child.load(std::memory_order_relaxed)) {
    report_child();
    return false;
  }
  static std::atomic<bool> printed{false};  // any thread
  if (detail::in_task() && !switches.is_ending.load(std::memory_order_relaxed) &&
      !printed.exchange(true, std::memory_order_relaxed)) {
    print("an MPI call in task " + detail::describe_current_task() +
          " may block its worker: imbrex suspends tasks in MPI only between MPI_Init and "
          "MPI_Finalize. A program that uses sessions can call MPI_Init, too.");
  }
  return false;
}

}  // namespace imbrex::mpi
