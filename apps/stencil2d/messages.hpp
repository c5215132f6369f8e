// SPDX-License-Identifier: BSD-3-Clause
// The stencil with blocks that stay, by tasks with messages: plain MPI calls that block in a task.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../step_tasks.hpp"
#include "periods.hpp"

namespace stencil2d {

class Messages {
 public:
  Messages(const tiled::Team& team, const Problem& problem, const Kernels& kernels,
           const Options& options);

  void run();
  // After run(). Collective.
  [[nodiscard]] Outcome outcome(const std::vector<double>& expected);

 private:
  using Edges = std::array<std::vector<double>, 2>;  // of even and of odd steps

  static std::size_t index(const int number) noexcept { return static_cast<std::size_t>(number); }
  [[nodiscard]] bool is_mine(const int block) const noexcept {
    return owners_[index(block)] == team_.rank();
  }
  [[nodiscard]] double* edge(const int step, const int block, const int side) noexcept {
    return edges_[index(block)][index(step % 2)].data() + side * problem_.side;
  }

  void create_fill(int block);
  void create_step(int step);
  void create_exchange(int step, int block, int side);
  void create_advance(int step, int block);

  const tiled::Team& team_;
  const Problem& problem_;
  const Kernels& kernels_;
  const bool iterates_;
  const std::vector<int> owners_;
  std::vector<int> mine_;                   // blocks of this rank
  std::vector<std::vector<double>> cells_;  // by block; of those of this rank
  std::vector<Edges> edges_;                // by block; of those and their neighbours
  std::int64_t messages_ = 0;               // that this rank sends in a step
  Periods periods_;
  apps::StepTasks steps_;
};

}  // namespace stencil2d
