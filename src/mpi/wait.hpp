// SPDX-License-Identifier: BSD-3-Clause
// How a call that blocks is carried out in a task: start its non-blocking twin, look once, poll in
// place while nothing else could run, else suspend. Used by interpose.cpp and request.cpp.
#pragma once

#include <mpi.h>

#include "engine.hpp"
#include "world.hpp"

namespace imbrex::mpi {

// True if a blocking call of this thread suspends a task: the library is initialised, and the
// thread stands in a task, not in a callback.
[[nodiscard]] inline bool suspends() noexcept { return active() && detail::in_task(); }

// A question to MPI that does not block: sets *done. It is asked in a Callback.
struct Question {
  Said (*function)(void* arguments, int* done);
  void* arguments;
};

// REQUIRES: `lambda` outlives the question.
template <class F>
[[nodiscard]] Question question(F& lambda) noexcept {
  return {[](void* arguments, int* done) -> Said {
            return (*static_cast<F*>(arguments))(done);
          },
          &lambda};
}

// Asks until the answer is yes or an error; returns MPI's code. REQUIRES: suspends(). Suspends.
[[nodiscard]] int wait_until(const Call& call, Question answer);

// The code that the call returns, after the error handler that is still owed.
[[nodiscard]] int settle(const Call& call, const Said& said);

// As MPI_Wait. REQUIRES: suspends(). Suspends.
[[nodiscard]] int wait_for(const Call& call, MPI_Request& request, MPI_Status* status);

// The same for one request that has been asked for once, in vain. Suspends.
[[nodiscard]] int wait_pending(const Call& call, MPI_Request& request, MPI_Status* status);

// Starts an operation and waits for it. `start(&request)` returns MPI's code. Suspends.
template <class Start>
[[nodiscard]] int carry_out(const Call& call, MPI_Status* status, Start start) {
  MPI_Request request = MPI_REQUEST_NULL;
  int done = 0;
  Said said = MPI_SUCCESS;
  {
    const Callback callback;
    said = start(&request);
    if (said.code != MPI_SUCCESS) return said.code;
    said = asked::Test(&request, &done, status);
  }
  if (done != 0 || said.code != MPI_SUCCESS) return settle(call, said);
  return wait_pending(call, request, status);
}

// What a failed operation that the engine completed still owes: the communicator's error handler.
// Returns the code that the call returns. REQUIRES: operation.code is an error.
[[nodiscard]] int raise_error(const Operation& operation);

}  // namespace imbrex::mpi
