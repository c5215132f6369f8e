// SPDX-License-Identifier: BSD-3-Clause
// Two sends, or two receives, of one envelope (communicator, rank and tag) by tasks that nothing in
// the program orders: MPI matches them in the order in which they come, so the tasks may get or
// give each other's data. Knows the last send and the last receive of each envelope. Used under
// IMBREX_CHECK; docs/design/races.md says how the order of tasks is known.
#pragma once

#include <mpi.h>

#include "mpi/engine/engine.hpp"
#include "mpi/report/waits/mpi_waits.hpp"

namespace imbrex::mpi::check {

struct Envelope {
  MPI_Comm comm;
  int peer;
  int tag;
  bool receives;
};
[[nodiscard]] inline Envelope envelope_of(const Call& call) noexcept {
  return {call.comm, call.peer, call.tag, call.kind == Kind::receive};
}
// Whether a message with this envelope goes to one place: it has no wildcard, and exists.
[[nodiscard]] bool is_exact(const Envelope& envelope) noexcept;

// The running task is about to begin this send or receive. REQUIRES: is_exact().
void post(const Envelope& envelope, const report::Wait& wait);
inline void post(const Call& call) {
  if (is_exact(envelope_of(call))) post(envelope_of(call), report::wait_of(call));
}

// The communicator is about to be freed: its handle may come again.
void forget_posts(MPI_Comm comm) noexcept;

}  // namespace imbrex::mpi::check
