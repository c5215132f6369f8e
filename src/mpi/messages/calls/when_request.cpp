// SPDX-License-Identifier: BSD-3-Clause
// Requests in C++: await, when, release_after, finish_owns. A request that is handed over lies in
// an operation on the heap until the engine has completed it.
#include "mpi/messages/calls/when_request.hpp"

#include <exception>
#include <memory>
#include <source_location>
#include <utility>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/mpi.h"
#include "mpi/abi/switches.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/messages/calls/receives.hpp"
#include "mpi/messages/matching/substitute.hpp"
#include "mpi/messages/matching/wait.hpp"
#include "mpi/messages/requests/generalized_request.hpp"
#include "mpi/messages/requests/persistent.hpp"
#include "mpi/messages/requests/program_handles.hpp"
#include "mpi/messages/requests/request_table.hpp"
#include "mpi/recording/message_records.hpp"

namespace imbrex {

namespace {

using mpi::Operation;
using mpi::messages::Substitute;

void require_active(const char* call) {
  if (mpi::in_service()) return;
  throw Error(std::string("imbrex: ") + call +
              " called outside MPI_Init and MPI_Finalize: call MPI_Init first");
}

// Sets the promise for a request that was handed over, once it is complete.
struct Promised {
  Promised(const char* its_call, const mpi::StatusPlace& its_place)
      : call(its_call), place(its_place) {}

  void complete(const Operation& operation, bool persistent) noexcept {
    try {
      const int code =
          operation.code == MPI_SUCCESS ? MPI_SUCCESS : mpi::raise_error(operation);
      if (place.write != nullptr) place.write(place.to, operation.status, code);
      if (operation.code != MPI_SUCCESS) {
        promise.set_exception(
            std::make_exception_ptr(mpi::make_error(call, code, detail::describe(task))));
      } else if (persistent) {
        promise.set_exception(std::make_exception_ptr(refuse()));
      } else {
        promise.set(operation.status);
      }
    } catch (...) {  // of an error handler of the user, or out of memory
      promise.set_exception(std::current_exception());
    }
  }

  // A complete request that still exists is persistent.
  [[nodiscard]] Error refuse() const {
    return Error(std::string("imbrex: ") + call + " was given a persistent request (by " +
                 detail::describe(task) +
                 "), which it cannot give back: use MPI_Wait or imbrex::await()");
  }

  const char* call;
  mpi::StatusPlace place;
  detail::TaskLabel task = detail::current_task();
  Promise<MPI_Status> promise{"MPI request", std::source_location()};
};

// A persistent request that was handed over: the program does not have its handle any more, and MPI
// may reuse it.
void free_refused(MPI_Request& request) noexcept {
  if (mpi::switches.traces_messages) mpi::trace_freed(request);
  auto* const known = mpi::messages::requests().find(request).persistent();
  if (known != nullptr) {
    (void)mpi::messages::free_persistent(*known, &request);
  } else {
    PMPI_Request_free(&request);
  }
}

// A request of MPI.
struct PromisedOperation : Operation {
  PromisedOperation(const char* its_call, const mpi::StatusPlace& place)
      : promised(its_call, place) {
    call = {.name = its_call, .at_once = true, .throws = true};
    complete = &PromisedOperation::on_completion;
  }
  static void on_completion(Operation& self) noexcept {
    const std::unique_ptr<PromisedOperation> owned(static_cast<PromisedOperation*>(&self));
    if (mpi::switches.traces_messages && owned->code == MPI_SUCCESS) {
      mpi::trace_completed(owned->given, owned->status, owned->promised.task.id);
    }
    mpi::messages::requests().complete(owned->given);
    const bool persistent = owned->code == MPI_SUCCESS && owned->request != MPI_REQUEST_NULL;
    if (persistent) free_refused(owned->request);
    owned->promised.complete(*owned, persistent);
  }

  Promised promised;
  MPI_Request given = MPI_REQUEST_NULL;  // the handle of the program
};

// An operation of this library: it is not tested, because it reports its own completion.
struct PromisedOurs : mpi::messages::Listener {
  PromisedOurs(const char* its_call, Substitute& ours, const mpi::StatusPlace& place)
      : operation(ours), promised(its_call, place) {
    fire = &PromisedOurs::on_completion;
  }
  static void on_completion(Listener& self) noexcept {
    const std::unique_ptr<PromisedOurs> owned(static_cast<PromisedOurs*>(&self));
    const std::unique_ptr<Substitute> ended(&owned->operation);
    const bool persistent = owned->persistent != MPI_REQUEST_NULL;
    if (persistent) {
      ended->persistent()->active = nullptr;
      mpi::messages::free_persistent(*ended->persistent(), &owned->persistent);
    }
    if (ended->code != MPI_SUCCESS) {
      ended->forget_freed();
    } else if (mpi::switches.traces_messages) {
      mpi::trace_completed(*ended, MPI_REQUEST_NULL, owned->promised.task.id);
    }
    owned->promised.complete(*ended, persistent);
  }

  Substitute& operation;
  Promised promised;
  MPI_Request persistent = MPI_REQUEST_NULL;
};

Future<MPI_Status> take_over_ours(const char* call, Substitute& ours, MPI_Request& request,
                                  const mpi::StatusPlace& place) {
  auto promised = std::make_unique<PromisedOurs>(call, ours, place);
  mpi::messages::Token* const token = ours.token();
  mpi::check::end_request(request);  // it has no handle from now on
  if (token == nullptr) {
    if (ours.done()) throw promised->promised.refuse();
    promised->persistent = request;
  }
  Future<MPI_Status> future = promised->promised.promise.future();
  if (mpi::switches.traces_messages) {
    mpi::trace_given(request, detail::completion_of(future), &ours);
  }
  request = MPI_REQUEST_NULL;
  ours.take_handle();
  PromisedOurs& waiting = *promised.release();
  const bool waits = ours.attend(waiting);
  if (token != nullptr) give_token(*token);
  if (waits) {
    detail::wake_poller();  // the caller goes on, so an idle worker must poll
  } else {
    PromisedOurs::on_completion(waiting);
  }
  return future;
}

}  // namespace

Future<MPI_Status> mpi::take_over(const char* call, MPI_Request& request,
                                  const StatusPlace& place) {
  require_active(call);
  if (Substitute* const ours = messages::substitute(request)) {
    return take_over_ours(call, *ours, request, place);
  }
  auto operation = std::make_unique<PromisedOperation>(call, place);
  Future<MPI_Status> future = operation->promised.promise.future();
  operation->given = request;
  if (switches.traces_messages) trace_given(request, detail::completion_of(future), nullptr);

  int done = 0;
  {
    const Callback callback;
    const Outcome outcome = completion::Test(&request, &done, &operation->status);
    operation->take(outcome);
  }
  if (done != 0 && request != MPI_REQUEST_NULL) throw operation->promised.refuse();
  operation->request = std::exchange(request, MPI_REQUEST_NULL);
  if (done != 0 || operation->code != MPI_SUCCESS) {
    PromisedOperation::on_completion(*operation.release());
  } else {
    engine().add(*operation.release());
    detail::wake_poller();  // the caller goes on, so an idle worker must poll
  }
  return future;
}

MPI_Status await(MPI_Request& request) {
  constexpr const char* name = "await(MPI_Request)";
  require_active(name);
  MPI_Status status = {};
  const int code = mpi::messages::wait({.name = name, .throws = true}, &request, &status);
  if (code != MPI_SUCCESS) {
    throw mpi::make_error(name, code, detail::describe_current_task());
  }
  return status;
}

Future<MPI_Status> when(MPI_Request& request) {
  return mpi::take_over("when(MPI_Request)", request, {});
}

void cancel(const Future<MPI_Status>& future) {
  if (!future.valid()) throw Error("imbrex: cancel() of an empty future");
  require_active("cancel()");
  const auto is_its = [&future](const Promised& promised) {
    return detail::completion_of(promised.promise.future()) == detail::completion_of(future);
  };
  mpi::messages::cancel_where(
      [&is_its](const mpi::messages::Listener& listener) {
        return listener.fire == &PromisedOurs::on_completion &&
               is_its(static_cast<const PromisedOurs&>(listener).promised);
      },
      [&is_its](const Operation& operation) {
        return operation.complete == &PromisedOperation::on_completion &&
               is_its(static_cast<const PromisedOperation&>(operation).promised);
      });
}

void release_after(MPI_Request& request) {
  if (!detail::in_spawned_task()) {
    throw Error("imbrex: release_after(MPI_Request) called outside a task: use when()");
  }
  const Future<MPI_Status> future = mpi::take_over("release_after(MPI_Request)", request, {});
  if (future.ready()) {
    (void)future.get();
    return;
  }
  detail::release_after(*detail::completion_of(future));
}

void finish_owns(MPI_Request& request) {
  constexpr const char* name = "finish_owns(MPI_Request)";
  if (!detail::in_finish()) {
    throw Error(std::string("imbrex: ") + name + " called outside of any finish(): use when()");
  }
  finish_owns(mpi::take_over(name, request, {}));
}

}  // namespace imbrex
