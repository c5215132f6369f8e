// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/sends/send.hpp"

#include <climits>

#include "mpi/abi/completion_calls.hpp"
#include "mpi/abi/inquiries.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/engine.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/sends/window.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex::mpi::sends {

namespace {

int isend(const Outgoing& it, MPI_Request* request) noexcept {
  const auto by = [&](auto function, auto count) {
    return function(it.buffer, count, it.type, it.peer, it.tag, it.comm, request);
  };
#if MPI_VERSION >= 4
  if (it.count > INT_MAX) {
    switch (it.mode) {
      case Mode::standard: return by(PMPI_Isend_c, it.count);
      case Mode::synchronous: return by(PMPI_Issend_c, it.count);
      case Mode::ready: return by(PMPI_Irsend_c, it.count);
    }
  }
#endif
  const int count = static_cast<int>(it.count);
  switch (it.mode) {
    case Mode::standard: break;
    case Mode::synchronous: return by(PMPI_Issend, count);
    case Mode::ready: return by(PMPI_Irsend, count);
  }
  return by(PMPI_Isend, count);
}

}  // namespace

// Reports and errors give its size in bytes, since its type may be freed by then.
Send::Send(const char* const name, const Outgoing& outgoing, const Route& route,
           const std::int64_t bytes, const bool at_once) noexcept
    : Substitute(*route.communicator, Kind::send, false), rank(route.rank), outgoing_(outgoing) {
  call = {.name = name,
          .comm = outgoing.comm,
          .peer = outgoing.peer,
          .tag = outgoing.tag,
          .count = bytes,
          .type = MPI_BYTE,
          .kind = mpi::Kind::send,
          .at_once = at_once};
  complete = &Send::completed;
  turn.owner = this;
  turn.bytes = bytes;
}

Send::~Send() {
  if (keeps_type_) PMPI_Type_free(&outgoing_.type);
}

void Send::cancel() noexcept { window().cancel(*this); }

void Send::keep_type() noexcept {
  keeps_type_ = communicator.is_derived(outgoing_.type);
  if (keeps_type_) outgoing_.type = copy_of(outgoing_.type);
}

bool Send::post() noexcept {
  const Callback callback(call);
  const Asking quiet(true);
  const Outcome outcome = quiet.outcome(isend(outgoing_, &request));
  if (outcome.code == MPI_SUCCESS) return true;
  code = outcome.code;
  handler_ran = false;
  request = MPI_REQUEST_NULL;
  status = messages::empty_status();
  return false;
}

// The engine has found it complete: tasks that wait for it go first, since `self` may be gone then.
void Send::completed(Operation& base) noexcept {
  Send& self = static_cast<Send&>(base);
  window().ended(self);
  if (switches.traces_messages && self.waited > 0 && self.communicator.handle() == self.call.comm) {
    trace_waited(self.call, self.task.id, static_cast<std::uint64_t>(self.waited));
  }
  Substitute::completed(base);
}

}  // namespace imbrex::mpi::sends
