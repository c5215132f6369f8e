// SPDX-License-Identifier: BSD-3-Clause
// The messages of one step, by non-blocking calls: for the variants without imbrex.
#pragma once

#include <mpi.h>

#include <vector>

#include "variants.hpp"

namespace task_bench {

// Thread safety: one thread at a time.
class Exchange {
 public:
  Exchange(const Run& run, Board& board) : run_(run), board_(board) {}

  // Posts the receives of what tasks of the next step read. REQUIRES: no task of this rank reads
  // the outputs of step - 2 any more.
  void receive(const int step) {
    for (const int column : run_.graph.imports(step)) {
      MPI_Irecv(board_.output(step, column), bytes(), MPI_BYTE, run_.graph.owner(column),
                tag_of(run_, step, column), run_.comm, next());
    }
  }
  // Sends the output of a task to the ranks that read it.
  void send(const int step, const int column) {
    for (const int rank : run_.graph.receivers(step, column)) {
      MPI_Isend(board_.output(step, column), bytes(), MPI_BYTE, rank, tag_of(run_, step, column),
                run_.comm, next());
    }
  }
  // Waits for all of these messages.
  void wait() {
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
    requests_.clear();
  }

 private:
  [[nodiscard]] int bytes() const noexcept { return static_cast<int>(run_.marks * sizeof(Mark)); }
  [[nodiscard]] MPI_Request* next() { return &requests_.emplace_back(MPI_REQUEST_NULL); }

  const Run& run_;
  Board& board_;
  std::vector<MPI_Request> requests_;
};

}  // namespace task_bench
