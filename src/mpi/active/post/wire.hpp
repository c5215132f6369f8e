// SPDX-License-Identifier: BSD-3-Clause
// The communicator of active messages, and what a failed call of MPI on it means.
// Thread safety: written by Post::open() and Post::close(), else constant.
#pragma once

#include <mpi.h>

#include <string>

namespace imbrex::mpi::active {

struct Wire {
  // Packets have this tag, transfers each other one up to `tag_last`.
  static constexpr int tag_of_packets = 0;

  void open();
  void require(const char* const call, const int code) const noexcept {
    if (code != MPI_SUCCESS) fail(call, code);
  }
  // A rank that cannot be reached, most likely: nobody who waits for it can go on, so all end.
  [[noreturn]] void fail(const std::string& call, int code) const noexcept;

  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int ranks = 1;
  int tag_last = 32767;
};

}  // namespace imbrex::mpi::active
