// SPDX-License-Identifier: BSD-3-Clause
// What MPI tells error handlers while this library asks it, and waiting for all where MPI gives up
// at the first that fails.
#include "asked.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstddef>

namespace imbrex::mpi {

namespace {

// The Asking of each thread. A key of pthreads, since a thread-local variable belongs to the
// runtime alone; an Asking does not outlive a suspension, so no task carries one over.
pthread_key_t make_key() noexcept {
  pthread_key_t key = 0;
  pthread_key_create(&key, nullptr);
  return key;
}
const pthread_key_t asking_key = make_key();

}  // namespace

Asking::Asking(const bool quiet) noexcept : quiet_(quiet) {
  pthread_setspecific(asking_key, this);
}
Asking::~Asking() { pthread_setspecific(asking_key, nullptr); }

bool Asking::keep(MPI_Comm comm, int code) noexcept {
  Asking* const asking = static_cast<Asking*>(pthread_getspecific(asking_key));
  if (asking == nullptr) return false;
  asking->kept_code_ = code;
  asking->comm_ = comm;
  asking->owed_ = asking->quiet_ || comm == MPI_COMM_SELF || comm == MPI_COMM_WORLD;
  return asking->owed_;
}

Said asked::Testall::operator()(int count, MPI_Request requests[], int* done,
                                MPI_Status statuses[]) {
  if (statuses_.empty()) {
    const Said said = ask([&] { return PMPI_Testall(count, requests, done, statuses); });
    if (mpi_calls_own_handler || said.code != MPI_ERR_IN_STATUS) return said;
    failed_ = said;
    statuses_.resize(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
      if (statuses != MPI_STATUSES_IGNORE) {
        status = statuses[i];
      } else {
        status.MPI_ERROR = requests[i] == MPI_REQUEST_NULL ? MPI_SUCCESS : MPI_ERR_PENDING;
      }
    }
  }
  const Said said = ask_each(count, requests, done);
  if (*done != 0 && statuses != MPI_STATUSES_IGNORE) std::copy_n(statuses_.data(), count, statuses);
  return said;
}

Said asked::Testall::ask_each(int count, MPI_Request requests[], int* done) {
  *done = 1;
  for (int i = 0; i < count; ++i) {
    if (requests[i] == MPI_REQUEST_NULL) continue;
    MPI_Status& known = statuses_[static_cast<std::size_t>(i)];
    MPI_Status status = {};
    int complete = 0;
    const Asking asking(true);
    const Said said = asking.said(PMPI_Test(&requests[i], &complete, &status));
    if (complete == 0 && said.code == MPI_SUCCESS) {
      *done = 0;
    } else if (known.MPI_ERROR == MPI_ERR_PENDING) {
      known = status;
      known.MPI_ERROR = said.code;
    }
  }
  return *done == 0 ? Said(MPI_SUCCESS) : failed_;
}

}  // namespace imbrex::mpi
