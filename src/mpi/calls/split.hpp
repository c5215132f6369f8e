// SPDX-License-Identifier: BSD-3-Clause
// Operations on files that have two halves, where MPI's own are not safe beside a second thread:
// Open MPI carries them out by a list of requests that it walks without a lock
// (docs/design/mpi-facts.md). The whole operation therefore happens in its first half, as MPI
// allows, and the second half, of a split collective or the wait for a request, returns its result.
// All ranks do so, since the runtime is active on all or on none. Used by interpose.cpp.
#pragma once

#include <mpi.h>

#include <map>
#include <memory>
#include <mutex>

#include "base/guarded.hpp"
#include "mpi/messages/matching/wait.hpp"

namespace imbrex::mpi {

// The results that wait for their second half: at most one for each file, as MPI requires.
// Thread safety: any thread.
class SplitCollectives {
 public:
  // `whole(status)` is the blocking collective; it returns the code.
  template <class Whole>
  [[nodiscard]] int begin(const MPI_File file, Whole whole) {
    MPI_Status status;
    const int code = whole(&status);
    if (code != MPI_SUCCESS) return code;
    const std::lock_guard guard(lock_);
    results_[file] = status;
    return code;
  }
  // False if no split collective of this file has been begun here: MPI has to report the error.
  [[nodiscard]] bool end(const MPI_File file, MPI_Status* const status) {
    const std::lock_guard guard(lock_);
    const auto found = results_.find(file);
    if (found == results_.end()) return false;
    copy_status(found->second, status);
    results_.erase(found);
    return true;
  }

 private:
  std::mutex lock_;
  std::map<MPI_File, MPI_Status> results_ IMBREX_GUARDED_BY(lock_);
};

inline SplitCollectives& split_collectives() {
  static SplitCollectives all;
  return all;
}

// The whole operation in the first half, for a call that returns a request, which is then complete.
template <class Whole>
[[nodiscard]] int begin_whole(MPI_Request* const request, Whole whole) {
  auto result = std::make_unique<MPI_Status>();
  if (const int code = whole(result.get()); code != MPI_SUCCESS) return code;
  const auto query = [](void* state, MPI_Status* status) -> int {
    MPI_Count bytes = 0;
    PMPI_Get_elements_x(static_cast<const MPI_Status*>(state), MPI_BYTE, &bytes);
    PMPI_Status_set_elements_x(status, MPI_BYTE, bytes);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
  };
  const auto end = [](void* state) -> int {
    delete static_cast<MPI_Status*>(state);
    return MPI_SUCCESS;
  };
  const auto cancel = [](void*, int) -> int { return MPI_SUCCESS; };
  const int code = PMPI_Grequest_start(query, end, cancel, result.get(), request);
  if (code != MPI_SUCCESS) return code;
  static_cast<void>(result.release());  // `end` owns it
  return PMPI_Grequest_complete(*request);
}

}  // namespace imbrex::mpi
