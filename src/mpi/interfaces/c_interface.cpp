// SPDX-License-Identifier: BSD-3-Clause
// imbrex/mpi.h: requests, the functions of imbrex/mpi.hpp without exceptions.
#include "imbrex/mpi.h"

#include <exception>
#include <memory>
#include <utility>

#include "c/guard.hpp"
#include "imbrex/mpi.hpp"
#include "mpi/engine/guard_mpi.hpp"

namespace imbrex::mpi {

namespace {

using StatusState = detail::PromiseStateOf<MPI_Status>;

}  // namespace

}  // namespace imbrex::mpi

using imbrex::c::require;
using imbrex::mpi::guard_mpi;

#pragma GCC visibility push(default)
extern "C" {

int imbrex_await_request(MPI_Request* const request, MPI_Status* const status) {
  return guard_mpi([&] {
    require(request, "the request given to imbrex_await_request()");
    const MPI_Status of_request = imbrex::await(*request);
    if (status != MPI_STATUS_IGNORE) *status = of_request;
  });
}

int imbrex_when_request(MPI_Request* const request, imbrex_future_t* const future) {
  return guard_mpi([&] {
    require(request, "the request given to imbrex_when_request()");
    require(future, "the future given to imbrex_when_request()");
    auto handle = std::make_unique<imbrex_future_s>(nullptr, nullptr, sizeof(MPI_Status));
    const imbrex::Future<MPI_Status> status = imbrex::when(*request);
    imbrex::detail::Completion* const state = imbrex::detail::completion_of(status);
    imbrex::detail::retain(*state);
    handle->future = imbrex::detail::future_of(state);
    // Written before the future is ready.
    handle->bytes = &static_cast<imbrex::mpi::StatusState*>(state)->slot.value;
    *future = handle.release();
  });
}

int imbrex_release_after_request(MPI_Request* const request) {
  return guard_mpi([&] {
    require(request, "the request given to imbrex_release_after_request()");
    imbrex::release_after(*request);
  });
}

}  // extern "C"
#pragma GCC visibility pop
