// SPDX-License-Identifier: BSD-3-Clause
#include "base/options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "imbrex/error.hpp"

namespace imbrex::base {

namespace {

// What the table's "a to b" says; nullopt for other forms.
struct Range {
  std::int64_t first, last;
};

std::optional<std::int64_t> parse_size(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  const std::string_view units = "KMG";
  int shift = 0;
  if (!unit.empty()) {
    const std::size_t found =
        units.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
    if (found == std::string_view::npos || unit.size() > 1) return std::nullopt;
    shift = 10 * (static_cast<int>(found) + 1);
  }
  if (value < 0 || value > (INT64_MAX >> shift)) return std::nullopt;
  return value << shift;
}

std::optional<Range> parse_range(const std::string_view valid) {
  const std::size_t to = valid.find(" to ");
  if (to == std::string_view::npos) return std::nullopt;
  const auto first = parse_size(valid.substr(0, to));
  const auto last = parse_size(valid.substr(to + 4));
  if (!first || !last) return std::nullopt;
  return Range{*first, *last};
}

[[noreturn]] void refuse(const char* name, std::string_view text, const char* valid) {
  throw Error(fmt::format("imbrex: IMBREX_{}={}: valid: {}", name, text, valid));
}

void parse(const char* name, const std::string_view text, const char* valid, std::int64_t& value) {
  const auto parsed = parse_size(text);
  const auto range = parse_range(valid);
  if (!parsed || (range && (*parsed < range->first || *parsed > range->last))) {
    refuse(name, text, valid);
  }
  value = *parsed;
}

void parse(const char* name, const std::string_view text, const char* valid, bool& value) {
  if (text == "1" || text == "true" || text == "yes" || text == "on") {
    value = true;
  } else if (text == "0" || text == "false" || text == "no" || text == "off") {
    value = false;
  } else {
    refuse(name, text, valid);
  }
}

// A list of words, of which one may end in ":<number>"; any text where the table lists none.
void parse(const char* name, const std::string_view text, const char* valid, std::string& value) {
  std::string_view rest = valid;
  bool found = rest.find(", ") == std::string_view::npos;
  while (!found && !rest.empty()) {
    const std::size_t comma = rest.find(", ");
    const std::string_view word = rest.substr(0, comma);
    const std::size_t number = word.find("<number>");
    if (number == std::string_view::npos) {
      found = word == text;
    } else if (text.starts_with(word.substr(0, number)) && text.size() > number) {
      found = parse_size(text.substr(number)).has_value();
    }
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 2);
  }
  if (!found) refuse(name, text, valid);
  value = text;
}

// True if `name` is in the table; then the value is stored.
bool assign(Options& options, const std::string_view name, const std::string_view text) {
#define IMBREX_OPTION(option, kind, default_value, valid, help) \
  if (name == #option) {                                        \
    parse(#option, text, valid, options.option);                \
    return true;                                                \
  }
#include "base/options.def"
#undef IMBREX_OPTION
  return false;
}

}  // namespace

Options read_options() {
  constexpr std::string_view prefix = "IMBREX_";
  Options options;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (!text.starts_with(prefix) || equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(prefix.size(), equals - prefix.size());
    if (!assign(options, name, text.substr(equals + 1))) {
      throw Error(fmt::format("imbrex: IMBREX_{} is no option. The options are:\n{}", name,
                              options_help()));
    }
  }
  return options;
}

std::int64_t integer_value(const Options& options, const char* name) noexcept {
  const std::string_view wanted = name;
  const auto number = [](const auto& value) -> std::int64_t {
    if constexpr (requires { static_cast<std::int64_t>(value); }) {
      return static_cast<std::int64_t>(value);
    } else {
      return 0;
    }
  };
#define IMBREX_OPTION(option, kind, default_value, valid, help) \
  if (wanted == #option) return number(options.option);
#include "base/options.def"
#undef IMBREX_OPTION
  return 0;
}

std::string options_help() {
  std::string text;
  const auto line = [&text](const std::string_view name, const std::string& standard,
                            const std::string_view valid, const std::string_view help) {
    text += fmt::format("  IMBREX_{:<11} {}\n{:21}valid: {}; default: {}\n", name, help, "", valid,
                        standard.empty() ? "none" : standard);
  };
#define IMBREX_OPTION(name, kind, default_value, valid, help) \
  line(#name, fmt::format("{}", default_value), valid, help);
#include "base/options.def"
#undef IMBREX_OPTION
  return text;
}

}  // namespace imbrex::base
