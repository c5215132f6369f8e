// SPDX-License-Identifier: BSD-3-Clause
// Requests in C++: await, when, release_after. A request that is handed over lives in an operation
// on the heap until the engine has completed it.
#include <exception>
#include <memory>
#include <utility>

#include "errors.hpp"
#include "imbrex/task.hpp"
#include "wait.hpp"

namespace imbrex {

namespace {

using mpi::Operation;

void require_active(const char* call) {
  if (mpi::active()) return;
  throw Error(std::string("imbrex: ") + call +
              " called outside MPI_Init and MPI_Finalize: call MPI_Init first");
}

struct PromisedOperation : Operation {
  Promise<MPI_Status> promise{"MPI request"};
  std::string place;

  static void settle(Operation& self) noexcept {
    const std::unique_ptr<PromisedOperation> owned(static_cast<PromisedOperation*>(&self));
    try {
      owned->settle_promise();
    } catch (...) {  // of an error handler of the user's, or for want of memory
      owned->promise.set_exception(std::current_exception());
    }
  }

  void settle_promise() {
    if (code != MPI_SUCCESS) {
      promise.set_exception(std::make_exception_ptr(
          mpi::make_error(call.name, mpi::raise_error(*this), place)));
    } else if (request != MPI_REQUEST_NULL) {
      PMPI_Request_free(&request);
      promise.set_exception(std::make_exception_ptr(refuse()));
    } else {
      promise.set(status);
    }
  }

  // A request that is complete and still there is persistent.
  [[nodiscard]] Error refuse() const {
    return Error(std::string("imbrex: ") + call.name + " was given a persistent request (by " +
                 place + "), which it cannot give back: use await()");
  }
};

Future<MPI_Status> take_over(const char* call, MPI_Request& request) {
  require_active(call);
  auto operation = std::make_unique<PromisedOperation>();
  operation->call = {.name = call, .throws = true};
  operation->complete = &PromisedOperation::settle;
  operation->place = detail::describe_current_task();
  Future<MPI_Status> future = operation->promise.future();

  int done = 0;
  {
    const mpi::Callback callback;
    const mpi::Said said = mpi::asked::Test(&request, &done, &operation->status);
    operation->code = said.code;
    operation->handler_ran = !said.owed;
  }
  if (done != 0 && request != MPI_REQUEST_NULL) throw operation->refuse();
  operation->request = std::exchange(request, MPI_REQUEST_NULL);
  if (done != 0 || operation->code != MPI_SUCCESS) {
    operation->settle_promise();
  } else {
    mpi::engine().add(*operation.release());
    detail::wake_poller();  // the caller goes on: somebody idle must ask MPI
  }
  return future;
}

}  // namespace

MPI_Status await(MPI_Request& request) {
  constexpr const char* name = "await(MPI_Request)";
  require_active(name);
  MPI_Status status = {};
  const int code = mpi::suspends()
                       ? mpi::wait_for({.name = name, .throws = true}, request, &status)
                       : mpi::asked::Wait(&request, &status).code;
  if (code != MPI_SUCCESS) {
    throw mpi::make_error(name, code, detail::describe_current_task());
  }
  return status;
}

Future<MPI_Status> when(MPI_Request& request) { return take_over("when(MPI_Request)", request); }

void release_after(MPI_Request& request) {
  if (!detail::in_task()) {
    throw Error("imbrex: release_after(MPI_Request) called outside a task: use when()");
  }
  const Future<MPI_Status> future = take_over("release_after(MPI_Request)", request);
  if (future.ready()) {
    (void)future.get();
    return;
  }
  // A child that starts only then: it keeps the future, and so the event, and it takes a failure
  // to the enclosing finish().
  task("MPI request").in(future).launch([future] { (void)future.get(); });
  detail::release_after(future.completion()->event);
}

}  // namespace imbrex
