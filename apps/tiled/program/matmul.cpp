// SPDX-License-Identifier: BSD-3-Clause
// The matrix product as the program runs it.
#include <fmt/format.h>

#include <algorithm>

#include "../matmul/multiply.hpp"
#include "algorithm.hpp"

namespace tiled {
namespace {

class Matmul : public Algorithm {
 public:
  Matmul(const Team& team, const Options& options)
      : Algorithm(team, options,
                  {options.random, options.tile_of(options.random), team.grid(), Shape::full}, 3,
                  &matmul::measure_kernels),
        kernels_(times_here(), layout().tile),
        a_source_(options.random, options.seed),
        b_source_(options.random, options.seed + 1),
        matrices_{std::move(*allocate(team, layout())), std::move(*allocate(team, layout())),
                  std::move(*allocate(team, layout()))} {
    tiled::fill(matrices_.a, a_source_);
    tiled::fill(matrices_.b, b_source_);
  }

  [[nodiscard]] std::string description() const override {
    return fmt::format("random, {0} x {0}, seeds {1} and {2}, in {3} slice{4}", options_.random,
                       options_.seed, options_.seed + 1, options_.tasks.slices,
                       options_.tasks.slices == 1 ? "" : "s");
  }
  [[nodiscard]] double operations() const override {
    const auto n = static_cast<double>(options_.random);
    return 2 * n * n * n;
  }
  [[nodiscard]] double residual_limit() const override { return 1; }

  void fill() override {
    for_each_tile_of_mine(matrices_.c, [&](int i, int j) {
      const std::int64_t count = std::int64_t{layout().extent(i)} * layout().extent(j);
      std::fill_n(matrices_.c.handle(i, j), count, 0.0);
    });
  }
  [[nodiscard]] std::int64_t run(Variant variant, TaskUse& use) override {
    const auto multiply =
        variant == Variant::tasks ? &matmul::multiply_messages : &matmul::multiply_inserted;
    multiply(team_, matrices_, kernels_, options_.tasks, use);
    return 0;  // no kernel can fail
  }
  [[nodiscard]] Residual residual() const override {
    return {matmul::error(team_, matrices_.c, a_source_, b_source_, options_.checked_tiles),
            fmt::format("||C - A B|| / (n ||A|| ||B|| eps), Frobenius, over {} tiles of each rank",
                        options_.checked_tiles)};
  }

 private:
  const matmul::Kernels kernels_;
  const UniformSource a_source_, b_source_;
  matmul::Matrices matrices_;
};

}  // namespace

std::unique_ptr<Algorithm> make_matmul(const Team& team, const Options& options) {
  if (team.size() % options.tasks.slices != 0) {
    throw InputError(fmt::format("--slices {}: must divide the number of ranks, which is {}",
                                 options.tasks.slices, team.size()));
  }
  return std::make_unique<Matmul>(team, options);
}

}  // namespace tiled
