// SPDX-License-Identifier: BSD-3-Clause
// The IMBREX_* options of the environment, from the table options.def. Does not know their meaning.
// Their texts are in another table, so that a better text recompiles only options.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "imbrex/error.hpp"

namespace imbrex::base {

struct Options {
  using integer = std::int64_t;
  using size = std::int64_t;
  using boolean = bool;
  using text = std::string;
#define IMBREX_OPTION(name, kind, default_value) kind name = default_value;
#include "base/tables/options.def"
#undef IMBREX_OPTION
};

// The value of an option in the environment is malformed, or cannot be satisfied.
#pragma GCC visibility push(default)
class OptionError : public Error {
 public:
  using Error::Error;
};
#pragma GCC visibility pop

// Ends the process with status 2, and a line that says what is wrong. The program has not begun, so
// the message is for the user who set the option, not for the code that uses imbrex first.
[[noreturn]] void end_by_option(const Error& refused) noexcept;

// Reads the environment. Throws OptionError for a malformed value; its text lists the valid values.
// Unknown names cause a warning, once in a process and by one process of a job: the program still
// runs.
[[nodiscard]] Options read_options();

// The value of an option for plug-ins, which do not see the struct. REQUIRES: `name` is in the
// table.
using OptionValue = std::variant<std::int64_t, bool, std::string>;
[[nodiscard]] OptionValue option_value(const Options& options, std::string_view name);

// A line that says that `names` (without IMBREX_) are no options, with the nearest option for each;
// empty if there are none.
[[nodiscard]] std::string describe_unknown(const std::vector<std::string_view>& names);

// The table for IMBREX_HELP.
[[nodiscard]] std::string options_help();

}  // namespace imbrex::base
