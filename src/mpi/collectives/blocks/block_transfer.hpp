// SPDX-License-Identifier: BSD-3-Clause
// One message of a partial collective. A plan of a collective is a list of transfers: the code that
// makes it begins the receives first and then the sends, each once, and gets a call for the end of
// each.
#pragma once

#include <mpi.h>

#include "mpi/collectives/blocks/block_channel.hpp"

namespace imbrex::mpi::blocks {

// It does not move until `ended` has been called. Thread safety: any thread calls begin_*(), once.
struct Transfer {
  // `code`: of MPI, or MPI_ERR_OTHER for a receive that is `withdrawn`. Called once, by any thread,
  // without a lock of the library and in no task; it may begin other transfers. It may come before
  // begin_*() has returned.
  void (*ended)(Transfer& self, int code) noexcept = nullptr;
  void* address = nullptr;  // of the first element; a send only reads there
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;  // the caller keeps it, if it is not a named one
  int peer = 0;
  int tag = 0;
  bool withdrawn = false;  // a receive that has ended: the other rank does not send the data
};

// `call`, a literal, is the program's call, for reports.
void begin_receive(Place& place, Transfer& transfer, const char* call);
// Waits for its turn among the long messages to that rank (sends/).
void begin_send(Place& place, Transfer& transfer, const char* call);
// In place of begin_send(): tells the other rank, by a message of no bytes, that the data never
// come. REQUIRES: the data have bytes on both ranks.
void begin_withdrawal(Place& place, Transfer& transfer, const char* call);
// A reduction over all ranks, from `from` to the transfer's address; all ranks begin theirs in one
// order.
void begin_reduction(Place& place, Transfer& transfer, const void* from, MPI_Op op,
                     const char* call);
// From this rank to itself: both transfers have ended at the return, with the returned code.
[[nodiscard]] int copy(Place& place, const Transfer& from, const Transfer& to) noexcept;

}  // namespace imbrex::mpi::blocks
