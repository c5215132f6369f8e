// SPDX-License-Identifier: BSD-3-Clause
// Requests in C++: await, when, release_after, finish_owns.
#include "mpi/messages/calls/when_request.hpp"

#include <exception>
#include <memory>
#include <source_location>
#include <utility>

#include "imbrex/detail/observation.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/mpi.h"
#include "mpi/engine/lifetime.hpp"
#include "mpi/engine/mpi_errors.hpp"
#include "mpi/messages/calls/give.hpp"
#include "mpi/messages/calls/receives.hpp"

namespace imbrex {

namespace {

using mpi::messages::Given;
using mpi::messages::Gave;

void require_active(const char* call) {
  if (mpi::in_service()) return;
  throw Error(std::string("imbrex: ") + call +
              " called outside MPI_Init and MPI_Finalize: call MPI_Init first");
}

// Sets the promise for a request that was given away, once it is complete.
struct Promised : Given {
  Promised(const char* its_call, const mpi::StatusPlace& its_place)
      : Given(&Promised::complete), call(its_call), place(its_place) {}

  static void complete(Given& self, End end) noexcept {
    const std::unique_ptr<Promised> owned(static_cast<Promised*>(&self));
    try {
      owned->set(end);
    } catch (...) {  // of an error handler of the user, or out of memory
      owned->promise.set_exception(std::current_exception());
    }
  }

  void set(const End end) {
    const int code = its->code == MPI_SUCCESS ? MPI_SUCCESS : mpi::raise_error(*its);
    if (place.write != nullptr) place.write(place.to, its->status, code);
    if (its->code != MPI_SUCCESS) {
      promise.set_exception(
          std::make_exception_ptr(mpi::make_error(call, code, detail::describe(task))));
    } else if (end == End::persistent) {
      promise.set_exception(std::make_exception_ptr(refuse()));
    } else {
      promise.set(its->status);
    }
  }

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

}  // namespace

Future<MPI_Status> mpi::take_over(const char* call, MPI_Request& request,
                                  const StatusPlace& place) {
  require_active(call);
  auto promised = std::make_unique<Promised>(call, place);
  Future<MPI_Status> future = promised->promise.future();
  const Call its{.name = call, .at_once = true, .throws = true};
  switch (messages::give_request(its, request, *promised, true, detail::completion_of(future))) {
    case Gave::away:
      static_cast<void>(promised.release());
      detail::wake_poller();
      break;
    case Gave::complete: promised.release()->finish(); break;
    case Gave::refused: throw promised->refuse();
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
  mpi::messages::cancel_given([&future](const Given& given) {
    if (given.done != &Promised::complete) return false;
    const auto& promised = static_cast<const Promised&>(given);
    return detail::completion_of(promised.promise.future()) == detail::completion_of(future);
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
