// SPDX-License-Identifier: BSD-3-Clause
// Split collectives on files where MPI's own are not safe beside a second thread: Open MPI carries
// them out by a list of requests that it walks without a lock (docs/design/mpi-facts.md). So the
// whole collective happens in its first half, as MPI allows, and the second gives its result. All
// ranks do so, since the runtime is active on all or on none. Used by interpose.cpp.
#pragma once

#include <mpi.h>

#include <map>
#include <mutex>

#include "wait.hpp"

namespace imbrex::mpi {

// The results that wait for their second half: one of a file at most, as MPI says.
// Thread safety: any thread.
class SplitCollectives {
 public:
  // `whole(status)` is the collective that blocks; its code.
  template <class Whole>
  [[nodiscard]] int begin(const MPI_File file, Whole whole) {
    MPI_Status status;
    const int code = whole(&status);
    if (code != MPI_SUCCESS) return code;
    const std::lock_guard guard(lock_);
    results_[file] = status;
    return code;
  }
  // False if nothing of this file has been begun here: then MPI has to say so.
  [[nodiscard]] bool end(const MPI_File file, MPI_Status* const status) {
    const std::lock_guard guard(lock_);
    const auto found = results_.find(file);
    if (found == results_.end()) return false;
    copy_status(found->second, status);
    results_.erase(found);
    return true;
  }

 private:
  std::mutex lock_;  // guards results_
  std::map<MPI_File, MPI_Status> results_;
};

inline SplitCollectives& split_collectives() {
  static SplitCollectives all;
  return all;
}

}  // namespace imbrex::mpi
