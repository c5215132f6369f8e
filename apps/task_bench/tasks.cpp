// SPDX-License-Identifier: BSD-3-Clause
// The variant in imbrex's tasks: a task names the outputs that it reads and writes, and a message
// is a blocking call in a task.
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include "variants.hpp"

namespace task_bench {
namespace {

class Tasks {
 public:
  Tasks(const Run& run, Board& board)
      : run_(run), board_(board), bytes_(static_cast<int>(run.marks * sizeof(Mark))) {}

  void spawn_all() {
    for (int step = 0; step < run_.graph.steps(); ++step) {
      for (const int column : run_.graph.imports(step)) spawn_receive(step, column);
      const Columns columns = run_.graph.my_columns(step);
      for (int column = columns.first; column < columns.end; ++column) spawn_point(step, column);
    }
  }

 private:
  void spawn_receive(const int step, const int column) {
    imbrex::task("receive").out(*board_.output(step, column)).launch([this, step, column] {
      MPI_Recv(board_.output(step, column), bytes_, MPI_BYTE, run_.graph.owner(column),
               tag_of(run_, step, column), run_.comm, MPI_STATUS_IGNORE);
    });
  }

  void spawn_point(const int step, const int column) {
    imbrex::TaskBuilder task = imbrex::task("point");
    for (const int input : run_.graph.inputs(step, column)) {
      (void)task.in(*board_.output(step - 1, input));
    }
    (void)task.out(*board_.output(step, column));
    task.launch([this, step, column] {
      board_.run(step, column);
      for (const int rank : run_.graph.receivers(step, column)) {
        MPI_Send(board_.output(step, column), bytes_, MPI_BYTE, rank, tag_of(run_, step, column),
                 run_.comm);
      }
    });
  }

  const Run& run_;
  Board& board_;
  const int bytes_;
};

}  // namespace

double run_tasks(const Run& run, Board& board) {
  Tasks tasks(run, board);
  const double start = start_together(run);
  imbrex::finish([&tasks] { tasks.spawn_all(); });
  return MPI_Wtime() - start;
}

}  // namespace task_bench
