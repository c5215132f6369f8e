// SPDX-License-Identifier: BSD-3-Clause
// What holds for all calls of MPI, decided in MPI_Init or by the first use of something: one struct
// in one cache line, which is all that a call with nothing to do reads. Each switch says who writes
// it; everybody reads it.
#pragma once

#include <atomic>

namespace imbrex::mpi {

// Thread safety: any thread. Relaxed, since MPI orders its users' calls behind MPI_Init, and the
// program orders what it does later: the reader of an old value is a call that came before.
struct alignas(64) Switches {
  // From MPI_Init to MPI_Finalize, which write it: imbrex looks after calls.
  std::atomic<bool> is_active{false};
  // In MPI_Finalize once the library is inactive: MPI calls functions of the program's there (those
  // of the attributes of MPI_COMM_SELF) and ours, in main, and no task is left to be blocked.
  std::atomic<bool> is_ending{false};
  // From MPI_Init to MPI_Finalize, which write it: one thread makes all calls of MPI.
  std::atomic<bool> ships_calls{false};
  // Set for good when a task first asks to block in MPI (detail::set_blocking), or in MPI_Init if
  // OpenMP's shall: the task that asked sees its own store.
  std::atomic<bool> some_task_blocks{false};
  // Set for good by calls that reach processes outside of MPI_COMM_WORLD.
  std::atomic<bool> other_processes{false};
  // Somebody looks on at calls (told.hpp). Set by MPI_Init, or before an event handler is known.
  std::atomic<bool> tells_calls{false};
  // Calls on some communicator may go block by block. Written by MPI_Init, MPI_Finalize, and where
  // a communicator is given an info.
  std::atomic<bool> goes_by_blocks{false};

  // These are written by MPI_Init only, before any task calls MPI, but for compares_ranks, which
  // MPI_Finalize takes back after the last task.
  bool learns_senders = false;   // a policy learns which tasks send
  bool traces_messages = false;  // messages are recorded
  bool checks = false;           // IMBREX_CHECK is on for this rank
  bool compares_ranks = false;   // and for all ranks
};
inline constinit Switches switches;

}  // namespace imbrex::mpi
