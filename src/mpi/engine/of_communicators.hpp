// SPDX-License-Identifier: BSD-3-Clause
// Objects of ours that belong to communicators of the program, one each, and go with them: an
// attribute of the communicator keeps it. What is under way may keep it longer. Knows nothing of
// what they are.
#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/guarded.hpp"

namespace imbrex::mpi {

// Thread safety: every member, any thread. Calls of MPI are made under its lock.
template <class T>
class OfCommunicators {
 public:
  // That of `comm`. Null: `code` is MPI's, or there is none yet.
  [[nodiscard]] std::shared_ptr<T> find(MPI_Comm comm, int& code) {
    const std::lock_guard guard(lock_);
    return look(comm, code);
  }

  // The same, but if there is none yet make() gives it. Null: `code` is why.
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
    static_cast<void>(kept.release());  // MPI has it: forget()
    std::erase_if(all_, [](const std::weak_ptr<T>& one) { return one.expired(); });
    all_.push_back(it);
    return it;
  }

  // Those that have not gone.
  [[nodiscard]] std::vector<std::shared_ptr<T>> living() {
    const std::lock_guard guard(lock_);
    std::vector<std::shared_ptr<T>> living;
    for (const std::weak_ptr<T>& one : all_) {
      if (std::shared_ptr<T> it = one.lock()) living.push_back(std::move(it));
    }
    return living;
  }

  // In MPI_Finalize: no more are looked for.
  void end() noexcept {
    const std::lock_guard guard(lock_);
    all_.clear();
    if (keyval_ != MPI_KEYVAL_INVALID) PMPI_Comm_free_keyval(&keyval_);
  }

 private:
  // Called by MPI when the program's communicator goes.
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
