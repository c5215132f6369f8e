// SPDX-License-Identifier: BSD-3-Clause
// Objects of the library that belong to communicators of the program, one each, and are destroyed
// with them: an attribute of the communicator keeps the object. Operations in flight may keep it
// longer. Knows nothing of the objects.
#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/guarded.hpp"

namespace imbrex::mpi {

// Thread safety: any thread uses every member. Calls of MPI are made under its lock.
template <class T>
class OfCommunicators {
 public:
  // The object of `comm`. Null: `code` is MPI's error, or there is no object yet.
  [[nodiscard]] std::shared_ptr<T> find(MPI_Comm comm, int& code) {
    const std::lock_guard guard(lock_);
    return look(comm, code);
  }

  // find(), but make() makes a missing object. Null: `code` is the error.
  template <class Make>
  [[nodiscard]] std::shared_ptr<T> find_or(MPI_Comm comm, int& code, Make make) {
    const std::lock_guard guard(lock_);
    if (keyval_ == MPI_KEYVAL_INVALID) {
      code = PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &forget, &keyval_, nullptr);
      if (code != MPI_SUCCESS) return nullptr;
    }
    std::shared_ptr<T> it = look(comm, code);
    if (it != nullptr || code != MPI_SUCCESS) return it;
    it = make();
    auto kept = std::make_unique<std::shared_ptr<T>>(it);
    code = PMPI_Comm_set_attr(comm, keyval_, kept.get());
    if (code != MPI_SUCCESS) return nullptr;
    static_cast<void>(kept.release());  // MPI owns it: forget()
    std::erase_if(all_, [](const std::weak_ptr<T>& one) { return one.expired(); });
    all_.push_back(it);
    return it;
  }

  // The objects that still exist.
  [[nodiscard]] std::vector<std::shared_ptr<T>> living() {
    const std::lock_guard guard(lock_);
    std::vector<std::shared_ptr<T>> living;
    for (const std::weak_ptr<T>& one : all_) {
      if (std::shared_ptr<T> it = one.lock()) living.push_back(std::move(it));
    }
    return living;
  }

  // In MPI_Finalize: no object is looked up any more.
  void end() noexcept {
    const std::lock_guard guard(lock_);
    all_.clear();
    if (keyval_ != MPI_KEYVAL_INVALID) PMPI_Comm_free_keyval(&keyval_);
  }

 private:
  // Called by MPI when the program's communicator is freed.
  static int forget(MPI_Comm, int, void* value, void*) {
    const std::unique_ptr<std::shared_ptr<T>> gone(static_cast<std::shared_ptr<T>*>(value));
    return MPI_SUCCESS;
  }

  std::shared_ptr<T> look(MPI_Comm comm, int& code) IMBREX_REQUIRES(lock_) {
    code = MPI_SUCCESS;
    if (keyval_ == MPI_KEYVAL_INVALID) return nullptr;
    void* found = nullptr;
    int is_there = 0;
    code = PMPI_Comm_get_attr(comm, keyval_, static_cast<void*>(&found), &is_there);
    if (code != MPI_SUCCESS || is_there == 0) return nullptr;
    return *static_cast<std::shared_ptr<T>*>(found);
  }

  std::mutex lock_;
  int keyval_ IMBREX_GUARDED_BY(lock_) = MPI_KEYVAL_INVALID;
  std::vector<std::weak_ptr<T>> all_ IMBREX_GUARDED_BY(lock_);
};

}  // namespace imbrex::mpi
