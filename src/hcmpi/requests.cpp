// SPDX-License-Identifier: BSD-3-Clause
// hcmpi.h: messages between two ranks, requests, statuses.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "imbrex/compat/hcmpi.h"
#include "hcmpi/ddf.hpp"
#include "hcmpi/handles.hpp"
#include "hcmpi/report.hpp"
#include "imbrex/scope.hpp"

namespace imbrex::hcmpi {

namespace {

using Kind = hc_ddf::Kind;

// ---- statuses ----------------------------------------------------------------------------------

// The status comes first: the program's handle points to it.
struct StatusBox {
  MPI_Status status;
  std::atomic<int> references{1};
};
using Statuses = Handles<StatusBox>;

void give(HCMPI_Status** const to, const MPI_Status& status) {
  if (to == HCMPI_STATUS_IGNORE) return;
  auto box = std::make_unique<StatusBox>();
  box->status = status;
  *to = &Statuses::all().add(std::move(box))->status;
}

// The status of a failed or unknown operation.
MPI_Status empty_status(const int code) {
  MPI_Status status = {};
  status.MPI_SOURCE = MPI_ANY_SOURCE;
  status.MPI_TAG = MPI_ANY_TAG;
  status.MPI_ERROR = code;
  MPI_Status_set_elements(&status, MPI_BYTE, 0);
  MPI_Status_set_cancelled(&status, 0);
  return status;
}

// Suspends until `request` is complete, and rethrows its failure.
MPI_Status status_of(const hc_ddf& request) {
  if (request.kind == Kind::operation) return request.status.get();
  const auto* const given = static_cast<const MPI_Status*>(request.data->future().get());
  return given == nullptr ? empty_status(MPI_SUCCESS) : *given;
}

// ---- begin -------------------------------------------------------------------------------------

// post(MPI_Request*) begins the operation, and returns a code.
template <class Post>
int begin(const char* const call, HCMPI_Request** const request, Post&& post) {
  return guard(call, [&]() -> int {
    require_mpi(call);
    if (request == nullptr && !detail::in_finish()) {
      refuse(call, MPI_ERR_OTHER,
             "without a request, the innermost finish owns the operation, but no finish is open: "
             "give a request, or make the call between hc_finish_begin() and hc_finish_end()");
    }
    auto made = std::make_unique<hc_ddf>(Kind::operation);
    MPI_Request begun = MPI_REQUEST_NULL;
    if (const int code = post(&begun)) return code;
    if (request == nullptr) {
      finish_owns(begun);
    } else {
      made->status = when(begun);
      *request = Ddfs::all().add(std::move(made));
    }
    return MPI_SUCCESS;
  });
}

// ---- wait and test -----------------------------------------------------------------------------

using Requests = std::vector<Ref<hc_ddf>>;
Requests requests_of(const char* const call, const int count, HCMPI_Request* const handles[]) {
  require_mpi(call);
  if (count < 0) refuse(call, MPI_ERR_ARG, "the count of requests is below 0");
  if (count != 0) require(handles, call, "the array of requests");
  Requests requests;
  for (int i = 0; i < count; ++i) requests.push_back(request_of(call, handles[i]));
  return requests;
}

Ref<hc_ddf> active_request(const char* const call, HCMPI_Request* const handle) {
  require_mpi(call);
  return request_of(call, handle);
}

bool is_ready(const hc_ddf& request) { return request.done().ready(); }

// After one check other tasks run, which may complete the request, and MPI is polled.
template <class Done>
bool test(const Done& done) {
  if (done()) return true;
  yield();
  return done();
}

int wait(const char* const call, const Ref<hc_ddf>& request, HCMPI_Status** const status) {
  request->done().wait();
  return guard(call, [&] { give(status, status_of(*request.get())); });
}

int wait_all(const char* const call, const Requests& requests, HCMPI_Status** const statuses) {
  int code = MPI_SUCCESS;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i]->done().wait();
    MPI_Status status = empty_status(MPI_SUCCESS);
    const int its_code = guard(call, [&] { status = status_of(*requests[i].get()); });
    status.MPI_ERROR = its_code;
    if (its_code != MPI_SUCCESS) code = MPI_ERR_IN_STATUS;
    if (statuses != HCMPI_STATUSES_IGNORE) give(&statuses[i], status);
  }
  return code;
}

// The position of a ready request; their number if none is.
std::size_t find_ready(const Requests& requests) {
  std::size_t i = 0;
  while (i < requests.size() && !is_ready(*requests[i].get())) ++i;
  return i;
}

int wait_any(const char* const call, const Requests& requests, int* const index,
             HCMPI_Status** const status) {
  std::size_t found = find_ready(requests);
  if (found == requests.size()) {
    std::vector<Future<void>> futures;
    for (const Ref<hc_ddf>& request : requests) futures.push_back(request->done());
    const Future<std::size_t> first = when_any(futures);
    first.wait();
    // If all have failed, the first one gives the error.
    found = detail::completion_of(first)->failure != nullptr ? 0 : first.get();
  }
  *index = static_cast<int>(found);
  return wait(call, requests[found], status);
}

}  // namespace

}  // namespace imbrex::hcmpi

using namespace imbrex::hcmpi;

#pragma GCC visibility push(default)
extern "C" {

int HCMPI_Isend(const void* const buffer, const int count, const HCMPI_Datatype type, const int to,
                const int tag, const HCMPI_Comm comm, HCMPI_Request** const request) {
  return begin("HCMPI_Isend", request, [&](MPI_Request* const begun) {
    return MPI_Isend(buffer, count, type, to, tag, comm, begun);
  });
}
int HCMPI_Irecv(void* const buffer, const int count, const HCMPI_Datatype type, const int from,
                const int tag, const HCMPI_Comm comm, HCMPI_Request** const request) {
  return begin("HCMPI_Irecv", request, [&](MPI_Request* const begun) {
    return MPI_Irecv(buffer, count, type, from, tag, comm, begun);
  });
}
int HCMPI_Send(const void* const buffer, const int count, const HCMPI_Datatype type, const int to,
               const int tag, const HCMPI_Comm comm) {
  return guard("HCMPI_Send", [&] {
    require_mpi("HCMPI_Send");
    return MPI_Send(buffer, count, type, to, tag, comm);
  });
}
int HCMPI_Recv(void* const buffer, const int count, const HCMPI_Datatype type, const int from,
               const int tag, const HCMPI_Comm comm, HCMPI_Status** const status) {
  return guard("HCMPI_Recv", [&] {
    require_mpi("HCMPI_Recv");
    MPI_Status got = {};
    const int code = MPI_Recv(buffer, count, type, from, tag, comm, &got);
    if (code == MPI_SUCCESS) give(status, got);
    return code;
  });
}

int HCMPI_Wait(HCMPI_Request* const request, HCMPI_Status** const status) {
  return guard("HCMPI_Wait", [&] {
    return wait("HCMPI_Wait", active_request("HCMPI_Wait", request), status);
  });
}
int HCMPI_Waitall(const int count, HCMPI_Request* const requests[],
                  HCMPI_Status* statuses[]) {
  return guard("HCMPI_Waitall", [&] {
    return wait_all("HCMPI_Waitall", requests_of("HCMPI_Waitall", count, requests), statuses);
  });
}
int HCMPI_Waitany(const int count, HCMPI_Request* const requests[], int* const index,
                  HCMPI_Status** const status) {
  return guard("HCMPI_Waitany", [&]() -> int {
    require(index, "HCMPI_Waitany", "the index");
    const Requests all = requests_of("HCMPI_Waitany", count, requests);
    *index = HCMPI_UNDEFINED;
    return all.empty() ? MPI_SUCCESS : wait_any("HCMPI_Waitany", all, index, status);
  });
}

int HCMPI_Test(HCMPI_Request* const request, int* const flag, HCMPI_Status** const status) {
  return guard("HCMPI_Test", [&]() -> int {
    require(flag, "HCMPI_Test", "the flag");
    const Ref<hc_ddf> one = active_request("HCMPI_Test", request);
    *flag = test([&one] { return is_ready(*one.get()); }) ? 1 : 0;
    return *flag == 0 ? MPI_SUCCESS : wait("HCMPI_Test", one, status);
  });
}
int HCMPI_Testall(const int count, HCMPI_Request* const requests[], int* const flag,
                  HCMPI_Status* statuses[]) {
  return guard("HCMPI_Testall", [&]() -> int {
    require(flag, "HCMPI_Testall", "the flag");
    const Requests all = requests_of("HCMPI_Testall", count, requests);
    const auto done = [&all] {
      for (const Ref<hc_ddf>& one : all) {
        if (!is_ready(*one.get())) return false;
      }
      return true;
    };
    *flag = test(done) ? 1 : 0;
    return *flag == 0 ? MPI_SUCCESS : wait_all("HCMPI_Testall", all, statuses);
  });
}
int HCMPI_Testany(const int count, HCMPI_Request* const requests[], int* const index,
                  int* const flag, HCMPI_Status** const status) {
  return guard("HCMPI_Testany", [&]() -> int {
    require(index, "HCMPI_Testany", "the index");
    require(flag, "HCMPI_Testany", "the flag");
    const Requests all = requests_of("HCMPI_Testany", count, requests);
    *index = HCMPI_UNDEFINED;
    *flag = all.empty() || test([&all] { return find_ready(all) != all.size(); }) ? 1 : 0;
    if (*flag == 0 || all.empty()) return MPI_SUCCESS;
    return wait_any("HCMPI_Testany", all, index, status);
  });
}

int HCMPI_Cancel(HCMPI_Request* const request) {
  return guard("HCMPI_Cancel", [&] {
    const Ref<hc_ddf> found = request_of("HCMPI_Cancel", request);
    if (found->kind != hc_ddf::Kind::operation) {
      refuse("HCMPI_Cancel", MPI_ERR_REQUEST, "the program created this request: MPI has no "
                                              "operation to cancel");
    }
    if (found->status.ready()) return;
    require_mpi("HCMPI_Cancel");
    imbrex::cancel(found->status);
  });
}

int HCMPI_GET_STATUS(HCMPI_Request* const request, HCMPI_Status** const status) {
  return guard("HCMPI_GET_STATUS", [&] {
    require(status, "HCMPI_GET_STATUS", "the place for the status");
    const Ref<hc_ddf> found = active_request("HCMPI_GET_STATUS", request);
    if (!is_ready(*found.get())) {
      refuse("HCMPI_GET_STATUS", MPI_ERR_OTHER,
             "the request is not complete: await it, or use HCMPI_Wait");
    }
    return wait("HCMPI_GET_STATUS", found, status);
  });
}
int HCMPI_STATUS_FREE(HCMPI_Status** const status) {
  return guard("HCMPI_STATUS_FREE", [&] {
    require(status, "HCMPI_STATUS_FREE", "the address of the status");
    if (!Statuses::all().take(*status)) {
      refuse("HCMPI_STATUS_FREE", MPI_ERR_ARG,
             "no call of HCMPI returned this status, or it was freed before");
    }
    *status = nullptr;
  });
}
int HCMPI_Get_count(const HCMPI_Status* const status, const HCMPI_Datatype type,
                    int* const count) {
  return guard("HCMPI_Get_count", [&] {
    require(status, "HCMPI_Get_count", "the status");
    require(count, "HCMPI_Get_count", "the count");
    require_mpi("HCMPI_Get_count");
    return MPI_Get_count(status, type, count);
  });
}
int HCMPI_Test_cancelled(const HCMPI_Status* const status, int* const flag) {
  return guard("HCMPI_Test_cancelled", [&] {
    require(status, "HCMPI_Test_cancelled", "the status");
    require(flag, "HCMPI_Test_cancelled", "the flag");
    require_mpi("HCMPI_Test_cancelled");
    return MPI_Test_cancelled(status, flag);
  });
}

}  // extern "C"
#pragma GCC visibility pop
