// SPDX-License-Identifier: BSD-3-Clause
// The command line: the reference program's letters, and long names for the rest.
#pragma once

#include <string>

#include "variants.hpp"

namespace uts {

enum class Variant { sequential, mpi, openmp, imbrex };
[[nodiscard]] const char* name_of(Variant variant) noexcept;

struct Options {
  Variant variant = Variant::imbrex;
  Parameters tree;
  Settings settings;
  int verbosity = 1;  // 0: counts and rate; 1: what is searched, and progress; 2: each searcher
  int repeat = 1;
  bool statistics = false;
  bool json = false;
};

// `help` is set, and nothing else, if that was asked for. Throws InputError.
[[nodiscard]] Options parse_options(int argc, char** argv, std::string& help);

}  // namespace uts
