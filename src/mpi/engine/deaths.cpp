// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/engine/deaths.hpp"

#include <mpi.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdlib>
#include <string>
#include <string_view>

#include "mpi/engine/mpi_errors.hpp"

namespace imbrex::mpi {

namespace {

// Set in MPI_Init, if this process reports; any thread reads it. Forked processes report nothing.
std::atomic<int> told_rank{-1};
std::atomic<pid_t> told_process{0};

void tell(const std::string& what, const int code) {
  const int rank = told_rank.load(std::memory_order_relaxed);
  if (rank < 0 || told_process.load(std::memory_order_relaxed) != getpid()) return;
  print("rank " + std::to_string(rank) + what + std::to_string(code));
}

void tell_end(const int status, void*) {
  if (status != 0) tell(" ends with exit code ", status & 0xff);
}

}  // namespace

void tell_process() {
  const char* const asked = std::getenv("IMBREX_TELL_PROCESS");
  if (asked == nullptr || std::string_view(asked) != "1") return;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, sizeof host - 1);
  print("rank " + std::to_string(rank) + " is process " + std::to_string(getpid()) + " on " + host);
  told_process.store(getpid(), std::memory_order_relaxed);
  told_rank.store(rank, std::memory_order_relaxed);
  on_exit(tell_end, nullptr);
}

void tell_abort(const int code) noexcept {
  try {
    tell(" calls MPI_Abort with code ", code);
  } catch (...) {
    // Out of memory: the launcher may report the end.
  }
}

}  // namespace imbrex::mpi

IMBREX_FUNCTION(Abort)(MPI_Comm comm, int code) {
  imbrex::mpi::tell_abort(code);
  return PMPI_Abort(comm, code);
}
