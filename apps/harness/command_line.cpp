// SPDX-License-Identifier: BSD-3-Clause
#include "command_line.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

namespace apps {
namespace {

template <class Value>
bool is_within(const Value value, const Limits<Value>& limits) {
  return value >= limits.least && value <= limits.most;
}

// Returns what is wrong with a value, or an empty text.
template <class Value>
std::string refuse(const std::string& text, const Limits<Value>& limits) {
  Value value{};
  if (!CLI::detail::lexical_cast(text, value)) return "";  // CLI11 refuses it
  if constexpr (std::is_floating_point_v<Value>) {
    if (!std::isfinite(value)) return "must be a finite number";
  }
  if (is_within(value, limits)) return "";
  if (limits.most == Limits<Value>().most) {
    return fmt::format("Value {} is less than {}", text, limits.least);
  }
  return fmt::format("Value {} not in range {} to {}", text, limits.least, limits.most);
}

template <class Value>
CLI::Validator within(const Limits<Value>& limits) {
  const Limits<Value> all;
  std::string description;
  if (limits.most != all.most) {
    description = fmt::format("{} in [{} - {}]", CLI::detail::type_name<Value>(), limits.least,
                              limits.most);
  } else if (limits.least != all.least) {
    description = limits.least == 0   ? "NONNEGATIVE"
                  : limits.least == 1 ? "POSITIVE"
                                      : fmt::format(">= {}", limits.least);
  }
  return {[limits](std::string& text) { return refuse(text, limits); }, description};
}

template <class Value>
CLI::Option* add_list(CLI::App& app, Text names, std::vector<Value>& values, Text help) {
  CLI::Option* const option = app.add_option(names, values, help)
                                  ->delimiter(',')
                                  ->allow_extra_args(false)
                                  ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return values.empty() ? option : option->capture_default_str();
}

}  // namespace

CommandLine::CommandLine(Text program, Text description)
    : own_(std::make_unique<CLI::App>(description, program)), app_(own_.get()) {
  app_->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}
CommandLine::CommandLine(CLI::App* const part) : app_(part) {}
CommandLine::CommandLine(CommandLine&&) noexcept = default;
CommandLine::~CommandLine() = default;

void CommandLine::flag(Text names, bool& value, Text help) { app_->add_flag(names, value, help); }

void CommandLine::text(Text names, std::string& value, Text help) {
  CLI::Option* const option = app_->add_option(names, value, help);
  if (!value.empty()) option->capture_default_str();
}

template <class Value>
void CommandLine::number(Text names, Value& value, LimitsOf<Value> limits, Text help) {
  CLI::Option* const option = app_->add_option(names, value, help)->check(within<Value>(limits));
  if (is_within<Value>(value, limits)) option->capture_default_str();
}

template <class Value>
void CommandLine::number(Text names, std::optional<Value>& value, LimitsOf<Value> limits,
                         Text help) {
  app_->add_option_function<Value>(names, [&value](const Value& given) { value = given; }, help)
      ->check(within<Value>(limits));
}

template <class Value>
void CommandLine::numbers(Text names, std::vector<Value>& values, LimitsOf<Value> limits,
                          Text help) {
  add_list(*app_, names, values, help)->check(within<Value>(limits));
}

template <class Value>
void CommandLine::pair(Text names, std::vector<Value>& values, Text help) {
  app_->add_option(names, values, help)->delimiter(',')->expected(2);
}

void CommandLine::word(Text names, std::string& value, Words words, Text help) {
  text(names, value, help);
  app_->get_option(names)->check(CLI::IsMember(words));
}

void CommandLine::words(Text names, std::vector<std::string>& values, Words words, Text help) {
  add_list(*app_, names, values, help)->check(CLI::IsMember(words));
}

void CommandLine::add_choice(Text names, Words words, Text before, Text help,
                             std::function<void(std::size_t)> choose) {
  const auto read = [words, choose = std::move(choose)](const std::string& word) {
    choose(static_cast<std::size_t>(std::find(words.begin(), words.end(), word) - words.begin()));
  };
  app_->add_option_function<std::string>(names, read, help)
      ->check(CLI::IsMember(words))
      ->default_str(before);
}

void CommandLine::files(std::vector<std::string>& values, Text help) {
  app_->add_option("FILES", values, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandLine::repetitions(Text names, int& value) {
  number(names, value, {1}, "Runs of each variant, in turn");
}

void CommandLine::json(std::string& path) { text("--json", path, "Write the figures there too"); }

CommandLine CommandLine::part(Text name, Text description) {
  app_->require_subcommand(1);
  return CommandLine(app_->add_subcommand(name, description));
}

CommandLine CommandLine::exactly_one(Text title) {
  CLI::Option_group* const group = app_->add_option_group(title, "exactly one");
  group->require_option(1);
  return CommandLine(group);
}

void CommandLine::require(Text name) { app_->get_option(name)->required(); }

void CommandLine::parse(const int argc, char** const argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    throw HelpAsked{app_->help()};
  } catch (const CLI::ParseError& error) {
    throw InputError(std::string(error.what()) + " (--help lists the options)");
  }
}

bool CommandLine::given(Text option) const { return app_->count(option) > 0; }

std::vector<std::string> CommandLine::all_given() const {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app_->get_options()) {
    if (option->count() > 0) names.push_back(option->get_name());
  }
  return names;
}

bool CommandLine::chosen() const { return app_->parsed(); }

void CommandLine::needs(const std::initializer_list<const char*> options, const bool holds,
                        const char* const what) const {
  for (const char* const option : options) {
    if (!holds && given(option)) throw InputError(fmt::format("{}: needs {}", option, what));
  }
}

#define APPS_NUMBER(Value)                                                                       \
  template void CommandLine::number(Text, Value&, LimitsOf<Value>, Text);                        \
  template void CommandLine::number(Text, std::optional<Value>&, LimitsOf<Value>, Text);         \
  template void CommandLine::numbers(Text, std::vector<Value>&, LimitsOf<Value>, Text);          \
  template void CommandLine::pair(Text, std::vector<Value>&, Text);
APPS_NUMBER(int)
APPS_NUMBER(std::int64_t)
APPS_NUMBER(std::uint64_t)
APPS_NUMBER(double)
#undef APPS_NUMBER

}  // namespace apps
