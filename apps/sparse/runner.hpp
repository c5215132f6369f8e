// SPDX-License-Identifier: BSD-3-Clause
// The steps of a solver, carried out one after the other, or as tasks that run as soon as what they
// read is there. Measures them. Knows no algorithm.
#pragma once

#include <imbrex/imbrex.hpp>
#include <mpi.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "../tiled/timed.hpp"
#include "halo.hpp"
#include "program.hpp"
#include "steps.hpp"

namespace sparse {

// The messages of a solver.
struct Network {
  std::vector<Halo> halos;     // by the number of the grid
  std::vector<MPI_Comm> sums;  // by the number of the sum
};

// When a loop ends early: is_over() may be called once the sum is there.
struct Test {
  const Sum& after;
  std::function<bool()> is_over;
};

// Suspends.
class MeasuredRunner : public Runner {
 public:
  // `times` empty: kernels compute. Bodies that sleep leave all vectors as they are. `network`
  // outlives the runner.
  MeasuredRunner(const Brick& finest, const tiled::KernelTimes& times, Network& network)
      : Runner(finest, times), network_(network) {}

  void loop(const Loop& loop, Body body) final;
  // Calls `steps`, which calls loop(), exchange() and sum(), and returns when all of them are done.
  virtual void run(const std::function<void()>& steps) = 0;
  // Calls `steps` for each of `count` iterations, or creates their tasks in another way. Within
  // run() only.
  virtual void repeat(int count, const std::function<void()>& steps);
  // Carries out the steps of `count` iterations at most: as many as there are before the test finds
  // that the loop is over. Returns the number of iterations when all of them are done.
  [[nodiscard]] virtual int repeat_until(const Test& test, int count,
                                         const std::function<void()>& steps);
  // Measures `algorithm`, which calls run(), from a barrier on. Collective.
  [[nodiscard]] Outcome measure(MPI_Comm communicator, const std::function<void()>& algorithm);

 protected:
  [[nodiscard]] Halo& halo_of(const Grid& grid) { return network_.halos[grid.number]; }
  [[nodiscard]] MPI_Comm communicator_of(const Sum& sum) const {
    return network_.sums[sum.number];
  }

 private:
  virtual void run_bodies(const Loop& loop, std::function<void(std::size_t block)> body) = 0;
  [[nodiscard]] virtual double mpi_s() const noexcept { return 0; }  // of main in MPI
  [[nodiscard]] virtual std::int64_t tests() const noexcept { return 0; }  // of requests

  Network& network_;
  std::atomic<std::int64_t> kernel_ns_ = 0;  // relaxed: a statistic
};

[[nodiscard]] std::unique_ptr<MeasuredRunner> make_runner(Variant variant, const Brick& finest,
                                                          const tiled::KernelTimes& times,
                                                          Network& network);

}  // namespace sparse
