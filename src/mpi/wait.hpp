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

// A question to MPI that does not block: returns MPI's code, sets *done. It is asked in a Callback.
struct Question {
  int (*function)(void* arguments, int* done);
  void* arguments;
};

// REQUIRES: `lambda` outlives the question.
template <class F>
[[nodiscard]] Question question(F& lambda) noexcept {
  return {[](void* arguments, int* done) { return (*static_cast<F*>(arguments))(done); }, &lambda};
}

// Asks until the answer is yes or an error; returns MPI's code. REQUIRES: suspends(). Suspends.
[[nodiscard]] int wait_until(const Call& call, Question answer);

// The same for one request that has been asked for once, in vain; as MPI_Wait. Suspends.
[[nodiscard]] int wait_pending(const Call& call, MPI_Request& request, MPI_Status* status);

// Starts an operation and waits for it. `start(&request)` returns MPI's code. Suspends.
template <class Start>
[[nodiscard]] int carry_out(const Call& call, MPI_Status* status, Start start) {
  MPI_Request request = MPI_REQUEST_NULL;
  int done = 0;
  int code;
  {
    const Callback callback(call);
    code = start(&request);
    if (code == MPI_SUCCESS) code = PMPI_Test(&request, &done, status);
  }
  if (done != 0 || code != MPI_SUCCESS) return code;
  return wait_pending(call, request, status);
}

}  // namespace imbrex::mpi
