// SPDX-License-Identifier: BSD-3-Clause
#include "runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <utility>

namespace apps {

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return {values.front(),
          values.size() % 2 == 1 ? values[half] : 0.5 * (values[half - 1] + values[half]),
          values.back()};
}

double median_of(std::vector<double> values) { return spread_of(std::move(values)).median; }

Runs::Runs(std::vector<std::string> variants, const int repetitions, const bool is_first_rank,
           const int digits)
    : variants_(std::move(variants)),
      repetitions_(repetitions),
      is_first_rank_(is_first_rank),
      digits_(digits),
      seconds_(variants_.size()) {}

void Runs::measure(const std::function<Run(const Turn&)>& run) {
  int number = 0;
  for (int repetition = 1; repetition <= repetitions_; ++repetition) {
    for (std::size_t variant = 0; variant < variants_.size(); ++variant) {
      const Run result = run({variant, ++number, repetition == repetitions_});
      seconds_[variant].push_back(result.seconds);
      right_ = right_ && result.right;
      nlohmann::json figures{{"variant", variants_[variant]}, {"seconds", result.seconds}};
      figures.update(result.figures);
      figures_.push_back(std::move(figures));
      if (!is_first_rank_) continue;
      fmt::print("run {:<3} {:<15} {:10.{}f} s{}\n", number, variants_[variant], result.seconds,
                 digits_, result.text);
      std::fflush(stdout);
    }
  }
}

void write_json(const std::string& path, const nlohmann::json& document) {
  if (path.empty()) return;
  std::ofstream stream(path);
  stream << document.dump(2) << "\n";
  stream.close();
  if (!stream) throw std::runtime_error("--json " + path + ": " + std::strerror(errno));
}

}  // namespace apps
