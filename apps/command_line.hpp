// SPDX-License-Identifier: BSD-3-Clause
// How every application reads its command line.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

#include "harness/input_error.hpp"

namespace apps {

// An option whose values stand in one argument, separated by commas.
template <class Value>
CLI::Option* add_list(CLI::App& app, const std::string& name, std::vector<Value>& values,
                      const std::string& description) {
  return app.add_option(name, values, description)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

// False if --help is all that was asked for; then `help` is what it says. Throws InputError.
[[nodiscard]] inline bool parse(CLI::App& app, const int argc, char** const argv,
                                std::string& help) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    help = app.help();
    return false;
  } catch (const CLI::ParseError& error) {
    throw InputError(std::string(error.what()) + " (--help lists the options)");
  }
  return true;
}

}  // namespace apps
