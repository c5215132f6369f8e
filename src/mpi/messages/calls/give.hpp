// SPDX-License-Identifier: BSD-3-Clause
// Requests that the program gives away: its handle becomes null at once, and a function is called
// when the operation is complete. The base of imbrex::when(), release_after() and finish_owns(), of
// TAMPI, of continuations and of completion queues.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>

#include "imbrex/detail/observation.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/messages/matching/substitute.hpp"

namespace imbrex::mpi::messages {

// What becomes of a request that is given away. It owns the operation from then on. Thread safety:
// the caller of give_request() until that returns; then the thread that calls `done`.
struct Given : Listener {
  enum class End : std::uint8_t {
    ended,      // the operation's code and status say how
    persistent  // it has succeeded, but the request was persistent: nobody has it, so it is freed
  };
  // Called once, by any thread, in no task; ends `self`, now or later. No error handler has been
  // called yet.
  using Done = void(Given& self, End end) noexcept;

  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;
  // For a request that was complete when it was given: calls `done`.
  void finish() noexcept { fire(*this); }

  Done* const done;
  std::uint64_t giver = detail::current_task().id;  // for traces
  // The next two belong to give_request(). The operation; null: no request was given.
  Operation* its = nullptr;
  MPI_Request persistent = MPI_REQUEST_NULL;  // the handle, if the operation is a Substitute

 protected:
  explicit Given(Done* function) noexcept;
  ~Given();
};

enum class Gave : std::uint8_t {
  away,      // `done` will be called, or has been; the caller calls detail::wake_poller() before it
             // goes on, so that an idle worker polls
  complete,  // the caller must call finish(), now or later
  refused    // nothing has happened: a persistent request that is not active
};
// `tests`: asks MPI first whether its request is complete; without it, it is `away`. The name of
// `call` is a literal; `future`, for traces, may be null. The caller still owns `given` if the
// request is refused, or if std::bad_alloc is thrown. Thread safety: any thread; one thread at a
// time for one handle, as in MPI. Does not suspend.
[[nodiscard]] Gave give_request(const Call& call, MPI_Request& request, Given& given, bool tests,
                                const detail::Completion* future);

// Asks to cancel the operations that were given and that `is_it` recognises. Too late is no error.
// `is_it` is called with a lock held; `done` tells it the class of its argument.
void cancel_given(const std::function<bool(const Given&)>& is_it);

}  // namespace imbrex::mpi::messages
