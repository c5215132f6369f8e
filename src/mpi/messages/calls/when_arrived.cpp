// SPDX-License-Identifier: BSD-3-Clause
// when_arrived: a future of a matched message. It waits in the communicator's queue like a receive,
// so a dependent task needs no stack and no worker until the message has arrived.
#include <cstdio>
#include <memory>
#include <source_location>
#include <utility>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/mpi.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/messages/matching/communicator.hpp"
#include "mpi/messages/matching/communicators.hpp"
#include "mpi/messages/matching/receive.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex {

namespace {

using namespace mpi::messages;

[[noreturn]] void fail(const char* call, int code) {
  throw mpi::make_error(call, code, detail::describe_current_task());
}

// Tells a trace where the message was found; the trace records the receive when it is taken.
void note_found(MPI_Message message, MPI_Comm comm) {
  if (mpi::switches.traces_messages) mpi::trace_found(message, mpi::members_of(comm));
}

struct Expected : Listener {
  Expected(const Arguments& arguments, Communicator& communicator)
      : receive("when_arrived", arguments, communicator, Receive::Kind::message, true) {
    fire = &Expected::on_completion;
  }

  static void on_completion(Listener& self) noexcept {
    const std::unique_ptr<Expected> owned(static_cast<Expected*>(&self));
    try {
      owned->settle_promise();
    } catch (...) {  // of an error handler of the user, or out of memory
      owned->promise.set_exception(std::current_exception());
    }
  }

  void settle_promise() {
    if (receive.code == MPI_SUCCESS) {
      note_found(receive.message, receive.communicator.handle_unless_freed());
      promise.set(receive.message, receive.status);
    } else {
      promise.set_exception(std::make_exception_ptr(mpi::make_error(
          receive.call.name, mpi::raise_error(receive), detail::describe(task))));
    }
  }

  Receive receive;
  Promise<ArrivedMessage> promise{"arrived message", std::source_location()};
  detail::TaskLabel task = detail::current_task();
};

}  // namespace

Future<ArrivedMessage> when_arrived(int source, int tag, MPI_Comm comm) {
  if (!mpi::in_service()) {
    throw Error(
        "imbrex: when_arrived called outside MPI_Init and MPI_Finalize: call MPI_Init first");
  }
  const Arguments arguments{nullptr, 0, MPI_BYTE, {source, tag}, comm};
  Communicator* const communicator = communicator_of(comm);
  if (communicator == nullptr || source == MPI_PROC_NULL || !communicator->accepts(arguments)) {
    // MPI answers at once: MPI_PROC_NULL, or an error.
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status = {};
    const int code = MPI_Mprobe(source, tag, comm, &message, &status);
    if (code != MPI_SUCCESS) fail("when_arrived", code);
    const Promise<ArrivedMessage> promise("arrived message", std::source_location());
    promise.set(message, status);
    return promise.future();
  }

  auto expected = std::make_unique<Expected>(arguments, *communicator);
  Future<ArrivedMessage> future = expected->promise.future();
  Arrived arrived;
  if (communicator->begin_probe({source, tag}, expected->receive, &arrived) == Begun::held) {
    note_found(arrived.message, comm);
    expected->promise.set(arrived.message, arrived.status);
    return future;
  }
  Expected& waiting = *expected.release();
  if (!waiting.receive.attend(waiting)) Expected::on_completion(waiting);
  mpi::engine().poll();
  if (!future.ready()) detail::wake_poller();  // the caller goes on, so an idle worker must poll
  return future;
}

ArrivedMessage::ArrivedMessage(ArrivedMessage&& other) noexcept
    : message_(std::exchange(other.message_, MPI_MESSAGE_NULL)), status_(other.status_) {}

ArrivedMessage& ArrivedMessage::operator=(ArrivedMessage other) noexcept {
  std::swap(message_, other.message_);
  std::swap(status_, other.status_);
  return *this;
}

ArrivedMessage::~ArrivedMessage() {
  if (message_ == MPI_MESSAGE_NULL || message_ == MPI_MESSAGE_NO_PROC) return;
  std::fprintf(stderr,
               "imbrex: a message from %d with tag %d, %d bytes, that when_arrived() has matched "
               "is dropped: receive() was not called for it\n",
               status_.MPI_SOURCE, status_.MPI_TAG, count(MPI_BYTE));
}

int ArrivedMessage::count(MPI_Datatype type) const {
  int result = 0;
  PMPI_Get_count(&status_, type, &result);
  return result;
}

MPI_Status ArrivedMessage::receive(void* buffer, int count, MPI_Datatype type) const {
  if (message_ == MPI_MESSAGE_NULL) {
    throw Error("imbrex: ArrivedMessage::receive called twice, or on a message that was moved "
                "away, in " + detail::describe_current_task() + ": receive each message once");
  }
  MPI_Status status = status_;
  const int code = MPI_Mrecv(buffer, count, type, &message_, &status);
  if (code != MPI_SUCCESS) fail("ArrivedMessage::receive", code);
  return status;
}

}  // namespace imbrex
