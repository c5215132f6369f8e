// SPDX-License-Identifier: BSD-3-Clause
// The locks of windows that this rank has asked for and not given back, for reports: MPI tells
// nobody who holds one. Thread safety: any thread.
#pragma once

#include <mpi.h>

#include <functional>

#include "imbrex/detail/observation.hpp"

namespace imbrex::mpi::window_locks {

struct Lock {
  static constexpr int all = -1;
  MPI_Win window;
  int target;  // a rank of the window's group, or `all`
  bool is_exclusive;
  detail::TaskLabel task;
};

// The running task is about to call MPI_Win_lock or MPI_Win_lock_all.
void ask(MPI_Win window, int target, bool is_exclusive) noexcept;
// The lock is given back, or MPI has refused it with `code`. Both return `code`.
int asked(int code, MPI_Win window, int target) noexcept;
int gave_back(int code, MPI_Win window, int target) noexcept;

// In the order in which they were asked for. No lock is given back meanwhile, so the windows exist.
void for_each(const std::function<void(const Lock&)>& visit);

}  // namespace imbrex::mpi::window_locks
