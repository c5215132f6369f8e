// SPDX-License-Identifier: BSD-3-Clause
// Numbers of ranks and tags in reports: 1, 2, 3, 7 as "1-3, 7", with six ranges at most.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace imbrex::base::text {

[[nodiscard]] inline std::string ranges(std::vector<int> numbers) {
  constexpr int ranges_max = 6;
  std::ranges::sort(numbers);
  numbers.erase(std::ranges::unique(numbers).begin(), numbers.end());
  std::string text;
  int written = 0;
  for (std::size_t first = 0; first < numbers.size(); ++written) {
    if (written == ranges_max) return fmt::format("{} and {} more", text, numbers.size() - first);
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += fmt::format("{}", numbers[first]);
    if (last != first) {
      text += fmt::format("{}{}", last == first + 1 ? ", " : "-", numbers[last]);
    }
    first = last + 1;
  }
  return text;
}

}  // namespace imbrex::base::text
