// SPDX-License-Identifier: BSD-3-Clause
// The IMBREX_* options of the environment, from the table options.def. Knows no meaning of them.
// Their texts stand in another table, so that a better one compiles no more than options.cpp.
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

// The value of an option in the environment is malformed, or cannot be had.
#pragma GCC visibility push(default)
class OptionError : public Error {
 public:
  using Error::Error;
};
#pragma GCC visibility pop

// Ends the process with status 2, and a line that says what is wrong: the program has not begun,
// and whoever has set the option is to be told, not the code that happens to use imbrex first.
[[noreturn]] void end_by_option(const Error& refused) noexcept;

// Reads the environment. Throws OptionError for a malformed value, with the valid ones. Names that
// are in no table are warned of, once in a process and by one process of a job: a program that the
// user did not write shall run all the same.
[[nodiscard]] Options read_options();

// For plug-ins, which do not see the struct. REQUIRES: `name` stands in the table.
using OptionValue = std::variant<std::int64_t, bool, std::string>;
[[nodiscard]] OptionValue option_value(const Options& options, std::string_view name);

// A line that says that `names` (without IMBREX_) are no options, and for each the nearest that is;
// empty if there are none.
[[nodiscard]] std::string describe_unknown(const std::vector<std::string_view>& names);

// The table for IMBREX_HELP.
[[nodiscard]] std::string options_help();

}  // namespace imbrex::base
