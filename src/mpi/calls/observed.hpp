// SPDX-License-Identifier: BSD-3-Clause
// The observers of the program's calls: the trace, policies that learn which tasks send
// (sending_calls.hpp), and IMBREX_CHECK; and the refusal of calls in event handlers. The functions
// that observed.py makes (observed_calls.cpp) call this before and after the library's own. Thread
// safety: any thread.
#pragma once

#include <mpi.h>

#include "mpi/abi/switches.hpp"
#include "mpi/check/checks.hpp"
#include "mpi/check/unordered.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/engine/handlers.hpp"
#include "mpi/messages/calls/sending_calls.hpp"
#include "mpi/messages/requests/program_handles.hpp"
#include "mpi/recording/message_records.hpp"
#include "mpi/recording/window_locks.hpp"

namespace imbrex::mpi::observed {

// ---- messages --------------------------------------------------------------------------------

// Before MPI has the message. Returns the number of its request in a trace, or 0.
inline std::uint32_t sends(const Call& call) noexcept {
  if (check::on()) check::post(call);
  if (switches.learns_senders) sending_calls::message(call.peer);
  return switches.traces_messages ? trace_sent(call) : 0;
}
// `request` stands for the message with this number.
inline void sent(const int code, const MPI_Request* const request, const std::uint32_t number) {
  if (number != 0 && code == MPI_SUCCESS) trace_begun(*request, number);
}
// A call that sends and receives at once: the trace sees its send as one with a request.
inline std::uint32_t exchanges(Call call) noexcept {
  call.at_once = true;
  return sends(call);
}
inline void exchanged(const std::uint32_t number) noexcept {
  if (number != 0) trace_over(number);
}

// Before MPI has the receive.
inline void receives(const Call& call) noexcept {
  if (check::on()) check::post(call);
}

// ---- order -----------------------------------------------------------------------------------

// Whether the completion of these requests depends on another rank (check::are_nonlocal()); asked
// before the call, since the requests are then gone.
[[nodiscard]] inline bool are_nonlocal(const int count, const MPI_Request* const requests) {
  return check::on() && check::are_nonlocal(count, requests);
}
// The running task follows everything before, if a call that has completed was non-local: another
// rank may have completed it because it had got a message from here.
inline void follows(const bool nonlocal) noexcept {
  if (nonlocal) detail::follow_everything();
}

// Before the running task waits for requests.
inline void waits(const char* const call, const WaitsFor what, const int count,
                  const MPI_Request* const requests) noexcept {
  if (switches.traces_messages) trace_waiting(call, what, count, requests);
}

// An operation that the trace does not contain.
inline void unrecorded(const char* const what) noexcept {
  if (switches.traces_messages) detail::trace_unrecorded(what);
}

// The communicator of the message that is about to be received; null if there is no observer.
[[nodiscard]] inline const Members* taken(const MPI_Message* const message) noexcept {
  return switches.traces_messages ? trace_taken(*message) : nullptr;
}

// A blocking receive. It gives the call a status to fill, if the program passes none.
class Received {
 public:
  explicit Received(MPI_Status*& status) noexcept {
    if (switches.traces_messages && status == MPI_STATUS_IGNORE) status = &own_;
    status_ = status;
  }
  Received(const Received&) = delete;
  Received& operator=(const Received&) = delete;

  void end(const int code, const Members* const where) const noexcept {
    if (switches.traces_messages && code == MPI_SUCCESS) trace_received(where, *status_, 0);
  }
  void end(const int code, MPI_Comm where) const {
    if (switches.traces_messages && code == MPI_SUCCESS) end(code, members_of(where));
  }

 private:
  MPI_Status own_;
  const MPI_Status* status_;
};

// MPI_Imrecv. A receive of this library reports itself.
inline void takes(const int code, const MPI_Request* const request, const Members* const where) {
  if (where != nullptr && code == MPI_SUCCESS && messages::substitute(*request) == nullptr) {
    trace_receive(*request, where);
  }
}

// MPI_Isendrecv: one request for both. `out_buffer` is null if the request belongs to the receive.
inline void begun(const int code, const MPI_Request* const request, const Call& out,
                  const void* const out_buffer, const Call& in, const void* const in_buffer) {
  (void)check::begun({.name = out.name, .comm = out.comm}, request, code, [&] {
    check::Buffers buffers;
    if (in.peer != MPI_PROC_NULL) buffers.push_back({in_buffer, in.count, in.type, true});
    if (out.peer != MPI_PROC_NULL && out_buffer != nullptr) {
      buffers.push_back({out_buffer, out.count, out.type, false});
    }
    return buffers;
  });
}

// ---- persistent requests ---------------------------------------------------------------------

// A persistent send.
inline void prepared(const int code, const MPI_Request* const request, const Call& out) {
  if (code != MPI_SUCCESS) return;
  if (switches.learns_senders) sending_calls::note_persistent(code, request);
  if (switches.traces_messages) trace_send_init(*request, out);
}

inline void starting(const int count, const MPI_Request* const requests) noexcept {
  if (switches.learns_senders) sending_calls::start(count, requests);
  for (int i = 0; check::on() && i < count; ++i) check::post_request(requests[i]);
  for (int i = 0; switches.traces_messages && i < count; ++i) trace_start(requests[i]);
}
inline void started(const int code, const int count, const MPI_Request* const requests) {
  if (!check::on() || code != MPI_SUCCESS) return;
  for (int i = 0; i < count; ++i) check::start_request(requests[i]);
}

// Any request, before its handle becomes invalid.
inline void freeing(const MPI_Request* const request) noexcept {
  if (switches.learns_senders) sending_calls::freed(request);
  if (switches.traces_messages) trace_freed(*request);
  check::forget_request(*request);
}

}  // namespace imbrex::mpi::observed
