// SPDX-License-Identifier: BSD-3-Clause
// The variants in imbrex's tasks: a task names the outputs that it reads and writes, and a message
// is a blocking call in a task. Tasks are created for each step, or once for the steps that repeat.
#include <imbrex/imbrex.hpp>
#include <imbrex/mpi.hpp>

#include "../step_tasks.hpp"
#include "variants.hpp"

namespace task_bench {
namespace {

class Tasks {
 public:
  Tasks(const Run& run, Board& board)
      : run_(run), board_(board), bytes_(static_cast<int>(run.marks * sizeof(Mark))) {}

  void spawn_all() { spawn({0, run_.graph.steps()}); }

  // Creates other steps than whole periods one by one: IMBREX_CHECK=1 calls the body for two.
  void iterate() {
    const Steps repeated = run_.graph.repeated();
    const int pattern = run_.graph.period();
    const int period = pattern % 2 == 0 ? pattern : 2 * pattern;  // outputs alternate
    const int end = repeated.first + repeated.count() / period * period;
    spawn({0, repeated.first});
    steps_.iterate(repeated.first, end, period, [this](const int step) { spawn_step(step); });
    spawn({end, run_.graph.steps()});
  }

 private:
  void spawn(const Steps& steps) {
    for (int step = steps.first; step < steps.end; ++step) spawn_step(step);
  }

  void spawn_step(const int step) {
    for (const int column : run_.graph.imports(step)) spawn_receive(step, column);
    const Columns columns = run_.graph.my_columns(step);
    for (int column = columns.first; column < columns.end; ++column) spawn_point(step, column);
  }

  void spawn_receive(const int step, const int column) {
    imbrex::TaskBuilder task = imbrex::task("receive");
    (void)task.out(*board_.output(step, column));
    steps_.launch(task, step, [this, column](const int now) {
      MPI_Recv(board_.output(now, column), bytes_, MPI_BYTE, run_.graph.owner(column),
               tag_of(run_, now, column), run_.comm, MPI_STATUS_IGNORE);
    });
  }

  void spawn_point(const int step, const int column) {
    imbrex::TaskBuilder task = imbrex::task("point");
    for (const int input : run_.graph.inputs(step, column)) {
      (void)task.in(*board_.output(step - 1, input));
    }
    (void)task.out(*board_.output(step, column));
    steps_.launch(task, step, [this, column](const int now) {
      board_.run(now, column);
      for (const int rank : run_.graph.receivers(now, column)) {
        MPI_Send(board_.output(now, column), bytes_, MPI_BYTE, rank, tag_of(run_, now, column),
                 run_.comm);
      }
    });
  }

  const Run& run_;
  Board& board_;
  const int bytes_;
  apps::StepTasks steps_;
};

}  // namespace

double run_tasks(const Run& run, Board& board) {
  Tasks tasks(run, board);
  const double start = start_together(run);
  imbrex::finish([&tasks] { tasks.spawn_all(); });
  return MPI_Wtime() - start;
}

double run_iterate(const Run& run, Board& board) {
  Tasks tasks(run, board);
  const double start = start_together(run);
  imbrex::finish([&tasks] { tasks.iterate(); });
  return MPI_Wtime() - start;
}

}  // namespace task_bench
