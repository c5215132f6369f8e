// SPDX-License-Identifier: BSD-3-Clause
// The runs of a program: its variants in turn, a line of each, medians, and the file of figures.
// Knows neither MPI nor what a run does.
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace apps {

struct Spread {
  double least, median, most;
};
// The median of an even number of values is the mean of the middle two. REQUIRES: there is a value.
[[nodiscard]] Spread spread_of(std::vector<double> values);
[[nodiscard]] double median_of(std::vector<double> values);

// Which run comes next.
struct Turn {
  std::size_t variant;  // its index
  int number;           // of all runs, from 1
  bool last;            // of this variant
};

// The result of a run over all ranks.
struct Run {
  double seconds = 0;          // of the slowest rank
  bool right = true;
  std::string text = {};       // what people read behind the time
  nlohmann::json figures = nlohmann::json::object();  // beside the variant and the seconds
};

// Variants take turns, so that a change of the machine's speed meets all of them.
class Runs {
 public:
  // `digits`: of the seconds that people read. Prints on the first rank.
  Runs(std::vector<std::string> variants, int repetitions, bool is_first_rank, int digits = 3);

  // Runs all. Collective if `run` is. `run` may throw; then the rest is not run.
  void measure(const std::function<Run(const Turn&)>& run);

  [[nodiscard]] const std::vector<std::string>& variants() const noexcept { return variants_; }
  [[nodiscard]] bool right() const noexcept { return right_; }  // of all runs
  [[nodiscard]] const std::vector<double>& seconds(std::size_t variant) const {
    return seconds_[variant];
  }
  [[nodiscard]] double median(std::size_t variant) const { return median_of(seconds_[variant]); }
  // The median of `figure`, a name or a function of a run's figures; 0 for a name that is missing.
  template <class Figure>
  [[nodiscard]] double median(std::size_t variant, Figure&& figure) const {
    std::vector<double> values;
    for (std::size_t i = variant; i < figures_.size(); i += variants_.size()) {
      if constexpr (std::is_invocable_v<Figure, const nlohmann::json&>) {
        values.push_back(figure(figures_[i]));
      } else {
        values.push_back(figures_[i].value(figure, 0.0));
      }
    }
    return median_of(std::move(values));
  }
  // One element for each run, in the order of the runs.
  [[nodiscard]] const nlohmann::json& figures() const noexcept { return figures_; }

 private:
  const std::vector<std::string> variants_;
  const int repetitions_;
  const bool is_first_rank_;
  const int digits_;
  bool right_ = true;
  std::vector<std::vector<double>> seconds_;  // by variant
  nlohmann::json figures_ = nlohmann::json::array();
};

// Writes the figures of a program to the file that --json names; nothing if the path is empty.
// Throws std::runtime_error with the system's reason.
void write_json(const std::string& path, const nlohmann::json& document);

}  // namespace apps
