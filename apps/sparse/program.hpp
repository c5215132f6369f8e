// SPDX-License-Identifier: BSD-3-Clause
// What programs that solve on a brick have in common: the variants that they compare, and what they
// say of a run.
#pragma once

#include <imbrex/mpi.hpp>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../harness/activity.hpp"
#include "../harness/command_line.hpp"
#include "../harness/runs.hpp"
#include "../tiled/timed.hpp"
#include "brick.hpp"

namespace sparse {

struct Options;  // options.hpp

enum class Variant : std::uint8_t {
  blocking,        // MPI on main, between loops over sub-blocks that all workers share
  tasks,           // a task for each sub-block and message; messages block in plain MPI calls
  iterate,         // the tasks of an iteration, created once by imbrex::iterate()
  test_each,       // those of `tasks`; they wait as under TAMPI
  blocking_tasks,  // a task for each sub-block and exchange; MPI blocks its worker
};

inline constexpr apps::Choice<Variant> variants[] = {
    {"blocking", Variant::blocking},
    {"tasks", Variant::tasks},
    {"iterate", Variant::iterate},
    {"test-each", Variant::test_each},
    {"blocking-tasks", Variant::blocking_tasks}};
// REQUIRES: the name is one of these.
[[nodiscard]] Variant variant_of(const std::string& name);

// The progress that MPI made, on all ranks.
struct Progress {
  double polls, polls_s;          // by any thread
  double callbacks, callbacks_s;  // in which MPI was asked for completions, or told of one
  double notices;                 // completions that callbacks found
  double thread_polls, thread_s;  // by a thread of progress; s: of processor time
};

// A run over all ranks. Shares are of the workers' time: in kernels, and in tasks and no kernel;
// of blocking, of main's time in MPI. The caller puts `progress` at the end of the text.
struct Measured {
  apps::Run run;
  std::string progress;
};

// The measurements of a rank in one run. The last two members are the algorithm's.
struct Outcome {
  double seconds = 0;      // from a barrier to its end
  double kernel_s = 0;     // in kernels, over all workers
  double in_task_s = 0;    // in tasks and main, over all workers
  double mpi_s = 0;        // blocking: of main in MPI
  std::int64_t tests = 0;  // of requests, by test_each
  int iterations = 0;      // the same on all ranks
  double residual = 0;     // the same on all ranks
};

// Measures a run, from the making of this on.
class Meter {
 public:
  Meter();
  // Collective.
  [[nodiscard]] Measured measured(const tiled::Team& team, Variant variant,
                                  const Outcome& mine) const;

 private:
  const imbrex::detail::Totals totals_;
  imbrex::ProgressReport progress_;
};

// Prints by how many per cent the median of `blocking` exceeds that of each other variant. Prints
// nothing if `blocking` has not run.
void print_gains(const apps::Runs& runs);
// Prints which grid of `size` the ranks of a program have, and how they divide it.
void print_head(const tiled::Team& team, const Point& size, const char* of_what,
                const Brick& brick);

// Returns the head of the figures in --json.
[[nodiscard]] nlohmann::json document_of(const char* program, const tiled::Team& team,
                                         const Options& options, const tiled::KernelTimes& times);

}  // namespace sparse
