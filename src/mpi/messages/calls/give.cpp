// SPDX-License-Identifier: BSD-3-Clause
// A request of MPI lies in an operation on the heap until the engine has completed it. An operation
// that imbrex matches or sends itself reports its own completion.
#include "mpi/messages/calls/give.hpp"

#include <memory>
#include <utility>

#include "imbrex/detail/plug_ins.hpp"
#include "mpi/abi/switches.hpp"
#include "mpi/messages/calls/receives.hpp"
#include "mpi/messages/requests/generalized_request.hpp"
#include "mpi/messages/requests/persistent.hpp"
#include "mpi/messages/requests/program_handles.hpp"
#include "mpi/messages/requests/request_table.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex::mpi::messages {

namespace {

// The program does not have the handle any more, and MPI may reuse it.
void free_persistent_of_mpi(MPI_Request& request) noexcept {
  if (switches.traces_messages) trace_freed(request);
  Persistent* const known = requests().find(request).persistent();
  if (known != nullptr) {
    (void)free_persistent(*known, &request);
  } else {
    PMPI_Request_free(&request);
  }
}

// A request of MPI.
struct GivenOperation : Operation {
  Given* given = nullptr;
  MPI_Request handle = MPI_REQUEST_NULL;  // the program had this one

  static void on_completion(Operation& self) noexcept {
    auto& its = static_cast<GivenOperation&>(self);
    const bool succeeded = its.code == MPI_SUCCESS;
    if (switches.traces_messages && succeeded) {
      trace_completed(its.handle, its.status, its.given->giver);
    }
    requests().complete(its.handle);
    // A complete request that still exists is persistent.
    const bool persistent = succeeded && its.request != MPI_REQUEST_NULL;
    if (persistent) free_persistent_of_mpi(its.request);
    its.given->done(*its.given, persistent ? Given::End::persistent : Given::End::ended);
  }
};

bool is_of_mpi(const Operation& operation) noexcept {
  return operation.complete == &GivenOperation::on_completion;
}

// The operation of `self`, a Given, is complete.
void on_completion(Listener& self) noexcept {
  Given& given = static_cast<Given&>(self);
  if (is_of_mpi(*given.its)) return GivenOperation::on_completion(*given.its);
  Substitute& its = static_cast<Substitute&>(*given.its);
  const bool succeeded = its.code == MPI_SUCCESS;
  const bool persistent = given.persistent != MPI_REQUEST_NULL;
  if (persistent) {
    its.persistent()->active = nullptr;
    (void)free_persistent(*its.persistent(), &given.persistent);
  }
  if (!succeeded) {
    its.forget_freed();
  } else if (switches.traces_messages) {
    trace_completed(its, MPI_REQUEST_NULL, given.giver);
  }
  given.done(given, persistent && succeeded ? Given::End::persistent : Given::End::ended);
}

Gave give_ours(Substitute& ours, MPI_Request& request, Given& given,
               const detail::Completion* future) {
  Token* const token = ours.token();
  if (token == nullptr) {
    if (ours.done()) return Gave::refused;
    given.persistent = request;
  }
  if (switches.traces_messages) trace_given(request, future, &ours);
  given.its = &ours;
  give_up(ours, request);
  const bool waits = ours.attend(given);
  if (token != nullptr) give_token(*token);  // not the operation's: that may have ended
  return waits ? Gave::away : Gave::complete;
}

}  // namespace

Given::Given(Done* const function) noexcept
    : Listener{.fire = &on_completion, .woken = {}}, done(function) {}

Given::~Given() {
  if (its == nullptr) return;
  if (is_of_mpi(*its)) {
    const std::unique_ptr<GivenOperation> ended(static_cast<GivenOperation*>(its));
  } else {
    const std::unique_ptr<Substitute> ended(static_cast<Substitute*>(its));
  }
}

Gave give_request(const Call& call, MPI_Request& request, Given& given, const bool tests,
                  const detail::Completion* const future) {
  if (Substitute* const ours = substitute(request)) {
    return give_ours(*ours, request, given, future);
  }
  auto operation = std::make_unique<GivenOperation>();
  operation->call = naming_communicator(call, request);
  operation->complete = &GivenOperation::on_completion;
  operation->given = &given;
  operation->handle = request;
  if (switches.traces_messages) trace_given(request, future, nullptr);

  int done = 0;
  if (tests) {
    const Callback callback;
    operation->take(completion::Test(&request, &done, &operation->status));
    if (done != 0 && request != MPI_REQUEST_NULL) return Gave::refused;
  }
  operation->request = std::exchange(request, MPI_REQUEST_NULL);
  GivenOperation& lasting = *operation.release();
  given.its = &lasting;
  if (done != 0 || lasting.code != MPI_SUCCESS) return Gave::complete;
  engine().add(lasting);
  return Gave::away;
}

void cancel_given(const std::function<bool(const Given&)>& is_it) {
  cancel_where(
      [&](const Listener& listener) {
        return listener.fire == &on_completion && is_it(static_cast<const Given&>(listener));
      },
      [&](const Operation& operation) {
        return is_of_mpi(operation) &&
               is_it(*static_cast<const GivenOperation&>(operation).given);
      });
}

}  // namespace imbrex::mpi::messages
