// SPDX-License-Identifier: BSD-3-Clause
// A text as a string of JSON, for files that Python reads: traces and recorded insertions.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace imbrex::base::text {

[[nodiscard]] inline std::string json_text(const std::string_view text) {
  std::string out = "\"";
  for (const char character : text) {
    if (character == '"' || character == '\\') {
      out += '\\';
      out += character;
    } else if (static_cast<unsigned char>(character) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(character));
    } else {
      out += character;
    }
  }
  return out + '"';
}

}  // namespace imbrex::base::text
