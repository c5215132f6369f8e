// SPDX-License-Identifier: BSD-3-Clause
// The steps of a solver - loops over sub-blocks, exchanges, sums - carried out one after the other,
// or as tasks that run as soon as what they read is there. Measures them. Knows no algorithm.
#pragma once

#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "../tiled/timed.hpp"
#include "halo.hpp"
#include "program.hpp"

namespace sparse {

// A vector on a brick. A char names what a task reads or writes: the part on a sub-block, or what
// one neighbour owns.
struct Field {
  explicit Field(const Brick& brick)
      : values(brick.size()), blocks(brick.blocks().size()), layers(brick.neighbours().size()) {}

  std::vector<double> values;
  std::vector<char> blocks;
  std::vector<char> layers;
};

// A brick with its messages.
struct Grid {
  Grid(const Brick& of, MPI_Comm communicator)
      : brick(of), halo(of, communicator), sends(of.neighbours().size()), receives(sends.size()) {}

  const Brick& brick;
  Halo halo;
  std::vector<char> sends, receives;  // names of the buffers of a neighbour's messages
};

// A number that all ranks sum, and what follows from it. Loops write `parts`, by sub-block.
struct Sum {
  Sum(std::size_t blocks, MPI_Comm own, std::function<void(double)> then)
      : communicator(own), parts(blocks), names(blocks), set(std::move(then)) {}

  MPI_Comm communicator;  // of this sum alone: different sums may be in flight at once
  std::vector<double> parts;
  std::vector<char> names;
  std::function<void(double)> set;
  char result = 0;  // names what set() writes
};

// A loop over the sub-blocks of a brick, and what the body of each reads and writes. The vectors
// hold pointers to what outlives the run.
struct Loop {
  using Near = std::vector<std::vector<int>>;  // by sub-block: others, perhaps of another brick

  imbrex::Name name;
  const Brick& brick;
  std::vector<int> calls;  // of the program's kernels, by the body for each sub-block
  std::vector<const Field*> reads = {};         // on the block
  std::vector<const Field*> reads_around = {};  // and on all that it depends on
  std::vector<std::pair<const Field*, const Near*>> reads_near = {};
  std::vector<Field*> writes = {};  // on the block
  Sum* parts = nullptr;             // whose part it writes
  const Sum* after = nullptr;       // whose result it reads
  int urgency = 1;                  // the priority of sub-blocks that messages take points of
};

// Suspends.
class Runner {
 public:
  using Body = std::function<void(std::size_t block, const Box& box)>;

  // `times` of the kernels on all points of `finest`, by one worker, in proportion on less; empty:
  // kernels compute. Bodies that sleep leave all vectors as they are.
  Runner(const Brick& finest, const tiled::KernelTimes& times) : finest_(finest), times_(times) {}
  virtual ~Runner() = default;

  void loop(const Loop& loop, Body body);
  virtual void exchange(Grid& grid, Field& field) = 0;
  virtual void sum(Sum& sum) = 0;
  // Calls `steps`, which calls the three above, and returns when all of them are done.
  virtual void run(const std::function<void()>& steps) = 0;
  // Measures `algorithm`, which calls run(), from a barrier on. Collective.
  [[nodiscard]] Outcome measure(MPI_Comm communicator, const std::function<void()>& algorithm);

 private:
  virtual void run_bodies(const Loop& loop, std::function<void(std::size_t block)> body) = 0;
  [[nodiscard]] virtual double mpi_s() const noexcept { return 0; }  // of main in MPI
  [[nodiscard]] virtual std::int64_t tests() const noexcept { return 0; }  // of requests

  const Brick& finest_;
  const tiled::KernelTimes times_;
  std::atomic<std::int64_t> kernel_ns_ = 0;  // relaxed: a statistic
};

[[nodiscard]] std::unique_ptr<Runner> make_runner(Variant variant, const Brick& finest,
                                                  const tiled::KernelTimes& times);

}  // namespace sparse
