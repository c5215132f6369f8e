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

}  // namespace

CommandLine::CommandLine(const std::string& program, const std::string& description)
    : own_(std::make_unique<CLI::App>(description, program)), app_(own_.get()) {
  app_->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
}
CommandLine::CommandLine(CLI::App* const part) : app_(part) {}
CommandLine::CommandLine(CommandLine&&) noexcept = default;
CommandLine::~CommandLine() = default;

void CommandLine::flag(const std::string& names, bool& value, const std::string& help) {
  app_->add_flag(names, value, help);
}

void CommandLine::text(const std::string& names, std::string& value, const std::string& help) {
  CLI::Option* const option = app_->add_option(names, value, help);
  if (!value.empty()) option->capture_default_str();
}

template <class Value>
void CommandLine::number(const std::string& names, Value& value, const LimitsOf<Value>& limits,
                         const std::string& help) {
  CLI::Option* const option = app_->add_option(names, value, help)->check(within<Value>(limits));
  if (is_within(value, limits)) option->capture_default_str();
}

template <class Value>
void CommandLine::number(const std::string& names, std::optional<Value>& value,
                         const LimitsOf<Value>& limits, const std::string& help) {
  app_->add_option_function<Value>(names, [&value](const Value& given) { value = given; }, help)
      ->check(within<Value>(limits));
}

template <class Value>
void CommandLine::numbers(const std::string& names, std::vector<Value>& values,
                          const LimitsOf<Value>& limits, const std::string& help) {
  CLI::Option* const option = app_->add_option(names, values, help)
                                  ->delimiter(',')
                                  ->allow_extra_args(false)
                                  ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                                  ->check(within<Value>(limits));
  if (!values.empty()) option->capture_default_str();
}

template <class Value>
void CommandLine::pair(const std::string& names, std::vector<Value>& values,
                       const std::string& help) {
  app_->add_option(names, values, help)->delimiter(',')->expected(2);
}

void CommandLine::word(const std::string& names, std::string& value,
                       const std::vector<std::string>& words, const std::string& help) {
  text(names, value, help);
  app_->get_option(names)->check(CLI::IsMember(words));
}

void CommandLine::words(const std::string& names, std::vector<std::string>& values,
                        const std::vector<std::string>& words, const std::string& help) {
  CLI::Option* const option = app_->add_option(names, values, help)
                                  ->delimiter(',')
                                  ->allow_extra_args(false)
                                  ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
                                  ->check(CLI::IsMember(words));
  if (!values.empty()) option->capture_default_str();
}

void CommandLine::add_choice(const std::string& names, const std::vector<std::string>& words,
                             const std::string& before, const std::string& help,
                             std::function<void(std::size_t)> choose) {
  const auto read = [words, choose = std::move(choose)](const std::string& word) {
    choose(static_cast<std::size_t>(std::find(words.begin(), words.end(), word) - words.begin()));
  };
  app_->add_option_function<std::string>(names, read, help)
      ->check(CLI::IsMember(words))
      ->default_str(before);
}

void CommandLine::files(std::vector<std::string>& values, const std::string& help) {
  app_->add_option("FILES", values, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void CommandLine::repetitions(const std::string& names, int& value) {
  number(names, value, {1}, "Runs of each variant, in turn");
}

void CommandLine::json(std::string& path) { text("--json", path, "Write the figures there too"); }

CommandLine CommandLine::part(const std::string& name, const std::string& description) {
  app_->require_subcommand(1);
  return CommandLine(app_->add_subcommand(name, description));
}

CommandLine CommandLine::exactly_one(const std::string& title) {
  CLI::Option_group* const group = app_->add_option_group(title, "exactly one");
  group->require_option(1);
  return CommandLine(group);
}

void CommandLine::require(const std::string& name) { app_->get_option(name)->required(); }

void CommandLine::parse(const int argc, char** const argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    throw HelpAsked{app_->help()};
  } catch (const CLI::ParseError& error) {
    throw InputError(std::string(error.what()) + " (--help lists the options)");
  }
}

bool CommandLine::given(const std::string& option) const { return app_->count(option) > 0; }

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

template void CommandLine::pair(const std::string&, std::vector<int>&, const std::string&);
template void CommandLine::pair(const std::string&, std::vector<std::int64_t>&,
                                const std::string&);
#define APPS_NUMBER(Value)                                                                  \
  template void CommandLine::number(const std::string&, Value&, const Limits<Value>&,       \
                                    const std::string&);                                    \
  template void CommandLine::number(const std::string&, std::optional<Value>&,              \
                                    const Limits<Value>&, const std::string&);              \
  template void CommandLine::numbers(const std::string&, std::vector<Value>&,               \
                                     const Limits<Value>&, const std::string&);
APPS_NUMBER(int)
APPS_NUMBER(std::int64_t)
APPS_NUMBER(std::uint64_t)
APPS_NUMBER(double)
#undef APPS_NUMBER

}  // namespace apps
