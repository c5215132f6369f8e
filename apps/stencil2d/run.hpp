// SPDX-License-Identifier: BSD-3-Clause
// One run of the stencil: by tasks that every rank inserts, whose blocks may move between ranks, or
// by tasks with messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../tiled/exchange.hpp"
#include "../tiled/timed.hpp"
#include "field.hpp"

namespace stencil2d {

inline const std::vector<std::string> kernel_names{"block"};

// Measures the kernel of a block outside of the hot spot, on the calling thread.
[[nodiscard]] tiled::KernelTimes measure_kernels(const Problem& problem);

// The kernel of a task: it computes the block, or sleeps as long as the block costs.
class Kernels : public tiled::TimedKernels {
 public:
  Kernels() = default;
  explicit Kernels(const tiled::KernelTimes& times)
      : TimedKernels(times, 1), block_s_(times.empty() ? 0 : times[0]) {}

  // Advances a block by one step; a sleeping kernel leaves the cells as they are. Returns how long
  // the step took without other work of the processor: a computation counts the thread's own time,
  // a sleep the time that it stands for.
  std::int64_t advance_ns(const Problem& problem, double* cells, const Halo& halo, int cost) const;

 private:
  double block_s_ = 0;
};

// The measurements of all ranks at the end of a period.
struct Period {
  double imbalance;           // of the times that its tasks took, by where the blocks were
  double imbalance_expected;  // of the next one, by where they are then, if costs stay
  int moved;                  // blocks, at its end
};

struct Outcome {
  double seconds;               // from a barrier to the last rank's end
  std::vector<Period> periods;
  double imbalance;             // over all periods: longest times, summed, over the mean ones
  std::int64_t bytes_sent;      // by all ranks
  bool right;                   // every block is as in `expected`
};

enum class Variant : std::uint8_t {
  fixed,    // data with owners, which stay
  moving,   // data with owners, which change at the end of a period
  tasks,    // messages by plain MPI in tasks
  iterate,  // the tasks of two steps of `tasks`, created once by imbrex::iterate()
};

struct Options {
  int every = 10;  // steps of a period
  Variant variant = Variant::moving;
};

// `expected`: the field at the end; empty: not compared. Collective.
[[nodiscard]] Outcome run(const tiled::Team& team, const Problem& problem, const Kernels& kernels,
                          const Options& options, const std::vector<double>& expected);

}  // namespace stencil2d
