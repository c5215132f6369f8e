// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/messages/calls/sending_calls.hpp"

#include <algorithm>
#include <mutex>
#include <vector>

#include "base/guarded.hpp"
#include "imbrex/detail/plug_ins.hpp"
#include "imbrex/detail/waist.hpp"

namespace imbrex::mpi::sending_calls {


namespace {

// Persistent requests that send. Few; handles are only compared.
struct PersistentSends {
  std::mutex lock;
  std::vector<MPI_Request> requests IMBREX_GUARDED_BY(lock);
};
PersistentSends& persistent() noexcept {
  static auto& all = *new PersistentSends;  // requests may be freed after the end of static objects
  return all;
}

bool is_root(const int root, MPI_Comm comm) noexcept {
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  if (inter != 0) return root == MPI_ROOT;
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  return rank == root;
}

}  // namespace

void message(const int peer) noexcept {
  if (peer != MPI_PROC_NULL) detail::about_to_send();
}

void start(const int count, const MPI_Request* const requests) noexcept {
  PersistentSends& all = persistent();
  bool sends = false;
  {
    const std::lock_guard guard(all.lock);
    for (int i = 0; i < count && !sends; ++i) {
      sends = std::find(all.requests.begin(), all.requests.end(), requests[i]) !=
              all.requests.end();
    }
  }
  if (sends) detail::about_to_send();
}

void part() noexcept { detail::about_to_send(); }

void collective() noexcept { detail::about_to_send(); }

void from_root(const int root, MPI_Comm comm) noexcept {
  if (is_root(root, comm)) detail::about_to_send();
}

void to_root(const int root, MPI_Comm comm) noexcept {
  if (root != MPI_PROC_NULL && !is_root(root, comm)) detail::about_to_send();
}

void note_persistent(const int code, const MPI_Request* const request) noexcept {
  if (code != MPI_SUCCESS) return;
  PersistentSends& all = persistent();
  const std::lock_guard guard(all.lock);
  all.requests.push_back(*request);
}

void freed(const MPI_Request* const request) noexcept {
  PersistentSends& all = persistent();
  const std::lock_guard guard(all.lock);
  const auto found = std::find(all.requests.begin(), all.requests.end(), *request);
  if (found == all.requests.end()) return;
  *found = all.requests.back();
  all.requests.pop_back();
}

}  // namespace imbrex::mpi::sending_calls
