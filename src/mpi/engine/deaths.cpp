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
std::atomic<int> reporting_rank{-1};
std::atomic<pid_t> reporting_process{0};

void report(const std::string& what, const int code) {
  const int rank = reporting_rank.load(std::memory_order_relaxed);
  if (rank < 0 || reporting_process.load(std::memory_order_relaxed) != getpid()) return;
  print("rank " + std::to_string(rank) + what + std::to_string(code));
}

void report_exit(const int status, void*) {
  if (status != 0) report(" ends with exit code ", status & 0xff);
}

}  // namespace

void report_process() {
  const char* const asked = std::getenv("IMBREX_TELL_PROCESS");
  if (asked == nullptr || std::string_view(asked) != "1") return;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char host[HOST_NAME_MAX + 1] = "";
  gethostname(host, sizeof host - 1);
  print("rank " + std::to_string(rank) + " is process " + std::to_string(getpid()) + " on " + host);
  reporting_process.store(getpid(), std::memory_order_relaxed);
  reporting_rank.store(rank, std::memory_order_relaxed);
  on_exit(report_exit, nullptr);
}

void report_abort(const int code) noexcept {
  try {
    report(" calls MPI_Abort with code ", code);
  } catch (...) {
    // Out of memory: the launcher may report the end.
  }
}

}  // namespace imbrex::mpi

IMBREX_FUNCTION(Abort)(MPI_Comm comm, int code) {
  imbrex::mpi::report_abort(code);
  return PMPI_Abort(comm, code);
}
