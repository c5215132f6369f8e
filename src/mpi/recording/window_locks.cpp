// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/recording/window_locks.hpp"

#include <mutex>
#include <new>
#include <vector>

#include "base/guarded.hpp"
#include "base/spin_lock.hpp"

namespace imbrex::mpi::window_locks {

namespace {

struct Locks {
  base::SpinLock lock;
  std::vector<Lock> all IMBREX_GUARDED_BY(lock);  // few: MPI allows one for each target
};
Locks& locks() noexcept {
  static Locks& the_locks = *new Locks;  // a thread may call MPI until the end
  return the_locks;
}

}  // namespace

void ask(MPI_Win window, const int target, const bool is_exclusive) noexcept {
  const detail::TaskLabel task = detail::current_task();
  const std::lock_guard guard(locks().lock);
  try {
    locks().all.push_back({window, target, is_exclusive, task});
  } catch (const std::bad_alloc&) {  // a report will not name it
  }
}

int asked(const int code, MPI_Win window, const int target) noexcept {
  return code == MPI_SUCCESS ? code : gave_back(code, window, target);
}

int gave_back(const int code, MPI_Win window, const int target) noexcept {
  const std::lock_guard guard(locks().lock);
  std::erase_if(locks().all, [&](const Lock& one) {
    return one.window == window && one.target == target;
  });
  return code;
}

void for_each(const std::function<void(const Lock&)>& visit) {
  const std::lock_guard guard(locks().lock);
  for (const Lock& one : locks().all) visit(one);
}

}  // namespace imbrex::mpi::window_locks
