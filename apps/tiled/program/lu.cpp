// SPDX-License-Identifier: BSD-3-Clause
// LU as the program runs it.
#include <fmt/format.h>

#include "../lu/factor.hpp"
#include "algorithm.hpp"

namespace tiled {
namespace {

constexpr int probes = 16;

class Lu : public Algorithm {
 public:
  Lu(const Team& team, const Options& options)
      : Algorithm(team, options,
                  {options.random, options.tile_of(options.random), team.grid(), Shape::full}, 1,
                  &lu::measure_kernels),
        kernels_(times_here(), layout().tile),
        source_(options.random, options.seed),
        matrix_(allocate(team, layout())) {}

  [[nodiscard]] std::string description() const override {
    return fmt::format("random, {0} x {0}, diagonally dominant, seed {1}", options_.random,
                       options_.seed);
  }
  [[nodiscard]] double operations() const override {
    const auto n = static_cast<double>(options_.random);
    return 2 * n * n * n / 3 - n * n / 2 - n / 6;
  }
  [[nodiscard]] double residual_limit() const override { return 10; }

  void fill() override { tiled::fill(*matrix_, source_); }
  [[nodiscard]] std::int64_t run(Variant variant, TaskUse& use) override {
    const auto factor = variant == Variant::tasks ? &lu::factor : &lu::factor_inserted;
    return factor(team_, *matrix_, kernels_, options_.tasks, use);
  }
  [[nodiscard]] Residual residual() const override {
    return {lu::residual(team_, *matrix_, source_, probes),
            fmt::format("||A - L U|| / (n ||A|| eps), Frobenius, estimated from {} vectors",
                        probes)};
  }

 private:
  const lu::Kernels kernels_;
  const UnsymmetricSource source_;
  const std::unique_ptr<TiledMatrix> matrix_;
};

}  // namespace

std::unique_ptr<Algorithm> make_lu(const Team& team, const Options& options) {
  return std::make_unique<Lu>(team, options);
}

}  // namespace tiled
