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

// Each option writes to a variable, which outlives parse(). --help shows the value that the variable
// has before. A value outside of the option's limits means "not given", and --help does not show it.
// An option may be given once. A number that is infinite or not a number is refused.
class CommandLine {
 public:
  CommandLine(const std::string& program, const std::string& description);
  ~CommandLine();
  CommandLine(CommandLine&&) noexcept;

  void flag(const std::string& names, bool& value, const std::string& help);
  void text(const std::string& names, std::string& value, const std::string& help);
  // Value is int, std::int64_t, std::uint64_t or double, here and below.
  template <class Value>
  void number(const std::string& names, Value& value, const LimitsOf<Value>& limits,
              const std::string& help);
  template <class Value>
  void number(const std::string& names, std::optional<Value>& value, const LimitsOf<Value>& limits,
              const std::string& help);
  // Numbers in one argument, separated by commas.
  template <class Value>
  void numbers(const std::string& names, std::vector<Value>& values, const LimitsOf<Value>& limits,
               const std::string& help);
  // Two numbers, as two arguments or separated by a comma; `values` is empty if not given.
  template <class Value>
  void pair(const std::string& names, std::vector<Value>& values, const std::string& help);
  void word(const std::string& names, std::string& value, const std::vector<std::string>& words,
            const std::string& help);
  // Words in one argument, separated by commas.
  void words(const std::string& names, std::vector<std::string>& values,
             const std::vector<std::string>& words, const std::string& help);
  template <class Value, class Choices>
  void choice(const std::string& names, Value& value, const Choices& choices,
              const std::string& help);
  template <class Value>
  void choice(const std::string& names, Value& value,
              std::initializer_list<Choice<Value>> choices, const std::string& help) {
    choice(names, value, std::vector<Choice<Value>>(choices), help);
  }
  // Arguments that are not options; any number of them.
  void files(std::vector<std::string>& values, const std::string& help);

  // What most programs have.
  void repetitions(const std::string& names, int& value);
  void json(std::string& path);

  // A part of the command line that begins with this name; one of the parts must be given.
  [[nodiscard]] CommandLine part(const std::string& name, const std::string& description);
  // Options of which exactly one must be given.
  [[nodiscard]] CommandLine exactly_one(const std::string& title);
  // The first argument is required, and no option: `word` has declared it by its name.
  void require(const std::string& name);

  // Throws InputError for a command line that is wrong, and HelpAsked.
  void parse(int argc, char** argv);

  // The rest is valid after parse().
  [[nodiscard]] bool given(const std::string& option) const;
  // All options that are given.
  [[nodiscard]] std::vector<std::string> all_given() const;
  // The part of the command line that this is was given.
  [[nodiscard]] bool chosen() const;
  // Throws InputError, as "--a: needs --b", if an option is given although `holds` is false.
  void needs(std::initializer_list<const char*> options, bool holds, const char* what) const;

 private:
  explicit CommandLine(CLI::App* part);
  void add_choice(const std::string& names, const std::vector<std::string>& words,
                  const std::string& before, const std::string& help,
                  std::function<void(std::size_t)> choose);

  std::unique_ptr<CLI::App> own_;  // null: a part of another command line
  CLI::App* app_;
};

template <class Value, class Choices>
void CommandLine::choice(const std::string& names, Value& value, const Choices& choices,
                         const std::string& help) {
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
    return std::nullopt;
  } catch (const HelpAsked&) {
    return std::nullopt;
  }
}

}  // namespace apps
