// SPDX-License-Identifier: BSD-3-Clause
// The communicator of active messages, and the effect of a failed call of MPI on it.
// Thread safety: written by Post::open() and Post::close(), else constant.
#pragma once

#include <mpi.h>

#include <string>

namespace imbrex::mpi::active {

struct Wire {
  // Packets have this tag, transfers the other tags up to `tag_last`.
  static constexpr int tag_of_packets = 0;

  void open();
  void require(const char* const call, const int code) const noexcept {
    if (code != MPI_SUCCESS) fail(call, code);
  }
  // A rank probably cannot be reached: tasks that wait for it cannot go on, so all ranks end.
  [[noreturn]] void fail(const std::string& call, int code) const noexcept;

  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0;
  int ranks = 1;
  int tag_last = 32767;
};

}  // namespace imbrex::mpi::active
