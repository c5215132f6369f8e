// SPDX-License-Identifier: BSD-3-Clause
// The IMBREX_* options of the environment, from the one table options.def. Knows no meaning of
// them.
#pragma once

#include <cstdint>
#include <string>

namespace imbrex::base {

struct Options {
  using integer = std::int64_t;
  using size = std::int64_t;
  using boolean = bool;
  using text = std::string;
#define IMBREX_OPTION(name, kind, default_value, valid, help) kind name = default_value;
#include "base/options.def"
#undef IMBREX_OPTION
};

// Reads the environment. Throws Error for a malformed value or an unknown IMBREX_* name, with the
// valid ones.
[[nodiscard]] Options read_options();

// The value of a numeric option by its name in the table; 0 if there is none of this name.
[[nodiscard]] std::int64_t integer_value(const Options& options, const char* name) noexcept;

// The table for IMBREX_HELP.
[[nodiscard]] std::string options_help();

}  // namespace imbrex::base
