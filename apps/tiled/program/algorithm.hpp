// SPDX-License-Identifier: BSD-3-Clause
// What the program needs of an algorithm, and the three that there are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../replicated.hpp"
#include "../setup.hpp"
#include "options.hpp"

namespace tiled {

// Names and values, for people and for the file of figures.
using Figures = std::vector<std::pair<std::string, double>>;

// An algorithm with its matrices. All calls are main's; those that are not const, and those that
// look at the result, are collective.
class Algorithm {
 public:
  virtual ~Algorithm() = default;

  [[nodiscard]] const Layout& layout() const noexcept { return layout_; }
  // The times that kernels sleep; empty if they compute.
  [[nodiscard]] const KernelTimes& times() const noexcept { return times_; }

  [[nodiscard]] virtual std::string description() const = 0;
  [[nodiscard]] virtual double operations() const = 0;
  // The largest residual of a right result.
  [[nodiscard]] virtual double residual_limit() const = 0;

  // Puts there what run() begins with.
  virtual void fill() = 0;
  // The call that is measured. Returns 0, or the order of the first leading minor that is bad.
  [[nodiscard]] virtual std::int64_t run(Variant variant, TaskUse& use) = 0;
  // Returns a text for people: that the minor of this order is bad.
  [[nodiscard]] virtual std::string describe_minor(std::int64_t order) const;

  // Returns the error of the result of run().
  [[nodiscard]] virtual Residual residual() const = 0;
  [[nodiscard]] virtual Figures use_result() const { return {}; }

 protected:
  // Throws InputError if so many matrices cannot be. `measure` says how long kernels take.
  Algorithm(const Team& team, const Options& options, const Layout& layout, int matrices,
            KernelTimes (*measure)(int tile));

  [[nodiscard]] KernelTimes times_here() const {
    return tiled::times_here(team_, options_.timed, times_);
  }

  const Team& team_;
  const Options& options_;

 private:
  const Layout layout_;
  const KernelTimes times_;
};

// Collective. Throw InputError.
[[nodiscard]] std::unique_ptr<Algorithm> make_cholesky(const Team& team, const Options& options);
[[nodiscard]] std::unique_ptr<Algorithm> make_lu(const Team& team, const Options& options);
[[nodiscard]] std::unique_ptr<Algorithm> make_matmul(const Team& team, const Options& options);

// Prints the output of --count-only. Throws InputError.
void print_count(const Options& options);

}  // namespace tiled
