// SPDX-License-Identifier: BSD-3-Clause
// The settings of a simulation: one word NAME=VALUE of the command line for each.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

#include "base/text/brief.hpp"
#include "imbrex/error.hpp"

namespace imbrex::simulate {

// Each setting is taken once. Throws Error for a setting that is missing, malformed or unknown.
class Settings {
 public:
  Settings(const int count, char** const words) {
    for (int i = 1; i < count; ++i) {
      const std::string_view word = words[i];
      const std::size_t equals = word.find('=');
      if (equals == std::string_view::npos) {
        throw Error(fmt::format("not NAME=VALUE: {}", base::text::brief(word)));
      }
      const auto [its, is_new] =
          values_.emplace(word.substr(0, equals), word.substr(equals + 1));
      if (!is_new) {
        throw Error(fmt::format("the setting {} is given twice", base::text::brief(its->first)));
      }
    }
  }
  [[nodiscard]] std::string take_text(const std::string& name) {
    const auto found = values_.find(name);
    if (found == values_.end()) throw Error(fmt::format("the setting {} is missing", name));
    std::string value = found->second;
    values_.erase(found);
    return value;
  }
  // `most`: what the type holds, if it is not given.
  template <class Number>
  [[nodiscard]] Number take(const std::string& name, const Number least,
                            const Number most = std::numeric_limits<Number>::max()) {
    const std::string text = take_text(name);
    Number value{};
    const char* const end = text.data() + text.size();
    const char* parsed = nullptr;
    if constexpr (std::is_floating_point_v<Number>) {  // libc++ 19 has from_chars of integers only
      char* after = nullptr;
      value = std::strtod(text.c_str(), &after);
      parsed = text.empty() ? nullptr : after;
    } else {
      const auto [after, error] = std::from_chars(text.data(), end, value);
      parsed = error == std::errc() ? after : nullptr;
    }
    if (parsed != end || !(value >= least && value <= most)) {
      throw Error(fmt::format("the setting {}={} is not a number from {} to {}", name,
                              base::text::brief(text), least, most));
    }
    return value;
  }
  void refuse_rest() const {
    if (values_.empty()) return;
    throw Error(fmt::format("there is no setting with the name {}",
                            base::text::brief(values_.begin()->first)));
  }

 private:
  std::map<std::string, std::string> values_;
};

}  // namespace imbrex::simulate
