// SPDX-License-Identifier: BSD-3-Clause
// The object behind a DDF_t: a data-driven future of the program, a distributed one, or a request
// of MPI.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <vector>

#include "imbrex/compat/hcmpi.h"
#include "hcmpi/distributed.hpp"
#include "hcmpi/handles.hpp"
#include "imbrex/future.hpp"
#include "imbrex/mpi.hpp"

namespace imbrex::hcmpi {

// A pointer that the program puts once. put() and get() know the places of both calls, and of the
// creation. Thread safety: any thread.
class Put {
 public:
  Put(const char* name, const std::source_location& made);
  // Throws Misuse if a pointer was put before; `call` names the call.
  void put(const char* call, void* pointer, const std::source_location& where);
  [[nodiscard]] void* get(const std::source_location& where) const;  // Misuse before the put
  [[nodiscard]] const Future<void*>& future() const noexcept { return future_; }

 private:
  const Promise<void*> promise_;
  const Future<void*> future_;
  const std::source_location made_;
  std::atomic<std::source_location> put_at_{};  // line 0: nowhere yet; any thread
};

}  // namespace imbrex::hcmpi

// Thread safety: as Counted; `status` is set before the handle is given out.
struct hc_ddf : imbrex::hcmpi::Counted {
  enum class Kind : std::uint8_t {
    data,         // made by DDF_CREATE
    distributed,  // made by DDF_HANDLE
    made,         // a request that the program completes: the pointer is its status, or null
    operation     // an operation of MPI
  };
  explicit hc_ddf(const Kind its_kind) noexcept : kind(its_kind) {}

  // Ready when it has been put. For a distributed future: when the value is here, which this call
  // asks for.
  [[nodiscard]] imbrex::Future<void> done() const {
    if (kind == Kind::distributed) return of(distributed->future());
    if (kind == Kind::operation) return of(status);
    return of(data->future());
  }

  const Kind kind;
  std::optional<imbrex::hcmpi::Put> data;  // for `data` and `made`
  std::unique_ptr<imbrex::hcmpi::Distributed> distributed;
  imbrex::Future<MPI_Status> status;       // for an operation

 private:
  [[nodiscard]] static imbrex::Future<void> of(const imbrex::FutureBase& future) {
    imbrex::detail::Completion* const completion = imbrex::detail::completion_of(future);
    imbrex::detail::retain(*completion);
    return imbrex::detail::future_of(completion);
  }
};

struct hc_ddf_list : imbrex::hcmpi::Counted {
  std::vector<imbrex::Future<void>> futures;
};

namespace imbrex::hcmpi {

using Ddfs = Handles<hc_ddf>;

// The future of this handle; Misuse if there is none.
[[nodiscard]] Ref<hc_ddf> ddf_of(const char* call, const void* handle);
// ddf_of() for a handle that must be a request.
[[nodiscard]] Ref<hc_ddf> request_of(const char* call, const void* handle);

}  // namespace imbrex::hcmpi
