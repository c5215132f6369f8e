// SPDX-License-Identifier: BSD-3-Clause
// Error handlers that do nothing while this library asks MPI, where MPI calls those of the wrong
// communicator; elsewhere they are what they stand in for.
#include "asked.hpp"

#include <pthread.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>

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

MPI_Errhandler fatal_handler = MPI_ERRHANDLER_NULL;  // set by MPI_Init, before there are tasks

// As MPI_ERRORS_ARE_FATAL, once the call is not one of this library's. (MPICH 5 holds a lock here
// that it would need for that handler itself.)
void end_program(MPI_Comm* comm, int* code, ...) {
  if (Asking::keep(*comm, *code)) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  PMPI_Error_string(*code, text, &length);
  std::fprintf(stderr, "imbrex: MPI_ERRORS_ARE_FATAL: %.*s\n", length, text);
  int error_class = MPI_ERR_UNKNOWN;
  PMPI_Error_class(*code, &error_class);
  PMPI_Abort(*comm, error_class);
}

void replace(MPI_Comm comm, MPI_Errhandler from, MPI_Errhandler to) {
  MPI_Errhandler there = MPI_ERRHANDLER_NULL;
  PMPI_Comm_get_errhandler(comm, &there);
  if (there == from) PMPI_Comm_set_errhandler(comm, to);
  if (there != MPI_ERRORS_ARE_FATAL && there != MPI_ERRORS_RETURN) PMPI_Errhandler_free(&there);
}

}  // namespace

Asking::Asking() noexcept { pthread_setspecific(asking_key, this); }
Asking::~Asking() { pthread_setspecific(asking_key, nullptr); }

bool Asking::keep(MPI_Comm comm, int code) noexcept {
  Asking* const asking = static_cast<Asking*>(pthread_getspecific(asking_key));
  if (asking == nullptr) return false;
  asking->kept_code_ = code;
  asking->owed_ = comm == MPI_COMM_SELF || comm == MPI_COMM_WORLD;
  return asking->owed_;
}

Said asked::Testall::operator()(int count, MPI_Request requests[], int* done,
                                MPI_Status statuses[]) {
  if (statuses_.empty()) {
    const Said said = ask([&] { return PMPI_Testall(count, requests, done, statuses); });
    if (mpi_calls_own_handler || said.code != MPI_ERR_IN_STATUS) return said;
    owed_ = said.owed;
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
    const Said said = Test(&requests[i], &complete, &status);
    if (complete == 0 && said.code == MPI_SUCCESS) {
      *done = 0;
    } else if (known.MPI_ERROR == MPI_ERR_PENDING) {
      known = status;
      known.MPI_ERROR = said.code;
    }
  }
  return *done == 0 ? Said(MPI_SUCCESS) : Said(MPI_ERR_IN_STATUS, owed_);
}

void replace_default_handlers() {
  if (mpi_calls_own_handler) return;
  PMPI_Comm_create_errhandler(&end_program, &fatal_handler);
  replace(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, fatal_handler);
  replace(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL, fatal_handler);
}

void restore_default_handlers() {
  if (mpi_calls_own_handler) return;
  replace(MPI_COMM_WORLD, fatal_handler, MPI_ERRORS_ARE_FATAL);
  replace(MPI_COMM_SELF, fatal_handler, MPI_ERRORS_ARE_FATAL);
  PMPI_Errhandler_free(&fatal_handler);
}

}  // namespace imbrex::mpi

// A program that sets the default handler gets ours; one that asks for it gets MPI's.
extern "C" [[gnu::visibility("default")]] int MPI_Comm_set_errhandler(MPI_Comm comm,
                                                                      MPI_Errhandler handler) {
  using namespace imbrex::mpi;
  const bool replaced = handler == MPI_ERRORS_ARE_FATAL && fatal_handler != MPI_ERRHANDLER_NULL;
  return PMPI_Comm_set_errhandler(comm, replaced ? fatal_handler : handler);
}

extern "C" [[gnu::visibility("default")]] int MPI_Comm_get_errhandler(MPI_Comm comm,
                                                                      MPI_Errhandler* handler) {
  using namespace imbrex::mpi;
  const int code = PMPI_Comm_get_errhandler(comm, handler);
  if (code == MPI_SUCCESS && *handler == fatal_handler && *handler != MPI_ERRHANDLER_NULL) {
    PMPI_Errhandler_free(handler);
    *handler = MPI_ERRORS_ARE_FATAL;
  }
  return code;
}
