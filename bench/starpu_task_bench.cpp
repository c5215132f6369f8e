// SPDX-License-Identifier: BSD-3-Clause
// The graphs of apps/task_bench on StarPU-MPI: every rank inserts the whole graph, and StarPU finds
// the messages, as imbrex's data with owners do. Takes the options of task_bench; its variant is
// `starpu`. Nothing of imbrex is in this program.
#include <mpi.h>
#include <starpu_mpi.h>

#include <cstdio>
#include <vector>

#include "harness/program.hpp"
#include "program.hpp"

namespace task_bench {
namespace {

void require_success(const int code, const char* const call) {
  if (code == 0) return;
  std::fprintf(stderr, "starpu_task_bench: %s returned %d\n", call, code);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

struct Point {
  Board* board;
  int step;
  int column;
};

Mark* memory_of(void* const buffer) {
  return reinterpret_cast<Mark*>(STARPU_VECTOR_GET_PTR(buffer));
}

// The inputs, in the order of their columns, then the output.
void run_point(void* buffers[], void* argument) {
  Point point{};
  int inputs = 0;
  starpu_codelet_unpack_args(argument, &point, &inputs);
  point.board->run(point.step, point.column, memory_of(buffers[inputs]),
                   [buffers](const std::size_t number, int) { return memory_of(buffers[number]); });
}

starpu_codelet make_codelet() {
  starpu_codelet codelet{};
  codelet.cpu_funcs[0] = run_point;
  codelet.nbuffers = STARPU_VARIABLE_NBUFFERS;
  codelet.name = "point";
  return codelet;
}

class Outputs {
 public:
  Outputs(const Run& run, Board& board) : width_(run.graph.shape().width) {
    const Graph& graph = run.graph;
    for (int index = 0; index < 2 * width_; ++index) {
      const int column = index % width_;
      const bool mine = graph.is_mine(column);
      Mark* const memory = mine ? board.output(index / width_, column) : nullptr;
      starpu_data_handle_t& handle = handles_.emplace_back();
      starpu_vector_data_register(&handle, mine ? STARPU_MAIN_RAM : -1,
                                  reinterpret_cast<std::uintptr_t>(memory),
                                  static_cast<std::uint32_t>(run.marks), sizeof(Mark));
      starpu_mpi_data_register(handle, index, graph.owner(column));
    }
  }
  ~Outputs() {
    for (const starpu_data_handle_t handle : handles_) starpu_data_unregister(handle);
  }
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;

  [[nodiscard]] starpu_data_handle_t at(const int step, const int column) const {
    return handles_[static_cast<std::size_t>((step & 1) * width_ + column)];
  }

 private:
  const int width_;
  std::vector<starpu_data_handle_t> handles_;
};

void insert_point(const Run& run, Board& board, const Outputs& outputs, const int step,
                  const int column) {
  static starpu_codelet codelet = make_codelet();
  std::vector<starpu_data_descr> accesses;
  for (const int input : run.graph.inputs(step, column)) {
    accesses.push_back({outputs.at(step - 1, input), STARPU_R});
  }
  accesses.push_back({outputs.at(step, column), STARPU_W});
  const Point point{&board, step, column};
  const int inputs = static_cast<int>(accesses.size()) - 1;
  require_success(
      starpu_mpi_task_insert(run.comm, &codelet, STARPU_DATA_MODE_ARRAY, accesses.data(),
                             static_cast<int>(accesses.size()), STARPU_VALUE, &point, sizeof point,
                             STARPU_VALUE, &inputs, sizeof inputs, 0),
      "starpu_mpi_task_insert");
}

double run_starpu(const Run& run, Board& board) {
  const Outputs outputs(run, board);
  const double start = start_together(run);
  for (int step = 0; step < run.graph.steps(); ++step) {
    const Columns columns = run.graph.columns(step);
    for (int column = columns.first; column < columns.end; ++column) {
      insert_point(run, board, outputs, step, column);
    }
  }
  require_success(starpu_task_wait_for_all(), "starpu_task_wait_for_all");
  require_success(starpu_mpi_wait_for_all(run.comm), "starpu_mpi_wait_for_all");
  const double seconds = MPI_Wtime() - start;
  MPI_Barrier(run.comm);
  return seconds;
}

int workers() { return static_cast<int>(starpu_cpu_worker_get_count()); }

void start(int& argc, char**& argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  require_success(starpu_mpi_init_conf(&argc, &argv, 0, MPI_COMM_WORLD, nullptr),
                  "starpu_mpi_init_conf");
}

// Before MPI ends, after wrong input too.
struct Shutdown {
  ~Shutdown() { starpu_mpi_shutdown(); }
};

int run_all(int argc, char** argv) {
  const Shutdown shutdown;
  return run(argc, argv, {{"starpu", run_starpu, workers}});
}

}  // namespace
}  // namespace task_bench

int main(int argc, char** argv) {
  return apps::run_program("task_bench", argc, argv, &task_bench::start, &task_bench::run_all);
}
