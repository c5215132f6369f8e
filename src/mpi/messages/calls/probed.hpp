// SPDX-License-Identifier: BSD-3-Clause
// Messages that tasks probe for repeatedly, while other tasks run in between: such a message is not
// unexpected, since the task will find it. Used by reports.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/guarded.hpp"

namespace imbrex::mpi {

// Lies on the stack of the task. Thread safety: its task makes and destroys it, in any thread; any
// thread calls is_wanted().
class Probed {
 public:
  Probed(const int source, const int tag, const MPI_Comm comm)
      : source_(source), tag_(tag), comm_(comm) {
    const std::lock_guard guard(all().mutex);
    all().probes.push_back(this);
  }
  ~Probed() {
    const std::lock_guard guard(all().mutex);
    std::erase(all().probes, this);
  }
  Probed(const Probed&) = delete;
  Probed& operator=(const Probed&) = delete;

  // Whether a task probes for a message like this one.
  [[nodiscard]] static bool is_wanted(const int source, const int tag, const MPI_Comm comm) {
    const std::lock_guard guard(all().mutex);
    return std::ranges::any_of(all().probes, [&](const Probed* const probe) {
      return probe->comm_ == comm &&
             (probe->source_ == source || probe->source_ == MPI_ANY_SOURCE) &&
             (probe->tag_ == tag || probe->tag_ == MPI_ANY_TAG);
    });
  }

 private:
  struct All {
    std::mutex mutex;
    std::vector<const Probed*> probes IMBREX_GUARDED_BY(mutex);
  };
  static All& all() {
    static All& the_all = *new All;  // never destroyed: a thread may look until the end
    return the_all;
  }

  const int source_;
  const int tag_;
  const MPI_Comm comm_;
};

}  // namespace imbrex::mpi
