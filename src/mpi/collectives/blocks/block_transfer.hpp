// SPDX-License-Identifier: BSD-3-Clause
// One message of a partial collective. A plan of a collective is a list of these: whoever makes it
// begins the receives first and then the sends, each once, and is told of the end of each.
#pragma once

#include <mpi.h>

#include "mpi/collectives/blocks/block_channel.hpp"

namespace imbrex::mpi::blocks {

// It stays where it is until `ended` has been called.
// Thread safety: begin_*() once, by any thread.
struct Transfer {
  // `code`: MPI's, or MPI_ERR_OTHER of a receive that is `withdrawn`. Called once, by any thread,
  // without a lock of ours and in no task; it may begin other transfers. Perhaps before begin_*()
  // has returned.
  void (*ended)(Transfer& self, int code) noexcept = nullptr;
  void* address = nullptr;  // of the first element; only read by a send
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;  // of which the caller keeps what is not a named one
  int peer = 0;
  int tag = 0;
  bool withdrawn = false;  // of a receive that has ended: the other rank does not send it
};

// `call`, a literal, is what the program called, for reports.
void begin_receive(Place& place, Transfer& transfer, const char* call);
// Takes its turn among the long messages to that rank (sends/).
void begin_send(Place& place, Transfer& transfer, const char* call);
// In place of begin_send(): tells the other rank that it never gets it, by a message of no bytes.
// REQUIRES: what it sends, and so what the other one receives, has bytes.
void begin_withdrawal(Place& place, Transfer& transfer, const char* call);
// A reduction of all ranks, from `from` to the transfer's address; all begin theirs in one order.
void begin_reduction(Place& place, Transfer& transfer, const void* from, MPI_Op op,
                     const char* call);
// From this rank to itself: both have ended at the return, with the code that it returns.
[[nodiscard]] int copy(Place& place, const Transfer& from, const Transfer& to) noexcept;

}  // namespace imbrex::mpi::blocks
