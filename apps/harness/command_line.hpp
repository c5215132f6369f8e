// SPDX-License-Identifier: BSD-3-Clause
// The command line of a program: its options, the limits of their values, and --help. Knows no MPI.
// CLI11 parses; no other file of the applications includes CLI11, since it takes long to compile.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "input_error.hpp"

namespace CLI {
class App;
}

namespace apps {

// --help is all that the command line asks for.
struct HelpAsked {
  std::string text;
};

// The smallest and the largest value of an option, both included.
template <class Value>
struct Limits {
  Value least = std::numeric_limits<Value>::lowest();
  Value most = std::numeric_limits<Value>::max();
};

template <class Value>
using LimitsOf = Limits<std::type_identity_t<Value>>;  // says nothing of the type by itself

// A word of the command line, and the value that it stands for.
template <class Value>
struct Choice {
  const char* word;
  Value value;
};
// The word of a value. REQUIRES: there is one.
template <class Value, class Choices>
[[nodiscard]] const char* word_of(const Choices& choices, const Value& value) {
  return std::ranges::find(choices, value, [](const auto& one) { return one.value; })->word;
}

using Text = const std::string&;
using Words = const std::vector<std::string>&;

// Each option writes to a variable, which outlives parse(). --help shows the value that the
// variable has before. A value outside of the option's limits means "not given", and --help does
// not show it. An option may be given once. A number that is infinite or not a number is refused.
class CommandLine {
 public:
  CommandLine(Text program, Text description);
  ~CommandLine();
  CommandLine(CommandLine&&) noexcept;

  void flag(Text names, bool& value, Text help);
  void text(Text names, std::string& value, Text help);
  // Value is int, std::int64_t, std::uint64_t or double, here and below.
  template <class Value>
  void number(Text names, Value& value, LimitsOf<Value> limits, Text help);
  template <class Value>
  void number(Text names, std::optional<Value>& value, LimitsOf<Value> limits, Text help);
  // Numbers in one argument, separated by commas.
  template <class Value>
  void numbers(Text names, std::vector<Value>& values, LimitsOf<Value> limits, Text help);
  // Two numbers, as two arguments or separated by a comma; `values` is empty if not given.
  template <class Value>
  void pair(Text names, std::vector<Value>& values, Text help);
  void word(Text names, std::string& value, Words words, Text help);
  // Words in one argument, separated by commas.
  void words(Text names, std::vector<std::string>& values, Words words, Text help);
  template <class Value, class Choices>
  void choice(Text names, Value& value, const Choices& choices, Text help);
  template <class Value>
  void choice(Text names, Value& value, std::initializer_list<Choice<Value>> choices, Text help) {
    choice(names, value, std::vector<Choice<Value>>(choices), help);
  }
  // Arguments that are not options; any number of them.
  void files(std::vector<std::string>& values, Text help);

  // What most programs have.
  void repetitions(Text names, int& value);
  void json(std::string& path);

  // A part of the command line that begins with this name; one of the parts must be given.
  [[nodiscard]] CommandLine part(Text name, Text description);
  // Options of which exactly one must be given.
  [[nodiscard]] CommandLine exactly_one(Text title);
  // `name` must be given.
  void require(Text name);

  // Throws InputError for a command line that is wrong, and HelpAsked.
  void parse(int argc, char** argv);

  // The rest is valid after parse().
  [[nodiscard]] bool given(Text option) const;
  // All options that are given.
  [[nodiscard]] std::vector<std::string> all_given() const;
  // The part of the command line that this is was given.
  [[nodiscard]] bool chosen() const;
  // Throws InputError, as "--a: needs --b", if an option is given although `holds` is false.
  void needs(std::initializer_list<const char*> options, bool holds, const char* what) const;

 private:
  explicit CommandLine(CLI::App* part);
  void add_choice(Text names, Words words, Text before, Text help,
                  std::function<void(std::size_t)> choose);

  std::unique_ptr<CLI::App> own_;  // null: a part of another command line
  CLI::App* app_;
};

template <class Value, class Choices>
void CommandLine::choice(Text names, Value& value, const Choices& choices, Text help) {
  std::vector<std::string> words;
  std::vector<Value> values;
  std::string before;
  for (const auto& choice : choices) {
    words.emplace_back(choice.word);
    values.push_back(choice.value);
    if (choice.value == value) before = choice.word;
  }
  add_choice(names, words, before, help,
             [&value, values](const std::size_t chosen) { value = values[chosen]; });
}

// What parse(argc, argv) returns; none if the command line is wrong or asks for help, which the
// program says when it runs. For programs that must know an option before MPI starts.
template <class Parse>
[[nodiscard]] auto look_at(int argc, char** argv, Parse&& parse)
    -> std::optional<decltype(parse(argc, argv))> {
  try {
    return parse(argc, argv);
  } catch (const InputError&) {
  } catch (const HelpAsked&) {
  }
  return std::nullopt;
}

}  // namespace apps
