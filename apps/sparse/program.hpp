// SPDX-License-Identifier: BSD-3-Clause
// What programs that solve on a brick have in common: the variants that they compare, and what they
// say of a run.
#pragma once

#include <imbrex/mpi.hpp>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "../tiled/activity.hpp"
#include "../tiled/timed.hpp"
#include "brick.hpp"

namespace sparse {

struct Options;  // options.hpp

enum class Variant : std::uint8_t {
  blocking,        // MPI on main, between loops over sub-blocks that all workers share
  tasks,           // a task for each sub-block and message; messages block in plain MPI calls
  test_each,       // the same; they wait as under TAMPI
  blocking_tasks,  // a task for each sub-block and exchange; MPI blocks its worker
};

// The values of --variant, and the variants that each stands for, with their names.
using NamedVariant = std::pair<std::string, Variant>;
[[nodiscard]] const std::map<std::string, std::vector<NamedVariant>>& variants();

// The progress that MPI made, on all ranks.
struct Progress {
  double polls, polls_s;          // by any thread
  double callbacks, callbacks_s;  // in which MPI was asked for completions, or told of one
  double notices;                 // completions that callbacks found
  double thread_polls, thread_s;  // by a thread of progress; s: of processor time
};

// The result of a run over all ranks.
struct Figures {
  std::string variant;
  double seconds;       // the slowest rank's
  double kernel_share;  // of the workers' time,
  double mpi_share;     // in tasks and no kernel; blocking: of main's time in MPI
  double kernel_s;
  tiled::Activity activity;
  double polls, tests;  // by workers
  Progress progress;
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
  [[nodiscard]] Figures figures(const tiled::Team& team, const NamedVariant& variant,
                                const Outcome& mine) const;

 private:
  const imbrex::detail::Totals totals_;
  imbrex::ProgressReport progress_;
};

// A line, with what the caller adds to it, and one about progress.
void print_run(const Figures& run, int number, const std::string& more);
[[nodiscard]] nlohmann::json to_json(const Figures& run);
void print_sleep(const std::vector<std::string>& kernel_names, const tiled::TimedOptions& options,
                 const tiled::KernelTimes& times);

// Prints by how many per cent the median of `blocking` exceeds that of each other variant. Prints
// nothing if `blocking` has not run.
void print_gains(const std::map<std::string, std::vector<double>>& seconds);
// Prints which grid of `size` the ranks of a program have, and how they divide it.
void print_head(const tiled::Team& team, const Point& size, const char* of_what,
                const Brick& brick);

// Returns the head of the figures in --json; `runs` is an empty array.
[[nodiscard]] nlohmann::json document_of(const char* program, const tiled::Team& team,
                                         const Options& options, const tiled::KernelTimes& times);
void write(const nlohmann::json& document, const tiled::Team& team, const Options& options);

}  // namespace sparse
