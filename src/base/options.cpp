// SPDX-License-Identifier: BSD-3-Clause
#include "base/options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/check.hpp"
#include "base/job.hpp"
#include "base/tables/policies.hpp"
#include "base/text/brief.hpp"
#include "imbrex/error.hpp"

namespace imbrex::base {

namespace {

// The values that "a to b" in the table allows; other forms give no Range.
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
  throw OptionError(fmt::format("imbrex: IMBREX_{}={}: valid: {}", name, base::text::brief(text),
                                valid));
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
  const bool on = text == "1" || text == "on";
  if (!on && text != "0" && text != "off") refuse(name, text, valid);
  value = on;
}

// Parses a word of a list, where one word may end in ":<number>"; any text where the table lists no
// words.
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

// The text of an option for users.
struct Text {
  std::string_view name;
  const char* valid;
  std::string_view help;
};
constexpr Text texts[] = {
#define IMBREX_OPTION_TEXT(name, valid, help) {#name, valid, help},
#include "base/tables/options_texts.def"
#undef IMBREX_OPTION_TEXT
};
constexpr std::string_view option_names[] = {
#define IMBREX_OPTION(name, kind, default_value) #name,
#include "base/tables/options.def"
#undef IMBREX_OPTION
};
static_assert(std::ranges::equal(option_names, texts, {}, {}, &Text::name),
              "options.def and options_texts.def must have the same options in the same order");

constexpr const Text& text_of(const std::string_view name) {
  return *std::ranges::find(texts, name, &Text::name);
}

// Stores the value and returns true if `name` is in the table.
bool assign(Options& options, const std::string_view name, const std::string_view text) {
#define IMBREX_OPTION(option, kind, default_value)                       \
  if (name == #option) {                                                 \
    parse(#option, text, text_of(#option).valid, options.option);        \
    return true;                                                         \
  }
#include "base/tables/options.def"
#undef IMBREX_OPTION
  return false;
}

constexpr std::string_view prefix = "IMBREX_";
// Names that are no options, and no mistakes: the `imbrex` command reads some or sets them for the
// ranks; the package for Python reads LIBRARY; module files and build scripts of a site set others
// to locate an installed package.
constexpr std::string_view not_options[] = {"D3",   "TELL_PROCESS", "ROOT", "DIR",
                                            "HOME", "PREFIX",       "BASE", "VERSION",
                                            "LIBRARY"};

// Options of earlier versions, and their replacements.
struct Former {
  std::string_view name;
  std::string_view instead;
};
constexpr Former former_options[] = {
    {"DATA_WINDOW", "set SpaceOptions::tasks_ahead of each space"},
    {"POOL_CHUNK", "set WorkPoolOptions::chunk of each pool"},
    {"POOL_INTERVAL", "set WorkPoolOptions::poll_interval of each pool"},
    {"POOL_VICTIMS", "set WorkPoolOptions::victims of each pool"},
    {"REQUEST_CALLBACK", "imbrex polls for these completions"},
    {"SENDS_BYTES", "use IMBREX_SENDS and IMBREX_SENDS_ABOVE"},
    {"SENDS_IN_ALL", "use IMBREX_SENDS and IMBREX_SENDS_ABOVE"},
    {"SENDS_PATIENCE_MS", "the time is fixed"},
    {"SENDS_UNDER_WAY", "use IMBREX_SENDS and IMBREX_SENDS_ABOVE"},
    {"TREE_MEMORY", "use data with owners (imbrex::Space) instead of messages along trees"},
    {"WINDOW", "its name is IMBREX_TASKS_AHEAD"},
};

// The replacement of an option of an earlier version; empty for any other name.
std::string_view instead_of(const std::string_view name) {
  const auto* const former = std::ranges::find(former_options, name, &Former::name);
  return former == std::end(former_options) ? std::string_view() : former->instead;
}

// The number of letters to change, add, leave out, or swap with their neighbour, to turn one name
// into the other (Damerau's distance, in its restricted form).
std::size_t distance(const std::string_view from, const std::string_view to) {
  std::vector<std::size_t> before(to.size() + 1), last(to.size() + 1), row(to.size() + 1);
  for (std::size_t j = 0; j <= to.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const bool same = from[i - 1] == to[j - 1];
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[to.size()];
}

// The option that `name` was probably meant to be; empty if none is near.
std::string_view nearest_option(const std::string_view name) {
  std::string_view nearest;
  std::size_t least = std::max<std::size_t>(2, name.size() / 3) + 1;  // typos are shorter
  const auto look_at = [&](const std::string_view option) {
    const std::size_t away = distance(name, option);
    if (away >= least || away >= option.size()) return;
    least = away;
    nearest = option;
  };
  std::ranges::for_each(option_names, look_at);
  return nearest;
}

void warn_once(const std::vector<std::string_view>& unknown) {
  static std::atomic<bool> reported{false};  // any thread
  if (unknown.empty() || job_rank() != 0) return;
  if (reported.exchange(true, std::memory_order_relaxed)) return;
  report(describe_unknown(unknown));
}

}  // namespace

void end_by_option(const Error& refused) noexcept {
  constexpr std::string_view mark = "imbrex: ";  // the prefix that report() writes
  report(refused.what() + (std::string_view(refused.what()).starts_with(mark) ? mark.size() : 0));
  std::fflush(nullptr);
  std::_Exit(2);  // exit handlers would call the runtime, which is about to start
}

std::string describe_unknown(const std::vector<std::string_view>& names) {
  if (names.empty()) return "";
  std::string text = names.size() == 1 ? "there is no option " : "there are no options ";
  for (std::size_t index = 0; index < names.size(); ++index) {
    text += fmt::format("{}IMBREX_{}", index == 0 ? "" : ", ", names[index]);
    const std::string_view instead = instead_of(names[index]);
    const std::string_view nearest = nearest_option(names[index]);
    if (!instead.empty()) {
      text += fmt::format(" (removed: {})", instead);
    } else if (!nearest.empty()) {
      text += fmt::format(" (did you mean IMBREX_{}?)", nearest);
    }
  }
  return text + (names.size() == 1 ? ": it is" : ": they are") +
         " ignored; IMBREX_HELP=1 prints all options";
}

Options read_options() {
  Options options;
  std::vector<std::string_view> unknown;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (!text.starts_with(prefix) || equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(prefix.size(), equals - prefix.size());
    if (!assign(options, name, text.substr(equals + 1)) &&
        std::ranges::find(not_options, name) == std::end(not_options)) {
      unknown.push_back(name);
    }
  }
  warn_once(unknown);
  return options;
}

OptionValue option_value(const Options& options, const std::string_view name) {
#define IMBREX_OPTION(option, kind, default_value) \
  if (name == #option) return options.option;
#include "base/tables/options.def"
#undef IMBREX_OPTION
  IMBREX_CHECK(false, "a plug-in asks for an option that options.def does not have: {}", name);
  return {};
}

std::string options_help() {
  std::string text;
  const auto line = [&text](const std::string_view name, const std::string& standard) {
    text += fmt::format("  IMBREX_{:<16} {}\n{:26}valid: {}; default: {}\n", name,
                        text_of(name).help, "", text_of(name).valid,
                        standard.empty() ? "none" : standard);
  };
#define IMBREX_OPTION(name, kind, default_value) line(#name, fmt::format("{}", default_value));
#include "base/tables/options.def"
#undef IMBREX_OPTION
  return text;
}

}  // namespace imbrex::base
