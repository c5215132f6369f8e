// SPDX-License-Identifier: BSD-3-Clause
// Facts about all calls of MPI, decided in MPI_Init or at a first use: one struct in one cache
// line, which is all that a call with nothing to do reads. Each switch names its writer; any thread
// reads it.
#pragma once

#include <atomic>

namespace imbrex::mpi {

// Thread safety: any thread. Relaxed, since MPI orders calls behind MPI_Init, and the program
// orders later events: the reader of an old value is a call that came before.
struct alignas(64) Switches {
  // From MPI_Init to MPI_Finalize, which write it: imbrex handles calls.
  std::atomic<bool> is_active{false};
  // In MPI_Finalize once the library is inactive: MPI calls functions of the program there (of
  // attributes of MPI_COMM_SELF) and of this library, in main, and no task is left that could be
  // blocked.
  std::atomic<bool> is_ending{false};
  // From MPI_Init to MPI_Finalize, which write it: one thread makes all calls of MPI.
  std::atomic<bool> ships_calls{false};
  // Set for good when a task first asks to block in MPI (detail::set_blocking), or in MPI_Init if
  // OpenMP's tasks shall block: the task that sets the switch sees its own store.
  std::atomic<bool> some_task_blocks{false};
  // Set for good by calls that reach processes outside of MPI_COMM_WORLD.
  std::atomic<bool> other_processes{false};
  // An observer watches calls (observed.hpp). Set by MPI_Init, or before an event handler is set.
  std::atomic<bool> observes_calls{false};
  // Calls on a communicator may go block by block. Written by MPI_Init, MPI_Finalize, and where a
  // communicator is given an info.
  std::atomic<bool> goes_by_blocks{false};

  // Only MPI_Init writes these, before any task calls MPI; except compares_ranks, which
  // MPI_Finalize resets after the last task.
  bool learns_senders = false;   // a policy learns which tasks send
  bool traces_messages = false;  // messages are recorded
  bool checks = false;           // IMBREX_CHECK is on for this rank
  bool compares_ranks = false;   // IMBREX_CHECK is on for all ranks
};
inline constinit Switches switches;

}  // namespace imbrex::mpi
