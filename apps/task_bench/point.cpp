// SPDX-License-Identifier: BSD-3-Clause
#include "point.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <numeric>

namespace task_bench {
namespace {

constexpr std::size_t line = 64;    // bytes of a cache line
constexpr std::size_t block = 128;  // doubles that a round of the memory kernel copies

// Values converge to 1: they neither overflow nor become denormal.
void multiply_and_add(double* const values, const std::size_t count, const int rounds) noexcept {
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < count; ++i) values[i] = values[i] * 0.999 + 0.001;
  }
}

// Each round copies the next block of the first half to the second half. A short task uses as many
// different blocks, over its steps, as a long task.
void copy_blocks(std::vector<double>& scratch, std::size_t& place, const int rounds) noexcept {
  const std::size_t half = scratch.size() / 2;
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = place; i < place + block; ++i) scratch[half + i] = scratch[i] + 1.0;
    place = (place + block) % half;
  }
}

std::size_t scratch_size(const Work& work) {
  const std::size_t blocks = work.scratch_bytes / (2 * block * sizeof(double));
  return work.kernel == Kernel::memory ? 2 * block * std::max<std::size_t>(1, blocks) : 0;
}

}  // namespace

int rounds_of(const Run& run, const int step, const int column) noexcept {
  if (run.work.kernel != Kernel::imbalanced) return run.work.rounds;
  const double random = uniform(run.graph.shape().seed, step, column, -1);
  return static_cast<int>(
      std::lround(run.work.rounds * (1 + run.work.imbalance * (random - 0.5))));
}

double measure_round(const Work& work) {
  std::vector<double> values(std::max<std::size_t>(64, scratch_size(work)));
  std::size_t place = 0;
  double least = 1;
  for (int rounds = 1024, trial = 0; trial < 8; ++trial) {
    const double start = MPI_Wtime();
    if (work.kernel == Kernel::memory) copy_blocks(values, place, rounds);
    else multiply_and_add(values.data(), 64, rounds);
    least = std::min(least, (MPI_Wtime() - start) / rounds);
  }
  return least;
}

Board::Board(const Run& run)
    : run_(run),
      stride_((run.marks + 3) / 4 * 4),
      marks_(2 * static_cast<std::size_t>(run.graph.shape().width) * stride_ + line / sizeof(Mark)),
      cells_(2 * static_cast<std::size_t>(run.graph.shape().width)) {
  void* memory = marks_.data();
  std::size_t bytes = marks_.size() * sizeof(Mark);
  first_ = static_cast<Mark*>(std::align(line, sizeof(Mark), memory, bytes));
  for (int column = run.graph.mine().first; column < run.graph.mine().end; ++column) {
    for (const int step : {0, 1}) {
      cells_[index(step, column)].scratch.resize(scratch_size(run.work));
    }
  }
}

void Board::compute(const int step, const int column) {
  Cell& cell = cells_[index(step, column)];
  const int rounds = rounds_of(run_, step, column);
  if (run_.work.kernel == Kernel::memory) copy_blocks(cell.scratch, cell.place, rounds);
  else multiply_and_add(cell.values, std::size(cell.values), rounds);
  ++cell.tasks;
  cell.rounds += rounds;
}

void Board::fill(const int step, const int column, Mark* const out) const {
  const bool is_wrong = step == run_.fault.step && column == run_.fault.column;
  std::fill_n(out, run_.marks, Mark{is_wrong ? -1 : step, column});
}

void Board::refuse(const int step, const int column, const int input, const Mark& found) const {
  std::fprintf(stderr,
               "task_bench: pattern %s, variant %s: the task of step %d, column %d got a wrong "
               "input: expected the output of step %d, column %d, found that of step %lld, column "
               "%lld\n",
               run_.graph.pattern().name, run_.variant, step, column, step - 1, input,
               static_cast<long long>(found.step), static_cast<long long>(found.column));
  std::fflush(stderr);
  MPI_Abort(run_.comm, 2);
  std::abort();
}

std::int64_t Board::tasks() const noexcept {
  return std::accumulate(cells_.begin(), cells_.end(), std::int64_t{0},
                         [](std::int64_t sum, const Cell& cell) { return sum + cell.tasks; });
}

std::int64_t Board::rounds() const noexcept {
  return std::accumulate(cells_.begin(), cells_.end(), std::int64_t{0},
                         [](std::int64_t sum, const Cell& cell) { return sum + cell.rounds; });
}

}  // namespace task_bench
