// SPDX-License-Identifier: BSD-3-Clause
// The variant in imbrex's data with owners: the loop over the whole graph is the program of every
// rank, and there are no messages in it.
#include <imbrex/data.hpp>
#include <imbrex/imbrex.hpp>

#include <vector>

#include "variants.hpp"

namespace task_bench {

using imbrex::View;
using imbrex::Views;

double run_data(const Run& run, Board& board) {
  const Graph& graph = run.graph;
  imbrex::Space space(run.comm, {.name = "task_bench"});
  std::vector<imbrex::Data<Mark>> outputs[2];  // of even and of odd steps
  for (const int parity : {0, 1}) {
    for (int column = 0; column < graph.shape().width; ++column) {
      outputs[parity].push_back(space.data<Mark>(graph.owner(column), run.marks));
    }
  }
  std::vector<imbrex::Data<Mark>> inputs;
  const double start = start_together(run);
  for (int step = 0; step < graph.steps(); ++step) {
    const std::vector<imbrex::Data<Mark>>& before = outputs[(step + 1) % 2];
    const Columns columns = graph.columns(step);
    for (int column = columns.first; column < columns.end; ++column) {
      inputs.clear();
      for (const int input : graph.inputs(step, column)) {
        inputs.push_back(before[static_cast<std::size_t>(input)]);
      }
      auto task = space.task("point").in(inputs).out(
          outputs[step % 2][static_cast<std::size_t>(column)]);
      if (!task.concerns()) continue;
      std::move(task).launch([&board, step, column](Views<const Mark> read, View<Mark> out) {
        board.run(step, column, out.data(),
                  [&read](const std::size_t number, int) { return read[number].data(); });
      });
    }
  }
  space.finish();
  return MPI_Wtime() - start;
}

}  // namespace task_bench
