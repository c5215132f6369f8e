// SPDX-License-Identifier: BSD-3-Clause
// The ways to write a step, after Capra et al., sections 3 to 5. All begin with copy 0 of the field
// and leave the result in copy `steps & 1`.
#pragma once

#include "field.hpp"

namespace stencil1d {

// The messages alone, without any computation: leaves no result.
void run_messages(const Domain& domain, Field& field, int steps);
// Messages are exchanged, then all is computed in a parallel loop: nothing overlaps.
void run_block(const Domain& domain, Field& field, int steps);
// Messages are begun, the core is computed in a parallel loop, then the messages are waited for,
// then the borders are computed. (Their reference.)
void run_bulk(const Domain& domain, Field& field, int steps);
// One loop splits into the parts that can be done now: each worker that wants work tests the
// messages first. (Listing 1.1.)
void run_split(const Domain& domain, Field& field, int steps);
// A task for each message, which tests and yields until it is there. (Listing 1.2.)
void run_yield(const Domain& domain, Field& field, int steps);
// Tasks with accesses and priorities, without a barrier between steps; they block in MPI.
// (Listing 1.3, without its polling.)
void run_tasks(const Domain& domain, Field& field, int steps);
// A progress function and triggers of named events. (Listing 1.4.)
void run_triggers(const Domain& domain, Field& field, int steps);

// The messages of one step.
struct Messages {
  Messages(const Domain& domain, Field& field, int step);

  MPI_Request receive[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};  // by Side
  MPI_Request send[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
};

}  // namespace stencil1d
