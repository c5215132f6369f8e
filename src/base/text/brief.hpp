// SPDX-License-Identifier: BSD-3-Clause
// The start of a text that a user has given, for a message of one line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace imbrex::base::text {

[[nodiscard]] inline std::string brief(const std::string_view text) {
  constexpr std::size_t shown = 40;
  std::string found(text.substr(0, shown));
  for (char& letter : found) {
    if (static_cast<unsigned char>(letter) < ' ') letter = ' ';
  }
  return text.size() > shown ? found + "..." : found;
}

}  // namespace imbrex::base::text
